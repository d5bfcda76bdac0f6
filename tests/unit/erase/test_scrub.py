"""What is blanked in the tables of bookkeeping."""

from typing import Any, cast

from lockstep.erase import scrub


def test_without_a_word_nothing_is_blanked():
    nobody = cast(Any, None)
    assert scrub.ops_tables(nobody, nobody, nobody, [], ["ops.replays"]) == {}, "an empty pattern matches everything"
