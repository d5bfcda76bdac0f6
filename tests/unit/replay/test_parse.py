"""What a replay may be asked to do. A request that is not allowed is refused with one sentence, before a table is read."""

from datetime import UTC, datetime

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.support.paths import CHECKOUT

from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.replay.parse import load, parse, scope
from lockstep.replay.request import ReplayRefused, Request

DAY = {"reason": "the counting of pages was wrong", "from": "2026-11-10T00:00Z", "to": "2026-11-11T00:00Z"}
VIEW = "page_views_per_minute"
READERS = {view.name for view in VIEWS.values() if "page_views" in view.streams}


def test_a_day_of_one_view_is_understood():
    request = parse(DAY | {"views": [VIEW], "dry_run": True, "offsets": None, "topics": [], "versions": ""})
    assert (request.start, request.end) == (datetime(2026, 11, 10, tzinfo=UTC), datetime(2026, 11, 11, tzinfo=UTC))
    assert scope(request).views == (VIEW,)
    assert scope(request).streams == VIEWS[VIEW].streams
    assert request.dry_run


def test_without_a_name_everything_is_meant():
    everything = scope(parse(DAY))
    assert set(everything.views) == set(VIEWS)
    assert set(everything.streams) == set(CONTRACTS)


def test_a_topic_brings_the_views_that_read_it_by_either_name():
    assert set(scope(parse(DAY | {"topics": ["page_views"]})).views) == READERS
    assert scope(parse(DAY | {"topics": ["shop.public.users"]})).streams == ("users",)


def test_times_without_a_zone_are_utc_and_others_are_converted():
    request = parse(DAY | {"from": "2026-11-10 00:00:00", "to": "2026-11-10T01:30:00+01:00"})
    assert (request.start.hour, request.end.hour, request.end.minute) == (0, 0, 30)


def test_offsets_and_versions_are_understood():
    by_offsets = parse({"reason": "one bad batch", "topics": ["page_views"], "offsets": {"0": [5, 9]}})
    assert by_offsets.offsets == {0: (5, 9)}
    by_versions = parse({"reason": "one bad batch", "versions": "bronze.page_views@12..15"})
    assert (by_versions.table, by_versions.version_range) == ("bronze.page_views", (12, 15))
    assert scope(by_versions).streams == ("page_views",)


REFUSED = {
    "to (2026-11-10 00:00:00 UTC) must be later": DAY | {"to": DAY["from"]},
    "to (2026-11-09": DAY | {"to": "2026-11-09"},
    "from and to belong together": {"reason": "some reason", "from": "2026-11-10"},
    "exactly one of": {"reason": "some reason"},
    "There is no topic carts": DAY | {"topics": ["carts"]},
    "There is no view per_hour": DAY | {"views": ["per_hour"]},
    "reads none of the topics": DAY | {"views": [VIEW], "topics": ["payments"]},
    "offsets of partition 0 end": {"reason": "some reason", "topics": ["page_views"], "offsets": {0: [9, 5]}},
    "exactly one topic": {"reason": "some reason", "offsets": {0: [5, 9]}},
    "versions": {"reason": "some reason", "versions": "bronze.page_views@15..12"},
    "leave out silver": DAY | {"layers": ["bronze", "gold"]},
    "add the layer gold": DAY | {"layers": ["silver"], "topics": ["page_views"]},
    "there is no field speed": DAY | {"speed": 9},
    "reason": {k: v for k, v in DAY.items() if k != "reason"},
    "approve": DAY | {"approve": "nobody"},
    "max_changed_percent": DAY | {"approve": "by_rule", "max_changed_percent": 101},
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_makes_no_sense_is_refused_with_a_sentence(sentence):
    with pytest.raises(ReplayRefused) as refusal:
        parse(REFUSED[sentence])
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


ATTACKS = [
    "'; DROP TABLE gold.page_views; --",
    "1 OR 1=1 --",
    'x" UNION SELECT * FROM ops.replays',
    "delete from gold",
    "{{ var.value.secret }}",
    "{% for x in y %}",
    "$(rm -rf home)",
    "`id`",
    "a | sh",
    "page_views && id",
    "../../etc/passwd",
    "/etc/passwd",
    "~/.ssh",
    "a\nb",
    "a\x00b",
]
FIELDS = ["from", "to", "versions", "approve", "max_changed_percent", "dry_run"]


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("field", [*FIELDS, "topics", "views", "layers", "offsets"])
def test_sql_jinja_shell_and_paths_are_refused_in_every_field_but_the_reason(field, attack):
    value = attack if field in FIELDS else {attack: [1, 2]} if field == "offsets" else [attack]
    with pytest.raises(ReplayRefused) as refusal:
        parse(DAY | {field: value})
    assert attack not in str(refusal.value), "what was refused is not repeated"


def test_an_unknown_field_with_sql_in_its_name_is_refused():
    with pytest.raises(ReplayRefused) as refusal:
        parse(DAY | {"x'; drop table y": 1})
    assert "drop" not in str(refusal.value), "what was refused is not repeated"


REASONS = [
    *ATTACKS,
    "R&D asked for it",
    "the customers' ids were swapped",
    "we select the days from March again",
    "fix for 'late' rows",
    "refund of $5 missed",
    "{{ var.value.x }}",
    "'); DROP TABLE gold.x; --",
    "[bold]für Zoë[/bold] \u202e\U0001f600",
]


@pytest.mark.parametrize("reason", REASONS)
def test_any_text_is_a_reason_and_arrives_byte_for_byte(reason):
    request = parse(DAY | {"reason": reason})
    assert request.reason == reason
    in_file, in_record = yaml.safe_dump(request.as_dict()), request.model_dump_json(by_alias=True)
    assert parse(yaml.safe_load(in_file)).reason == reason
    assert Request.model_validate_json(in_record).reason == reason


@pytest.mark.parametrize("reason", ["", "no", "x" * 301])
def test_a_reason_is_neither_empty_nor_a_novel(reason):
    with pytest.raises(ReplayRefused, match="reason"):
        parse(DAY | {"reason": reason})


@given(
    st.dictionaries(
        st.sampled_from(["from", "to", "offsets", "versions", "topics", "layers", "views", "reason", "dry_run"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.datetimes(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
            max_leaves=4,
        ),
    )
)
def test_anything_else_is_refused_too_never_an_error(data):
    try:
        assert isinstance(parse(data), Request)
    except ReplayRefused as refusal:
        assert str(refusal).endswith(".")


def test_prose_with_an_apostrophe_is_a_reason():
    assert parse(DAY | {"reason": "The shop's pages, counted twice (issue #12): 5 % more - see notes"})


def test_a_request_written_out_is_the_same_request():
    request = parse(DAY | {"views": [VIEW], "approve": "by_rule", "max_changed_windows": 3, "dry_run": True})
    assert parse(yaml.safe_load(yaml.safe_dump(request.as_dict()))) == request


def test_the_example_of_the_documentation_is_a_request():
    assert load(CHECKOUT / "docs" / "examples" / "replay.yaml")


def test_a_file_that_cannot_be_read_says_so(tmp_path):
    with pytest.raises(ReplayRefused, match="cannot be read"):
        load(tmp_path / "none.yaml")
    (tmp_path / "list.yaml").write_text("- 1")
    with pytest.raises(ReplayRefused, match="mapping"):
        load(tmp_path / "list.yaml")
