"""A process ends when the one that started it is gone, as a Python program and as any other."""

import subprocess
import sys

import psutil
import pytest

# A parent that starts a child, prints the child's pid and is killed by the test.
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""
PYTHON = """
from lockstep import processes
processes.end_with_parent()
print("ready", flush=True)
import time
time.sleep(60)
"""
# `cat` reads an open pipe, so that it does not end by itself.
ANOTHER_PROGRAM = """
import os, signal
from lockstep import processes
processes.signal_when_parent_ends(signal.SIGTERM)
print("ready", flush=True)
reader, writer = os.pipe()
os.set_inheritable(reader, True)
os.set_inheritable(writer, True)
os.dup2(reader, 0)
os.execvp("cat", ["cat"])
"""
FROM_A_THREAD = """
import subprocess, sys, threading
def start():
    global child
    child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
thread = threading.Thread(target=start)
thread.start()
thread.join()
print(child.pid, flush=True)
child.wait()
"""


@pytest.mark.parametrize("program", [PYTHON, ANOTHER_PROGRAM])
def test_a_process_ends_with_its_parent_that_is_killed(program: str) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        child.wait(10)


def test_a_python_process_outlives_the_thread_that_started_it_but_not_the_process() -> None:
    with subprocess.Popen([sys.executable, "-c", FROM_A_THREAD, PYTHON], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        child = psutil.Process(int(parent.stdout.readline()))
        with pytest.raises(psutil.TimeoutExpired):
            child.wait(1.5)
        parent.kill()
        child.wait(10)
