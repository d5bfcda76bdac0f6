"""The events that a receiver of OpenLineage gets of a step."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.commits import ledger_record, ranges, write_commit
from tests.support.openlineage import complaints, facets
from tests.support.receivers import Web, served

from lockstep.lineage import step as tracing
from lockstep.lineage.step import step
from lockstep.settings import Settings

READS, WRITES = ["silver.page_views", "silver.logins"], ["gold.page_views_per_minute"]


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setattr(tracing, "_silent_until", 0.0)
    with served(Web()) as web:
        monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "http")
        monkeypatch.setenv("OPENLINEAGE__TRANSPORT__URL", f"http://127.0.0.1:{web.server_address[1]}")
        monkeypatch.setenv("OPENLINEAGE__TRANSPORT__RETRY", '{"total": 0}')
        yield web


def received(web: Web) -> list[dict[str, Any]]:
    """The events, as the specification accepts them."""
    events = [json.loads(body) for _, body in web.taken]
    assert [complaint for event in events for complaint in complaints(event)] == []
    return events


def commit(settings: Settings, version: int = 1) -> None:
    """A commit of the run to gold, which has taken offsets of one stream."""
    record = ledger_record(
        ranges({0: (5, 9), 1: (7, 7)}),
        counts={"counted": 4},
        span=["2026-11-20T10:00:00+00:00", "2026-11-20T11:00:00+00:00"],
        sources={"silver.page_views": 12, "silver.logins": 3},
    )
    write_commit(settings, WRITES[0], version, record, rows=2)


def test_a_step_is_told_with_its_versions_and_offsets(settings: Settings, receiver: Web) -> None:
    with step(settings, "roll_up.page_views_per_minute", "run-1", READS, WRITES):
        commit(settings)
    begun, ended = received(receiver)
    assert (begun["eventType"], ended["eventType"]) == ("START", "COMPLETE")
    assert begun["run"]["runId"] == ended["run"]["runId"]
    assert begun["job"]["name"] == "roll_up.page_views_per_minute"
    assert begun["eventTime"] < ended["eventTime"]

    views, logins = ended["inputs"]
    assert (views["namespace"], views["name"]) == ("file", f"{settings.lake}/silver/page_views")
    assert views["facets"]["version"]["datasetVersion"] == "12"
    assert views["inputFacets"]["lockstep_offsets"]["topics"] == {"page_views": {"0": [5, 9]}}
    assert logins["facets"]["version"]["datasetVersion"] == "3"
    assert logins["inputFacets"] == {}

    (gold,) = ended["outputs"]
    assert gold["name"] == f"{settings.lake}/gold/page_views_per_minute"
    assert gold["facets"]["version"]["datasetVersion"] == "1"
    assert gold["outputFacets"]["outputStatistics"]["rowCount"] == 2
    assert gold["outputFacets"]["lockstep_commit"]["counts"] == {"counted": 4}
    assert ended["run"]["facets"]["lockstep_step"]["runId"] == "run-1"


def test_a_wrong_value_is_none_that_the_specification_accepts(settings: Settings, receiver: Web) -> None:
    with step(settings, "roll_up.page_views_per_minute", "run-1", READS, WRITES):
        commit(settings)
    ended = received(receiver)[-1]
    assert len([facet for facet in facets(ended) if facet["_schemaURL"].startswith("urn:lockstep:")]) == 3
    assert complaints(ended | {"eventTime": 7}) != []
    for facet in facets(ended):
        before = dict(facet)
        facet.update({key: [1] for key in facet} | {"_schemaURL": facet["_schemaURL"]})
        assert complaints(ended) != [], before
        facet.update(before)


def test_a_topic_has_the_name_that_openlineage_gives_topics(settings: Settings, receiver: Web) -> None:
    with step(settings, "ingest.page_views", "run-1", ["kafka.page_views"], ["bronze.page_views"]):
        write_commit(settings, "bronze.page_views", 1, ledger_record(ranges({0: (0, 4)})), rows=4)
    (topic,) = received(receiver)[-1]["inputs"]
    assert (topic["namespace"], topic["name"]) == (f"kafka://{settings.kafka}", "page_views")
    assert topic["inputFacets"]["lockstep_offsets"]["topics"] == {"page_views": {"0": [0, 4]}}


def test_a_step_that_fails_says_why_and_what_it_had_written(settings: Settings, receiver: Web) -> None:
    with pytest.raises(ValueError, match="no disk"), step(settings, "refine.x", "run-1", [], WRITES):
        commit(settings)
        raise ValueError("no disk")
    begun, ended = received(receiver)
    assert (begun["eventType"], ended["eventType"]) == ("START", "FAIL")
    assert ended["run"]["facets"]["errorMessage"]["message"] == "ValueError: no disk"
    assert len(ended["outputs"]) == 1


def test_a_step_that_writes_nothing_is_not_told(settings: Settings, receiver: Web) -> None:
    commit(settings)
    with step(settings, "roll_up.page_views_per_minute", "run-1", READS, WRITES):
        pass
    assert receiver.asked == 0


def test_without_openlineages_variables_nothing_is_told(
    settings: Settings, receiver: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENLINEAGE__TRANSPORT__TYPE")
    with step(settings, "roll_up.page_views_per_minute", "run-1", READS, WRITES):
        commit(settings)
    assert receiver.asked == 0


def test_a_receiver_that_fails_fails_no_step_and_is_left_alone_for_a_while(
    settings: Settings, receiver: Web, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers = [500] * 10
    for version in (1, 2):
        with step(settings, "roll_up.page_views_per_minute", "run-1", READS, WRITES):
            commit(settings, version)
    assert receiver.asked == 1
    assert "The OpenLineage events of roll_up.page_views_per_minute were not sent" in caplog.text
