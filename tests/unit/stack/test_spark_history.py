"""The history server shows the event log that the Spark server writes, and keeps it small."""

from pathlib import Path

import pytest

from lockstep.settings import Settings
from lockstep.stack import spark_history, spark_properties
from lockstep.stack.errors import StackError


def of(home: Path, event_log: bool) -> Settings:
    return Settings(_env_file=None, home=home, event_log=event_log)  # type: ignore[call-arg]


def test_it_reads_the_log_that_the_server_writes_and_bounds_it(tmp_path: Path) -> None:
    settings = of(tmp_path, event_log=True)
    properties = spark_history.properties(settings)
    assert properties["spark.history.fs.logDirectory"] == spark_properties.of(settings)["spark.eventLog.dir"]
    assert int(properties["spark.history.fs.eventLog.rolling.maxFilesToRetain"]) < 100
    assert properties["spark.history.fs.cleaner.maxAge"] == f"{settings.retain_hours}h"


def test_without_an_event_log_it_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(StackError, match=r"(?s)no event log is kept.*LOCKSTEP_EVENT_LOG=true"):
        spark_history.launch(of(tmp_path, event_log=False))


def test_it_listens_on_the_loopback_and_on_its_port(tmp_path: Path) -> None:
    settings = of(tmp_path, event_log=True)
    launch = spark_history.launch(settings)
    assert launch.env["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert "spark.history.ui.port=18080" in Path(launch.argv[-1]).read_text()
