"""Errors that are put into the platform's code, to show that the simulation finds them: each takes one defence away."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.support.simulation.live import Checkpoint
from tests.support.simulation.seams import current

from lockstep import ledger
from lockstep.batch import plan as gold_plan
from lockstep.definition import Windowed
from lockstep.definition.view import MICROSECOND, Definition
from lockstep.definition.windowed import _floor
from lockstep.ingest import bronze
from lockstep.lake import Txn
from lockstep.ledger import event_time, history, planning
from lockstep.ledger.ranges import Range, TopicOffsets
from lockstep.live import frontier, quiet_partitions, sink
from lockstep.live.machine import Machines
from lockstep.live.watermarks import Watermarks
from lockstep.reconcile import inputs
from lockstep.reconcile.verdict import WindowVerdict
from lockstep.refine import silver
from lockstep.replay import promote, undo

Mutation = Callable[[pytest.MonkeyPatch], None]


def _watermark_of_the_fastest_partition(patch: pytest.MonkeyPatch) -> None:
    def watermark(contract: Any, newest: Mapping[int, int], partitions: Any) -> Any:
        known = [newest[p] for p in partitions if p in newest]
        return event_time.watermark(contract, {0: max(known)}, [0]) if known else None

    patch.setattr(gold_plan, "watermark", watermark)


def _watermark_without_silent_partitions(patch: pytest.MonkeyPatch) -> None:
    def watermark(contract: Any, newest: Mapping[int, int], partitions: Any) -> Any:
        return event_time.watermark(contract, newest, [p for p in partitions if p in newest])

    patch.setattr(gold_plan, "watermark", watermark)


def _clock_without_silent_partitions(patch: pytest.MonkeyPatch) -> None:
    def lowest(self: Watermarks, stream: str) -> int:
        newest, of = self.newest.get(stream), self.streams.get(stream)
        return min(newest.values()) - of.out_of_orderness if newest and of else 0

    patch.setattr(Watermarks, "_lowest", lowest)


def _quiet_partitions_are_passed(patch: pytest.MonkeyPatch) -> None:
    """A partition is never further behind than the newest record of its topic, less a minute: an idle timeout."""

    def passed(newest: Mapping[int, int]) -> dict[int, int]:
        return {p: max(at, max(newest.values()) - 60_000) for p, at in newest.items()}

    def watermark(contract: Any, newest: Mapping[int, int], partitions: Any) -> Any:
        return event_time.watermark(contract, passed(newest), partitions)

    def lowest(self: Watermarks, stream: str) -> int:
        newest = {**self.newest.get(stream, {})}
        self.newest[stream] = passed(newest)
        found = known(self, stream)
        self.newest[stream] = newest
        return found

    known = Watermarks._lowest
    patch.setattr(gold_plan, "watermark", watermark)
    patch.setattr(Watermarks, "_lowest", lowest)


def _partitions_asked_at_each_start(patch: pytest.MonkeyPatch) -> None:
    load = Watermarks.load

    def loaded(self: Watermarks, text: str) -> None:
        load(self, text)
        self.__post_init__()

    patch.setattr(Watermarks, "load", loaded)
    # The offsets of the first batch tell, too, until Spark removes them.
    patch.setattr(Checkpoint, "first_planned", lambda _: {})


def _final_without_the_lateness(patch: pytest.MonkeyPatch) -> None:
    until = gold_plan._until
    patch.setattr(
        gold_plan, "_until", lambda view, *more: until(replace(view, allowed_lateness=0 * MICROSECOND), *more)
    )


def _rows_at_the_limit_are_late(patch: pytest.MonkeyPatch) -> None:
    counts = Definition.counts
    patch.setattr(Definition, "counts", lambda view, time: counts(view, time).replace("<=", "<"))


def _events_are_due_too_early(patch: pytest.MonkeyPatch) -> None:
    due = Machines._due

    def early(self: Machines, entry: Any) -> tuple[str, int]:
        clock, at = due(self, entry)
        return clock, at - 1_500

    patch.setattr(Machines, "_due", early)


def _ranges_from_a_consumer_group(patch: pytest.MonkeyPatch) -> None:
    """The position moves when the range is planned, as with automatic commits."""

    def plan(previous: Sequence[Range], log: TopicOffsets, limit: int) -> list[Range]:
        world = current()
        group = world.__dict__.setdefault("group", {})
        starts = [max(r.end, group.get((r.topic, r.partition), 0)) for r in previous]
        known = [replace(r, start=at, end=at) for r, at in zip(previous, starts, strict=True)]
        planned = planning.plan(known, log, limit)
        group.update({(r.topic, r.partition): r.end for r in planned})
        return planned

    patch.setattr(bronze, "plan", plan)


def _shares_beyond_the_backlog(patch: pytest.MonkeyPatch) -> None:
    shares = planning._shares
    patch.setattr(
        planning, "_shares", lambda backlog, limit: {p: n + (n > 0) for p, n in shares(backlog, limit).items()}
    )


def _added_partitions_from_their_end(patch: pytest.MonkeyPatch) -> None:
    def origin(settings: Any, table: str) -> dict[int, int]:
        newest, added = ledger.latest(settings, table), current().kafka.added
        ends = {r.partition: r.end for r in newest.ranges if (r.topic, r.partition) in added} if newest else {}
        return {**known(settings, table), **ends}

    known = history.origin
    patch.setattr(history, "origin", origin)


def _no_transaction_ids(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ledger, "txn", lambda table, record: Txn(f"{table}:{uuid.uuid4()}", record["seq"]))


def _no_transaction_ids_live(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sink, "Txn", lambda app, number: Txn(f"{app}:{uuid.uuid4()}", number))


def _retries_take_new_ranges(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(silver, "_pinned", lambda *_: [])


def _heartbeats_from_the_future(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(quiet_partitions, "_BEHIND", -4_000)


def _only_one_window_is_touched(patch: pytest.MonkeyPatch) -> None:
    def windows_of(self: Windowed, first: Any, last: Any) -> Any:
        return _floor(first, self.slide), _floor(last, self.slide) + self.slide

    patch.setattr(Windowed, "windows_of", windows_of)


def _promotions_do_not_catch_up(patch: pytest.MonkeyPatch) -> None:
    def caught_up(writer: Any, target: Any, _shadow: Any, span: Any, _entry: Any) -> Any:
        return promote._shadow_rows(writer, f"gold.{target.view}"), span

    patch.setattr(promote, "_caught_up", caught_up)


def _undo_takes_later_rows_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(undo, "_changed_since", lambda view, _writer, now, *_: now.where("false").select(*view.key))


def _live_is_final_too_early(patch: pytest.MonkeyPatch) -> None:
    def newest_at(entries_: Any, position: Mapping[int, int]) -> dict[int, int]:
        # Of the newest entry, whether the position covers it or not.
        newest = next(iter(entries_), None)
        return dict(newest.newest) if newest else {}

    patch.setattr(frontier, "newest_at", newest_at)


def _differences_are_settled(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(WindowVerdict, "open", property(lambda _: False))


def _windows_of_one_layer_are_compared(patch: pytest.MonkeyPatch) -> None:
    """Those that the faster layer has closed, and the other has not."""
    patch.setattr(inputs, "min", max, raising=False)


MUTATIONS: Mapping[str, Mutation] = {
    "the watermark is that of the fastest partition": _watermark_of_the_fastest_partition,
    "batch does not wait for a partition without records": _watermark_without_silent_partitions,
    "live does not wait for a partition without records": _clock_without_silent_partitions,
    "a partition that is quiet for a minute is passed": _quiet_partitions_are_passed,
    "live asks for the partitions at each start": _partitions_asked_at_each_start,
    "gold is final without the lateness": _final_without_the_lateness,
    "a row exactly at the limit is late": _rows_at_the_limit_are_late,
    "a live event is processed 1.5 s too early": _events_are_due_too_early,
    "ranges start at a consumer group's position": _ranges_from_a_consumer_group,
    "a share exceeds its backlog by one offset": _shares_beyond_the_backlog,
    "refine takes an added partition from its end": _added_partitions_from_their_end,
    "batch writes without transaction ids": _no_transaction_ids,
    "live writes without transaction ids": _no_transaction_ids_live,
    "a retry of refine takes new ranges": _retries_take_new_ranges,
    "heartbeats are stamped four seconds ahead": _heartbeats_from_the_future,
    "a row touches one of its windows only": _only_one_window_is_touched,
    "a promotion does not take what came since the shadow": _promotions_do_not_catch_up,
    "an undo takes back what came since the promotion": _undo_takes_later_rows_back,
    "live counts as final beyond its position": _live_is_final_too_early,
    "reconciliation settles a window that differs": _differences_are_settled,
    "reconciliation compares what one layer only has closed": _windows_of_one_layer_are_compared,
}
