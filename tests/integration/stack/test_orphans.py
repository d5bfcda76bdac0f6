"""A user who is not root finds orphan processes too, whatever the processes hide."""

import subprocess
import sys
from pathlib import Path

SCENARIO = Path(__file__).with_name("orphan_scenario.py")


def test_an_orphan_that_hides_from_its_own_user_is_killed_and_nothing_else_is() -> None:
    finished = subprocess.run([sys.executable, SCENARIO], capture_output=True, text=True, check=False, timeout=60)
    assert finished.returncode == 0, finished.stderr
    expected = ["hidden:process,child", "killed:child,process", "living:3", "left:0"]
    assert finished.stdout.split() == expected
