"""What is asked of an erasure, and what its receipt says to people."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from lockstep.contracts import CONTRACTS
from lockstep.erase import request, run
from lockstep.erase.describe import lines
from lockstep.erase.request import ErasureRefused, asked_for, check_signature, parse_ranges
from lockstep.settings import Settings


@pytest.fixture
def settings(tmp_path):
    """A platform whose lake has no table."""
    return Settings(home=tmp_path, lake=str(tmp_path / "lake"))


def test_a_person_is_looked_for_in_streams_that_have_no_table_yet(settings):
    found = asked_for(settings, "u1", []).contracts
    assert {contract.name for contract in found} == {name for name, of in CONTRACTS.items() if of.subject}


def test_a_person_is_refused_where_no_contract_says_whose_a_row_is(settings, monkeypatch):
    nobody = {name: replace(of, subject="") for name, of in CONTRACTS.items() if of.kind == "events"}
    monkeypatch.setattr(request, "CONTRACTS", nobody)
    with pytest.raises(ErasureRefused, match="No contract names a subject"):
        asked_for(settings, "u1", [])


def test_an_erasure_is_refused_while_an_environment_has_a_sample(settings):
    (Path(settings.lake) / "_environments" / "dev" / "bronze").mkdir(parents=True)
    with pytest.raises(ErasureRefused, match=r"`lockstep --env dev remove`, and apply it again afterwards"):
        run.erase(cast(Any, None), settings, asked_for(settings, "u1", []), "ann", "ticket 4711")


def test_ranges_name_offsets_by_topic_and_partition():
    found = parse_ranges(["page_views:0:120-123", "page_views:0:122-124", "shop.public.users:2:0-1"])
    assert found == {"page_views": {0: (120, 121, 122, 123)}, "shop.public.users": {2: (0,)}}


@pytest.mark.parametrize("text", ["page_views:0:5-5", "page_views:0", "page_views:0:5", "a b:0:1-2"])
def test_what_is_no_range_is_refused_with_an_example(text):
    with pytest.raises(ErasureRefused, match="such as visits:0:120-125"):
        parse_ranges([text])


def test_a_range_of_a_whole_topic_is_refused():
    with pytest.raises(ErasureRefused, match="erase it in parts"):
        parse_ranges(["page_views:0:0-1000000"])


def test_an_erasure_needs_somebody_who_asks_and_a_reason():
    for by, reason in (("", "ticket 4711"), ("ann", " ")):
        with pytest.raises(ErasureRefused, match="is signed"):
            check_signature("u1", by, reason)
    check_signature("u1", "ann", "ticket 4711")


def test_a_reason_that_names_who_is_to_be_forgotten_is_refused_because_it_stays():
    with pytest.raises(ErasureRefused, match="kept for ever"):
        check_signature("u1", "ann", "u1 has asked for it")
    check_signature("u1", "ann", "u12 is somebody else")


def test_a_receipt_says_what_was_erased_and_what_is_left():
    kept = {
        "records": {"users": 1200},
        "places": {"lake": {"before": 3, "after": 0}, "home": {"before": 2, "after": 1}},
        "left": [{"place": "home", "where": "tmp/x", "what": "the subject in the clear"}],
        "kafka_still_has": {"users-0": (5, 9), "alerts-1": (3, 3)},
        "kafka_keeps_until": {"alerts-1": "2026-12-05T10:30:00+00:00"},
        "until_compaction": {"changelog.users-0": (2, 2)},
        "too_common_to_look_for": ["value 1"],
        "until_spark_starts_again": ["tmp/spark/shuffle_1.data"],
    }
    assert lines(kept) == [
        "erased   users: 1,200 records",
        "empty    lake: 3 traces before, 0 after",
        "LEFT     home: 2 traces before, 1 after",
        "LEFT     home: tmp/x has the subject in the clear",
        "kept     users-0: erased records from 5 to 9, until the broker's retention takes them",
        "kept     alerts-1: sent records from 3 to 3, until the broker's retention takes them, by 2026-12-05 10:30 UTC",
        "kept     tmp/spark/shuffle_1.data: until Spark starts again",
        "kept     changelog.users-0: replaced records from 2 to 2, until compaction removes them",
        "unseen   too common to be looked for in texts: value 1",
    ]
