"""Every command of the README does what a newcomer needs it to do: it runs, in the order of the page."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.paths import CHECKOUT

from lockstep.stack.services import environment

# The first is the test command itself; the second belongs to a shell, and is done by PATH here.
NOT_RUN = {"make test", "source .venv/bin/activate"}
README = (CHECKOUT / "README.md").read_text()


def commands() -> list[str]:
    """The lines after ``$`` in the console blocks."""
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [line for line in lines if line not in NOT_RUN]


def test_any_spark_connect_client_may_ask_the_lake(demo):
    (question,) = [code for code in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "builder.remote" in code]
    mine = question.replace("sc://127.0.0.1:15002", demo.settings.spark_remote)
    done = subprocess.run([sys.executable, "-c", mine], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("only showing top 3 rows") == 2, done.stdout


def test_every_command_runs_on_the_demo_in_the_order_of_the_page(demo):
    env = os.environ | environment(demo.settings)
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    assert "make demo" in commands()
    for command in commands():
        # Only the Spark server of this stack may be killed, whatever else runs on the machine.
        mine = command.replace("-f connect_server.py", f"-f '{demo.settings.home}.*connect_server.py'")
        done = subprocess.run(["bash", "-c", mine], cwd=CHECKOUT, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
