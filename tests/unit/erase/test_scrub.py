"""What is blanked in the tables of bookkeeping."""

import json
from types import SimpleNamespace
from typing import Any, cast

from lockstep.erase import scrub
from lockstep.erase.scan import Hit


def test_without_a_word_nothing_is_blanked():
    nobody = cast(Any, None)
    assert scrub.ops_tables(nobody, nobody, nobody, [], ["ops.replays"]) == {}, "an empty pattern matches everything"


def test_in_logs_a_value_is_blanked_also_as_json_escapes_it_and_no_longer_word_is(tmp_path):
    ann = 'ann.müller"1@example.org'
    escaped = json.dumps(ann)[1:-1]
    log = tmp_path / "logs" / "task.log"
    log.parent.mkdir()
    log.write_text(f"{escaped}\n{ann}\n{ann}2\n{escaped}2\n")
    scrub.texts(cast(Any, SimpleNamespace(home=tmp_path)), [ann], {Hit("home", "logs/task.log", "")})
    # In its place, byte by byte: servers append to it.
    assert log.read_text().splitlines() == ["*" * len(escaped), "*" * len(ann.encode()), f"{ann}2", f"{escaped}2"]
