"""Values are found as words in the clear, and in the encodings in which programs write text."""

import base64
import json
from urllib.parse import quote

import pytest

from lockstep.erase.needles import Needles

ANN = "ann.müller@example.org"


def test_a_value_is_found_as_a_word_alone():
    needles = Needles({"subject": "user17"})
    assert needles.within(b'{"user_id": "user17"}') == {"subject in the clear"}
    assert needles.within(b"s-user17/user17.") == {"subject in the clear"}
    assert needles.within(b"user170 menuser17 user17_") == set()


@pytest.mark.parametrize("before", range(3))
def test_a_value_is_found_in_base64_wherever_it_begins(before):
    text = base64.b64encode(b"x" * before + ANN.encode() + b" and more")
    assert Needles({"subject": ANN}).within(text) == {f"subject in base64 ({before})"}


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("hex", ANN.encode().hex().encode()),
        ("HEX", ANN.encode().hex().upper().encode()),
        ("UTF-16", ANN.encode("utf-16-le")),
        ("JSON", json.dumps(ANN).encode()),
        ("a URL", quote(ANN, safe="").encode()),
    ],
)
def test_a_value_is_found_in_other_encodings(kind, text):
    assert Needles({"subject": ANN}).within(b"<" + text + b">") == {f"subject in {kind}"}


def test_a_value_that_other_texts_have_by_chance_is_not_looked_for_and_is_named():
    needles = Needles({"subject": "17", "value 1": "DE", "value 2": "1234567890", "value 3": ANN})
    assert needles.too_common == ["subject", "value 1", "value 2"]
    assert needles.words == [ANN]
    assert needles.within(b"17 DE 1234567890") == set()
