"""Whether a schema can read what an earlier version of it has written."""

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from lockstep.formats import Format, SchemaInvalid


def unreadable(kind: Format, before: str, now: str, message: str = "") -> list[str]:
    """Why values of the schema before cannot be read by the schema of now; empty: they can.

    Args:
        message: of Protobuf, the full name of the message; empty: the first one of each file.

    Raises:
        SchemaInvalid: one of them is no schema.
    """
    return [*(_of_avro(before, now) if kind == "avro" else _of_protobuf(before, now, message))]


def _of_avro(before: str, now: str) -> Iterator[str]:
    from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
    from avro.errors import AvroException
    from avro.schema import parse

    try:
        checker: Any = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]
        found = checker.get_compatibility(parse(now), parse(before))
    except AvroException as error:
        raise SchemaInvalid(f"it is no Avro schema: {error}") from error
    if found.compatibility is not SchemaCompatibilityType.compatible:
        kinds = ", ".join(sorted(kind.value.replace("_", " ") for kind in found.incompatibilities))
        yield f"{kinds}: {'; '.join(sorted(found.messages))} (at {', '.join(sorted(found.locations))})"


def _of_protobuf(before: str, now: str, message: str) -> Iterator[str]:
    from lockstep.formats.protobuf import descriptor_of

    yield from _of_message(descriptor_of(before, message), descriptor_of(now, message), set())


def _of_message(before: Descriptor, now: Descriptor, seen: set[str]) -> Iterator[str]:
    if now.full_name in seen:
        return
    seen.add(now.full_name)
    if before.full_name != now.full_name:
        yield f"the message {before.full_name} is {now.full_name} now"
    for field in before.fields:
        same_number, same_name = now.fields_by_number.get(field.number), now.fields_by_name.get(field.name)
        if same_number is None:
            if same_name is not None:
                yield f"{now.full_name}.{field.name} had the number {field.number}, and has {same_name.number}"
        elif _shape(field) != _shape(same_number):
            yield (
                f"the field {field.number} of {now.full_name} was {_named(field)}, and is {_named(same_number)}: "
                "give the new one another number"
            )
        elif field.message_type:
            yield from _of_message(field.message_type, same_number.message_type, seen)


def _shape(field: FieldDescriptor) -> tuple[str | int, bool]:
    from lockstep.formats.protobuf import on_the_wire

    return on_the_wire(field), field.is_repeated


def _named(field: FieldDescriptor) -> str:
    kind = {number: name for name, number in vars(FieldDescriptor).items() if name.startswith("TYPE_")}[field.type]
    return f"{'repeated ' if field.is_repeated else ''}{kind.removeprefix('TYPE_').lower()} {field.name}"
