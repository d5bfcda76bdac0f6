"""The metrics are what Prometheus's own parser reads, and have the numbers of the status."""

import re
from dataclasses import replace

import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.paths import CHECKOUT
from tests.unit.status.test_problems import ALL_RIGHT, LIVE, STREAM, VIEW

from lockstep.monitor.metrics import StatusCollector
from lockstep.status.lag import PartitionLag
from lockstep.status.model import Problem, Status


def scraped(status: Status | None) -> dict[tuple[str, frozenset[str]], float]:
    """The samples of one scrape, by name and the values of its labels, whose order is the parser's."""
    collector, registry = StatusCollector(), CollectorRegistry()
    if status:
        collector.publish(status)
    registry.register(collector)
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {(s.name, frozenset(s.labels.values())): s.value for family in families for s in family.samples}


def test_before_the_first_look_there_are_no_metrics() -> None:
    assert scraped(None) == {}


def test_each_number_of_the_status_has_a_metric() -> None:
    lags = [PartitionLag(0, 0, 10, 9, {"bronze": 8, "live.page_views_per_minute": 3})]
    stream = replace(STREAM, partitions=lags, lag={"bronze": 2}, overdue={"bronze": 1}, fresh_at=1_500)
    view = replace(VIEW, live=replace(LIVE, batch_ms=250, state_rows=7, dropped_rows=2), unexplained=3)
    samples = scraped(replace(ALL_RIGHT, streams=[stream], views=[view], problems=[Problem("service:kafka", "x", "y")]))
    expected = {
        ("lockstep_problem", ("service:kafka",)): 1,
        ("lockstep_service_healthy", ("kafka",)): 1,
        ("lockstep_dag_paused", ("ingest",)): 0,
        ("lockstep_dag_last_run_failed", ("ingest",)): 0,
        ("lockstep_gate_open", ("silver.clicks",)): 1,
        ("lockstep_disk_free_bytes", ("/home",)): 50 * 1024**3,
        ("lockstep_lag_offsets", ("clicks", "0", "bronze")): 2,
        ("lockstep_lag_offsets", ("clicks", "0", "live.page_views_per_minute")): 7,
        ("lockstep_overdue_offsets", ("clicks", "bronze")): 1,
        ("lockstep_waiting_offsets", ("clicks",)): 1,
        ("lockstep_stream_rows", ("clicks", "quarantined")): 1,
        ("lockstep_bronze_commit_timestamp_seconds", ("clicks",)): 1.5,
        ("lockstep_view_rows", ("page_views_per_minute", "ignored")): 1,
        ("lockstep_unexplained_windows", ("page_views_per_minute",)): 3,
        ("lockstep_live_batch_seconds", ("page_views_per_minute",)): 0.25,
        ("lockstep_live_state_rows", ("page_views_per_minute",)): 7,
        ("lockstep_live_dropped_rows", ("page_views_per_minute",)): 2,
    }
    assert {key: samples.get((key[0], frozenset(key[1]))) for key in expected} == expected


def test_every_metric_has_a_help_text_and_the_unit_of_its_name() -> None:
    collector = StatusCollector()
    collector.publish(ALL_RIGHT)
    families = [*collector.collect()]
    assert len(families) == len({family.name for family in families})
    assert all(family.documentation and family.name.startswith("lockstep_") for family in families)


def test_the_alert_rules_ask_for_metrics_that_there_are() -> None:
    groups = yaml.safe_load((CHECKOUT / "infra" / "prometheus" / "rules.yml").read_text())["groups"]
    asked = {name for group in groups for rule in group["rules"] for name in re.findall(r"lockstep_\w+", rule["expr"])}
    collector = StatusCollector()
    collector.publish(replace(ALL_RIGHT, problems=[Problem("service:kafka", "x", "y")]))
    assert asked
    assert asked <= {family.name for family in collector.collect()}
