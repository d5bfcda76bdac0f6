"""Old task logs are removed, newer ones stay."""

import os
import time

from lockstep.maintain.run import trim_logs


def test_only_logs_older_than_the_limit_are_removed(tmp_path):
    for name, hours in {"old.log": 200, "young.log": 100, "old.txt": 200}.items():
        (tmp_path / name).write_text("x")
        at = time.time() - hours * 3600
        os.utime(tmp_path / name, (at, at))
    assert trim_logs(tmp_path, 168) == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["old.txt", "young.log"]
