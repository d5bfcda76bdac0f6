"""What the scanner looks for: values, as words, in the clear and in the encodings in which programs write text. Pure."""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

# A shorter value, or a small number, is a word of other texts by chance: offsets, ports, country codes.
SHORTEST = 6
_SHORTEST_NUMBER = 12
# What a word does not end at: u1 is not a part of u12.
WORD = "[A-Za-z0-9_]"


@dataclass(frozen=True)
class _Needle:
    name: str
    text: bytes = field(repr=False)
    pattern: re.Pattern[bytes] = field(repr=False)


class Needles:
    """Values to look for.

    Args:
        values: by a name that may be shown, such as ``subject``, the values. Those that are words of other texts too are not
            looked for: ``too_common`` names them.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = {name: value for name, value in values.items() if is_distinctive(value)}
        self.too_common = sorted(values.keys() - self.values.keys())
        self._needles = [needle for name, value in self.values.items() for needle in _encodings(name, value)]

    @property
    def words(self) -> list[str]:
        """The values that are looked for."""
        return sorted({*self.values.values()})

    def within(self, data: bytes) -> set[str]:
        """What the bytes have, such as ``subject in base64``."""
        return {needle.name for needle in self._needles if needle.text in data and needle.pattern.search(data)}

    def within_any(self, parts: Iterable[bytes]) -> set[str]:
        """What any of these bytes have."""
        return {name for part in parts for name in self.within(part)}


def as_word(text: str) -> str:
    """A regular expression (of Java, Python and PostgreSQL) for the text as a word."""
    return f"(?<!{WORD}){re.escape(text)}(?!{WORD})"


def in_text(value: str) -> str:
    """A regular expression (of the same) for the value in a text: as a word, in the clear or as JSON escapes it."""
    escaped = json.dumps(value)[1:-1]
    return "|".join(map(as_word, dict.fromkeys((value, escaped))))


def in_bytes(value: str) -> str:
    """The same for bytes that were read as Latin-1."""
    return in_text(value).encode().decode("latin-1")


def is_distinctive(value: str) -> bool:
    """Whether a text that has the value as a word is surely about it."""
    return len(value.encode()) >= (_SHORTEST_NUMBER if value.isdigit() else SHORTEST)


def _encodings(name: str, value: str) -> Iterator[_Needle]:
    raw = value.encode()
    seen = {raw}
    yield _Needle(f"{name} in the clear", raw, re.compile(as_word(raw.decode("latin-1")).encode("latin-1")))
    written = {"JSON": json.dumps(value)[1:-1].encode(), "a URL": quote(value, safe="").encode()}
    written |= {"UTF-16": value.encode("utf-16-le"), "hex": raw.hex().encode(), "HEX": raw.hex().upper().encode()}
    written |= {f"base64 ({shift})": text for shift, text in enumerate(_base64(raw))}
    for kind, text in written.items():
        if text not in seen:
            seen.add(text)
            yield _Needle(f"{name} in {kind}", text, re.compile(re.escape(text)))


def _base64(raw: bytes) -> Iterator[bytes]:
    """The part of the value's base64 that does not depend on what is around it, for each place where it may begin."""
    for before in range(3):
        text = base64.b64encode(b"\0" * before + raw)
        first, last = -(-before * 8 // 6), (before + len(raw)) * 8 // 6
        yield text[first:last]
