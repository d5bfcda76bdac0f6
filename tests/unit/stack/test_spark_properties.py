"""Spark's properties fit the number of cores, and a file may add to them what nothing else decides."""

from pathlib import Path

import pytest

from lockstep.properties import PropertiesInvalid
from lockstep.settings import Settings
from lockstep.stack import spark_properties


def of(settings: Settings, **changed: object) -> dict[str, str]:
    return spark_properties.of(settings.model_copy(update=changed))


def test_partitions_are_as_many_as_cores(settings: Settings) -> None:
    for cores in (2, 16):
        properties = of(settings, cores=cores)
        assert properties["spark.sql.shuffle.partitions"] == str(cores)
        assert properties["spark.databricks.delta.snapshotPartitions"] == str(cores)


@pytest.mark.parametrize(("cores", "adaptive", "projections"), [(2, "false", "NO_CODEGEN"), (16, "true", "FALLBACK")])
def test_on_many_cores_plans_adapt_and_code_is_generated(
    settings: Settings, cores: int, adaptive: str, projections: str
) -> None:
    properties = of(settings, cores=cores)
    assert properties["spark.sql.adaptive.enabled"] == adaptive
    assert properties["spark.sql.codegen.factoryMode"] == projections


def test_tasks_that_wait_for_kafka_leave_the_cores_to_others(tmp_path: Path) -> None:
    assert of(Settings(home=tmp_path, cores=2))["spark.master"] == "local[8]"
    assert of(Settings(home=tmp_path, cores=2, spark_master="local[3]"))["spark.master"] == "local[3]"


def test_only_the_one_jvm_of_a_local_disk_has_its_own_access_to_it(settings: Settings) -> None:
    name = "spark.hadoop.fs.file.impl"
    assert of(settings, spark_master="local[8]")[name].endswith(".BareLocalFileSystem")
    assert name not in of(settings, spark_master="spark://master:7077")
    assert name not in of(settings, lake="s3a://lake")


def test_any_property_may_be_set_in_a_file(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "spark.conf"
    file.write_text(
        "# as spark-defaults.conf\nspark.sql.shuffle.partitions  64\nspark.hadoop.fs.s3a.endpoint=store:9000\n"
    )
    properties = of(settings, spark_config=file)
    assert properties["spark.sql.shuffle.partitions"] == "64"
    assert properties["spark.hadoop.fs.s3a.endpoint"] == "store:9000"
    assert properties["spark.scheduler.mode"] == "FAIR", "the others stay"


def test_what_a_setting_or_a_promise_decides_is_refused_with_what_decides_it(
    settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "spark.conf"
    file.write_text("spark.ui.port 4141\nspark.sql.session.timeZone Europe/Paris\n")
    with pytest.raises(spark_properties.SettingRefused, match=r"spark\.conf.*timeZone .*UTC.*LOCKSTEP_SPARK_UI_PORT"):
        of(settings, spark_config=file)


def test_a_file_that_is_missing_is_named(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(PropertiesInvalid, match=r"nowhere\.conf.*LOCKSTEP_SPARK_CONFIG"):
        of(settings, spark_config=tmp_path / "nowhere.conf")


def test_an_event_log_is_kept_only_for_who_wants_one(settings: Settings) -> None:
    assert not any(name.startswith("spark.eventLog.") for name in of(settings))
    kept = of(settings, event_log=True)
    assert (kept["spark.eventLog.enabled"], kept["spark.eventLog.dir"]) == ("true", f"{settings.lake}/_events")
    # What is never rolled cannot be compacted.
    assert kept["spark.eventLog.rolling.enabled"] == "true"
