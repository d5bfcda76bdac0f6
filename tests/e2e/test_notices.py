"""On the whole platform: what breaks is told once, within two minutes, and once more when it is over."""

import json
import os
import subprocess
import sys
from collections import Counter

import pytest
from tenacity import RetryError, Retrying, retry_if_not_result, stop_after_delay, wait_fixed

from lockstep.stack.services import environment
from lockstep.status import open_problems

CONNECT, MARTS = "connect is stopped", "DAG marts is paused"


def lockstep(demo, *arguments: str) -> str:
    env = os.environ | environment(demo.settings)
    command = [sys.executable, "-P", "-m", "lockstep.cli", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False).stdout


def told(demo) -> Counter[tuple[str, str]]:
    """How often each of the two was told as NEW and as OVER."""
    lines = [line for _, body in demo.web.taken for line in json.loads(body)["text"].splitlines()]
    return Counter((line.split()[0], what) for line in lines for what in (CONNECT, MARTS) if what in line)


def within_two_minutes(demo, before: Counter[tuple[str, str]], *wanted: tuple[str, str]) -> None:
    """Wait until these were told. The message has what the monitor remembers, and what was told."""
    try:
        Retrying(stop=stop_after_delay(120), wait=wait_fixed(1), retry=retry_if_not_result(bool))(
            lambda: {*wanted} <= (told(demo) - before).keys()
        )
    except RetryError:
        texts = [json.loads(body)["text"] for _, body in demo.web.taken]
        pytest.fail(f"not told: {wanted}\ntold: {texts}\nremembered: {open_problems.load(demo.settings)}")


@pytest.mark.slow
def test_what_breaks_is_told_once_and_once_more_when_it_is_over(demo):
    before = told(demo)
    demo.stack.stop("connect")
    lockstep(demo, "airflow", "dags", "pause", "marts")
    within_two_minutes(demo, before, ("NEW", CONNECT), ("NEW", MARTS))
    said = lockstep(demo, "status")
    assert CONNECT in said
    assert MARTS in said
    demo.stack.up(["connect"])
    lockstep(demo, "airflow", "dags", "unpause", "marts")
    within_two_minutes(demo, before, ("OVER", CONNECT), ("OVER", MARTS))
    assert set((told(demo) - before).values()) == {1}
