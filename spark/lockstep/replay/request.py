"""What a replay may be asked to do: one model for its file, its command line and its form. Pure.

A request names the rows to compute again in one of three ways: ``from`` and ``to`` (event time, UTC), ``offsets`` of one topic,
or ``versions`` of one table. All other fields narrow it down, or say who approves it. Nothing else spells the fields: the
options and the form are derived from the JSON schema of this model.
"""

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, NonNegativeInt, StringConstraints, model_validator

from lockstep.errors import LockstepError

Layer = Literal["bronze", "silver", "gold"]
# Upstream first.
LAYERS: tuple[Layer, ...] = ("bronze", "silver", "gold")
# [0-9], because \d also matches the digits of other scripts.
VERSIONS = r"^(bronze|silver|gold)\.([a-z][a-z0-9_]*)@([0-9]+)\.\.([0-9]+)$"
# Topics, which may have dots (those of a database's tables), and streams and views. Kafka allows 249 characters; ours are far
# below 100.
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.]*$", max_length=100)]
# Text of a person: any characters. Three, so that it is not left out with a dot; 300, so that a list of replays can be read.
Reason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=3, max_length=300)]


class ReplayRefused(LockstepError):
    """A replay, or a stage of one, that is not allowed. The message says why in one sentence."""


def _utc(moment: datetime) -> datetime:
    """Times without a zone are UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _check_order(offsets: dict[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    for partition, (start, end) in offsets.items():
        if start >= end:
            raise ValueError(f"offsets of partition {partition} end ({end}) before they start ({start})")
    return offsets


Time = Annotated[datetime, AfterValidator(_utc)]
Offsets = Annotated[dict[NonNegativeInt, tuple[NonNegativeInt, NonNegativeInt]], AfterValidator(_check_order)]


class Request(BaseModel):
    """One request. The order of the fields is their order in the form."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    reason: Reason = Field(title="Reason", description="For the record")
    start: Time | None = Field(
        None, alias="from", title="From", description="The first window or instant (event time; UTC, ISO)"
    )
    end: Time | None = Field(
        None, alias="to", title="To (left out itself)", description="The end, itself left out (event time; UTC, ISO)"
    )
    topics: tuple[Name, ...] = Field((), title="Topics", description="None: those that the views read, or all")
    views: tuple[Name, ...] = Field((), title="Views", description="None: all that read the topics")
    layers: tuple[Layer, ...] = Field(
        ("gold",),
        title="Layers",
        description="Gold alone, silver and gold, or all three",
        min_length=1,
        examples=list(LAYERS),
        json_schema_extra={"uniqueItems": True},
    )
    late: bool = Field(False, title="Late rows", description="Rows that came too late for a view count too")
    dry_run: bool = Field(False, title="Dry run", description="Stop after the diff, and keep nothing")
    approve: Literal["by_hand", "by_rule"] = Field(
        "by_hand", title="Approved by", description="Who decides after the diff"
    )
    max_changed_percent: float = Field(
        # The default stops a replay that changes much more than its author expects, and lets through late rows.
        10,
        ge=0,
        le=100,
        title="Changed windows, %",
        description="At most this share of the windows may change",
    )
    max_changed_windows: NonNegativeInt | None = Field(
        None, title="Changed windows", description="And at most so many windows"
    )
    offsets: Offsets | None = Field(
        None, title="Offsets", description='Of the one topic, by partition: {"0": [start, end], …}'
    )
    versions: Annotated[str, StringConstraints(pattern=VERSIONS)] | None = Field(
        None, title="Versions", description="What some versions of a table brought, such as bronze.<stream>@12..15"
    )

    @model_validator(mode="after")
    def _check_fields_together(self) -> Self:
        by_time = self.start is not None or self.end is not None
        if [by_time, self.offsets is not None, self.versions is not None].count(True) != 1:
            raise ValueError("give exactly one of: from and to, offsets, versions")
        if by_time and (self.start is None or self.end is None):
            raise ValueError("from and to belong together: give both")
        if self.start and self.end and self.start >= self.end:
            raise ValueError(f"to ({self.end:%F %T} UTC) must be later than from ({self.start:%F %T} UTC)")
        if self.late and "gold" not in self.layers:
            raise ValueError("late rows are left out by views: name the layer gold to merge them")
        if self.offsets is not None and len(self.topics) != 1:
            raise ValueError("offsets are of exactly one topic: name it in topics")
        if self.versions and self.version_range[0] > self.version_range[1]:
            raise ValueError(f"versions {self.versions} end before they start")
        return self

    @property
    def version_range(self) -> tuple[int, int]:
        """The first and the last of ``versions``, both included."""
        match = re.match(VERSIONS, self.versions or "")
        return (int(match[3]), int(match[4])) if match else (0, -1)

    @property
    def table(self) -> str:
        """The table of ``versions``, ``layer.name``."""
        return (self.versions or "").partition("@")[0]

    def as_dict(self) -> dict[str, Any]:
        """The fields as a file spells them, without those that have their default."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
