"""The commands of a standalone cluster follow from its address, and its executors start on a trimmed JRE too."""

import os
import subprocess
from pathlib import Path

import pytest

from lockstep.settings import Settings
from lockstep.stack import spark_cluster
from lockstep.stack.errors import StackError
from lockstep.stack.java import Java, find_java

DEMANDED = "--add-modules=jdk.incubator.vector"


def of(home: Path, master: str = "spark://127.0.0.1:7099") -> Settings:
    return Settings(_env_file=None, home=home, spark_master=master)  # type: ignore[call-arg]


def bundled() -> Java:
    """The JRE from PyPI, as on a machine without any other."""
    return find_java({"PATH": ""})


def test_executors_start_on_the_bundled_jre_with_all_their_other_options(tmp_path: Path) -> None:
    java = bundled()
    options = [DEMANDED, "-Dmind.the=gap and $HOME", "-XshowSettings:properties", "-version"]
    bare = subprocess.run([java.executable, *options], capture_output=True, text=True, check=False)
    assert bare.returncode != 0, "the wrapper is not needed any more"
    wrapper = spark_cluster.executors_java(of(tmp_path / "a home"), java) / "bin" / "java"
    started = subprocess.run([wrapper, *options], capture_output=True, text=True, check=False)
    assert started.returncode == 0, started.stderr
    assert "mind.the = gap and $HOME" in started.stderr


def test_a_full_java_is_used_as_it_is(tmp_path: Path) -> None:
    executable = tmp_path / "jdk" / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text("#!/bin/sh\necho java.base jdk.incubator.vector\n")
    executable.chmod(0o755)
    assert spark_cluster.executors_java(of(tmp_path), Java(executable, 17, "PATH")) == tmp_path / "jdk"


@pytest.mark.parametrize("master", ["local[2]", "yarn", "spark://somewhere", "k8s://https://host:443"])
def test_an_address_that_is_not_a_standalone_masters_is_refused_with_an_example(tmp_path: Path, master: str) -> None:
    with pytest.raises(StackError, match=r"(?s)LOCKSTEP_SPARK_MASTER=.*spark://127.0.0.1:7077"):
        spark_cluster.master_address(of(tmp_path, master))


def test_the_master_listens_where_its_address_says_and_workers_go_there(tmp_path: Path) -> None:
    master = spark_cluster.launch_master(of(tmp_path)).argv
    assert master[master.index("--host") : master.index("--host") + 4] == ["--host", "127.0.0.1", "--port", "7099"]
    worker = spark_cluster.launch_worker(of(tmp_path))
    assert worker.argv[-1] == "spark://127.0.0.1:7099"
    assert worker.env["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert not any("SECRET" in name or "PASSWORD" in name for name in worker.env)
    assert os.fspath(tmp_path) in worker.argv[worker.argv.index("--work-dir") + 1]
