"""The form of a replay is derived from the request, and looks to a person as they know it."""

from jsonschema import ValidationError, validate
from pytest import mark, raises

from lockstep.replay.form import fields

FORM = fields({"topics": ["page_views"], "views": ["page_views_per_minute"]})
LABELS = [
    ("Reason", None),
    ("From", None),
    ("To (left out itself)", None),
    ("Topics", None),
    ("Views", None),
    ("Layers", None),
    ("Late rows", None),
    ("Dry run", None),
    ("Approved by", None),
    ("Changed windows, %", "The rule"),
    ("Changed windows", "The rule"),
    ("Offsets", "Instead of a time"),
    ("Versions", "Instead of a time"),
]


def schema(field):
    return {name: value for name, value in FORM[field].items() if name not in ("default", "description")}


def test_the_labels_and_sections_of_the_form_come_in_their_order():
    assert [(field["title"], field.get("section")) for field in FORM.values()] == LABELS


def test_only_the_reason_must_be_filled_in():
    defaults = {name: field["default"] for name, field in FORM.items() if "default" in field}
    assert FORM.keys() - defaults.keys() == {"reason"}
    for name, value in defaults.items():
        validate(value, schema(name))


def test_every_field_is_explained_and_of_a_type_that_the_page_can_show():
    assert [name for name, field in FORM.items() if not field["description"] or "anyOf" in field] == []
    assert FORM["from"] == FORM["to"] | {"title": "From"}
    assert FORM["from"]["format"] == "date-time"
    assert FORM["views"]["examples"] == ["page_views_per_minute"]
    assert FORM["layers"]["examples"] == ["bronze", "silver", "gold"]
    assert FORM["approve"]["values_display"]["by_rule"] == "The rule below"


@mark.parametrize(
    ("field", "value"),
    [
        ("reason", "R&D's {{ x }}; --"),
        ("topics", None),
        ("topics", ["page_views"]),
        ("versions", ""),
        ("versions", "bronze.page_views@1..2"),
        ("offsets", {"0": [5, 9]}),
        ("max_changed_windows", 3),
    ],
)
def test_what_a_request_may_be_the_form_sends(field, value):
    validate(value, schema(field))


@mark.parametrize(
    ("field", "value"),
    [
        ("reason", "no"),
        ("topics", ["x; --"]),
        ("layers", []),
        ("layers", ["gold", "gold"]),
        ("versions", "bronze.page_views"),
        ("offsets", {"0": [5]}),
        ("offsets", {"0": [-1, 5]}),
        ("max_changed_percent", 101),
        ("approve", "nobody"),
    ],
)
def test_what_a_request_may_not_be_the_form_refuses(field, value):
    with raises(ValidationError):
        validate(value, schema(field))
