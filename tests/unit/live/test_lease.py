"""The process that holds a query's lease ends with the server that started it."""

import subprocess
import sys
from pathlib import Path

import psutil
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

CHILD = """
import time
from lockstep.live import lease
lease._end_with_the_server()
print("up", flush=True)
time.sleep(60)
"""
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""


@retry(retry=retry_if_result(bool), wait=wait_fixed(0.1), stop=stop_after_delay(10))
def is_alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_a_worker_does_not_outlive_a_server_that_was_killed(tmp_path: Path) -> None:
    server = subprocess.Popen([sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    worker = int(server.stdout.readline())
    assert psutil.pid_exists(worker)
    server.kill()
    server.wait()
    assert not is_alive(worker)
