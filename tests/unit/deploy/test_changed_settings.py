"""A setting that has changed is named with the services that read it, and its value only where that tells no secret."""

from dataclasses import replace

import pytest
from pydantic import SecretStr

from lockstep.deploy.changed_settings import ChangedSetting, changes
from lockstep.deploy.plan import Observed, plan
from lockstep.stack.started import Started

RUNNING = ("postgres", "kafka", "spark", "live", "monitor")


@pytest.fixture
def changed(settings):
    """What the plan finds when settings are changed under services that run."""

    def find(*, running=RUNNING, environ=(), **values) -> list[ChangedSetting]:
        was = Started.of(settings)
        return changes(dict.fromkeys(running, was), Started.of(settings.model_copy(update=values)), environ)

    return find


def test_where_nothing_has_changed_nothing_is_found(changed) -> None:
    assert changed() == []


def test_only_the_running_services_that_read_a_setting_are_started_again(changed) -> None:
    assert changed(max_lag_seconds=900) == [
        ChangedSetting("LOCKSTEP_MAX_LAG_SECONDS", "600 becomes 900", services=("monitor",))
    ]
    assert changed(kafka_memory="1g", running=["spark"]) == []


def test_what_is_read_at_a_start_only_starts_nothing(changed, tmp_path) -> None:
    assert changed(cache=tmp_path) == []


def test_a_service_of_the_project_may_read_every_setting(changed) -> None:
    (found,) = changed(max_lag_seconds=900, running=["spark", "shop"])
    assert found.services == ("shop",)


def test_what_cannot_be_changed_while_the_stack_runs_is_named_with_the_way(changed) -> None:
    (port,) = changed(kafka_port=9192)
    assert (port.values, port.services) == ("9092 becomes 9192", ())
    assert "`lockstep down`, then `lockstep up`" in port.way
    (partitions,) = changed(state_partitions=7)
    assert "fixed with the first micro-batch" in partitions.way


def test_a_secret_is_told_to_have_changed_and_not_what_it_is(changed) -> None:
    (token,) = changed(webhook_token=SecretStr("hunter2"))
    assert (token.values, token.services) == ("another value", ("spark", "live"))
    (token,) = changed(webhook_token=SecretStr("hunter2"), environ=["LOCKSTEP_WEBHOOK_TOKEN"])
    assert token.services == (), "its supervisor has the environment of before"
    assert "in the environment" in token.way
    assert "hooks" not in str(changed(webhook_url="https://hooks.example.org/T0/secret"))


def test_the_plan_names_the_settings_and_each_service_that_is_started_again_with_what_that_costs(settings) -> None:
    found = (
        ChangedSetting("LOCKSTEP_SPARK_MEMORY", "2g becomes 3g", services=("spark",)),
        ChangedSetting("LOCKSTEP_LAKE", "/a becomes /b", way="another lake has other tables"),
    )
    spark, lake, *services = plan(replace(Observed(), settings=found, restarted=("spark", "live", "monitor")))
    assert str(spark) == "~ setting LOCKSTEP_SPARK_MEMORY: 2g becomes 3g, for spark"
    assert (str(lake), lake.is_made) == ("! setting LOCKSTEP_LAKE: /a becomes /b: another lake has other tables", False)
    assert list(map(str, services)) == [
        "~ service spark: is started again; tasks that run fail, and are tried again",
        "~ service live: is started again; its queries go on from their checkpoints",
        "~ service monitor: is started again",
    ]


def test_a_setting_that_was_not_set_before_is_told(settings, tmp_path) -> None:
    was, now = Started.of(settings), Started.of(settings.model_copy(update={"spark_config": tmp_path / "spark.conf"}))
    (found,) = changes({"spark": was}, now, ())
    assert found.values == f"nothing becomes {tmp_path}/spark.conf"
