"""The dashboards and the alert rules ask for what the endpoint has, in queries that Prometheus can parse."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

import promql_parser as promql
import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.paths import CHECKOUT
from tests.unit.status.test_problems import ALL_RIGHT, LIVE, STREAM, VIEW

from lockstep.monitor.metrics import StatusCollector
from lockstep.status.lag import PartitionLag
from lockstep.status.model import Problem

GRAFANA, PROMETHEUS = CHECKOUT / "infra" / "grafana", CHECKOUT / "infra" / "prometheus"
DASHBOARDS = {file.stem: json.loads(file.read_text()) for file in sorted((GRAFANA / "dashboards").glob("*.json"))}
PANELS = [panel for dashboard in DASHBOARDS.values() for panel in dashboard["panels"]]
TARGETS = [(panel, target) for panel in PANELS for target in panel.get("targets", ())]
RULES = [rule for group in yaml.safe_load((PROMETHEUS / "rules.yml").read_text())["groups"] for rule in group["rules"]]
VARIABLE = re.compile(r"\$(?:stream|view)\b")
QUERIES = [VARIABLE.sub(".*", target["expr"]) for _, target in TARGETS] + [rule["expr"] for rule in RULES]


@pytest.fixture(scope="module")
def labels() -> dict[str, set[str]]:
    """The labels of each metric of the endpoint, when there is one of each thing."""
    stream = replace(STREAM, partitions=[PartitionLag(0, 0, 9, 9, {"bronze": 8})], fresh_at=1, lag={"bronze": 1})
    status = replace(
        ALL_RIGHT,
        streams=[stream],
        views=[replace(VIEW, live=LIVE)],
        problems=[Problem("service:kafka", "x", "y")],
        certificates={"ca.pem": datetime(2027, 1, 1, tzinfo=UTC)},
    )
    collector, registry = StatusCollector(), CollectorRegistry()
    collector.publish(status)
    registry.register(collector)
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {family.name: set(family.samples[0].labels) for family in families}


def nodes(query: str, kind: type) -> list[Any]:
    """The parts of a query that are of a kind."""
    found: list[Any] = []
    promql.walk(promql.parse(query), lambda node: found.append(node) if isinstance(node, kind) else None)
    return found


def test_there_are_dashboards_and_rules() -> None:
    assert {*DASHBOARDS} == {"lockstep", "lockstep-views"}
    assert len(QUERIES) > 30


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_asks_for_metrics_and_labels_that_there_are(query: str, labels: dict[str, set[str]]) -> None:
    selected = nodes(query, promql.VectorSelector)
    assert selected
    for selector in selected:
        assert {matcher.name for matcher in selector.matchers.matchers} <= labels[selector.name]
    having = set().union(*(labels[selector.name] for selector in selected))
    for aggregate in nodes(query, promql.AggregateExpr):
        assert set(aggregate.modifier.labels if aggregate.modifier else ()) <= having


def test_a_legend_names_labels_that_its_query_has(labels: dict[str, set[str]]) -> None:
    for panel, target in TARGETS:
        selected = nodes(VARIABLE.sub(".*", target["expr"]), promql.VectorSelector)
        having = set().union(*(labels[selector.name] for selector in selected))
        assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= having, panel["title"]


def test_every_metric_is_on_a_dashboard(labels: dict[str, set[str]]) -> None:
    shown = {selector.name for query in QUERIES for selector in nodes(query, promql.VectorSelector)}
    assert labels.keys() == shown


def test_the_variables_are_values_of_labels(labels: dict[str, set[str]]) -> None:
    for dashboard in DASHBOARDS.values():
        for variable in dashboard["templating"]["list"]:
            found = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"])
            assert found and found[2] in labels[found[1]]
            assert variable["name"] == found[2]


def test_every_panel_has_the_datasource_that_is_provisioned() -> None:
    (provisioned,) = yaml.safe_load((GRAFANA / "datasources.yml").read_text())["datasources"]
    used = {(of["datasource"]["type"], of["datasource"]["uid"]) for panel, target in TARGETS for of in (panel, target)}
    assert used == {(provisioned["type"], provisioned["uid"])}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_no_panel_covers_another(name: str) -> None:
    dashboard = DASHBOARDS[name]
    assert dashboard["uid"] == name
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    for left, right in combinations([panel["gridPos"] for panel in dashboard["panels"]], 2):
        apart = any(a[at] + a[size] <= b[at] for a, b in ((left, right), (right, left)) for at, size in ("xw", "yh"))
        assert apart, (left, right)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in dashboard["panels"])


def test_a_container_has_the_same_configuration_and_another_address() -> None:
    here, there = ((PROMETHEUS / f"{name}.yml").read_text() for name in ("prometheus", "containers"))
    assert yaml.safe_load(there.replace("monitor:9464", "127.0.0.1:9464")) == yaml.safe_load(here)
