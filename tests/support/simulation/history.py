"""Replays: an interval is computed again in a shadow, compared, promoted, perhaps undone: while all goes on."""

from collections.abc import Callable
from datetime import timedelta
from enum import Enum

from tests.support.simulation import engine
from tests.support.simulation.lake import Row, Rows
from tests.support.simulation.streams import VIEWS
from tests.support.simulation.world import Broken, World

from lockstep.definition import View
from lockstep.definition.tables import gold_of
from lockstep.definition.view import BEGINNING, END
from lockstep.replay import run as replays
from lockstep.replay.request import ReplayRefused, Request

UNDONE = "undo restores the rows"


class Purpose(Enum):
    """Why history is computed again."""

    NOTHING = "nothing has changed"
    REPAIR = "somebody has spoiled rows of gold"
    LATE = "late rows count too, and then it is undone"


class History:
    """At most one replay at a time."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.number = 0
        self.purpose: Purpose | None = None
        # The views whose gold is not what the log says, until the replay has ended.
        self.changed: set[str] = set()
        self._rest: list[Callable[[], object]] = []

    def step(self, run_id: str) -> None:
        """The next stage of the replay, or a new replay."""
        if self.purpose is None:
            self._plan()
        self.world.say(f"replay {self.number}, {len(self._rest)} stages to go")
        self._run_id, done = run_id, True
        try:
            self._rest[0]()
        except ReplayRefused as refused:
            # There is nothing to replay yet.
            is_spoiled = self.purpose is Purpose.REPAIR and self.changed
            if is_spoiled or len(self._rest) < self._stages:
                raise
            self.world.say(f"  {refused}")
            self._rest, done = [], False
        else:
            self._rest.pop(0)
        if not self._rest:
            self.world.met[f"replayed: {self.purpose.value}"] += bool(done)
            self.purpose, self.changed = None, set()

    def _plan(self) -> None:
        dice, self.number = self.world.random, self.number + 1
        self.purpose = dice.choice([*Purpose])
        name = f"replay-{self.number}"
        views = dice.sample(sorted(VIEWS), dice.randint(1, len(VIEWS)))
        layers = ("gold",)
        if self.purpose is Purpose.NOTHING and dice.random() < 0.5:
            views, layers = [*VIEWS], ("silver", "gold")
        now = engine.at(self.world.now)
        low, high = sorted(now - timedelta(milliseconds=dice.randint(0, 120_000)) for _ in range(2))
        if self.purpose is not Purpose.NOTHING or low == high:
            low, high = BEGINNING, END
        request = Request(
            reason="a simulation",
            start=low,
            end=high,
            views=tuple(views) if layers == ("gold",) else (),
            layers=layers,
            late=self.purpose is Purpose.LATE,
        )
        self.world.say(f"replay {self.number}: {self.purpose.value}; {', '.join(layers)} of {', '.join(views)}")
        if self.purpose is Purpose.REPAIR:
            self._spoil([VIEWS[view] for view in views])
        self._rest = [*self._to_promotion(name, request)]
        if self.purpose is Purpose.NOTHING and dice.random() < 0.3:
            self._rest[-1] = lambda: replays.discard(None, self.world, name, self._run_id, "me")
        elif self.purpose is Purpose.LATE or dice.random() < 0.4:
            self._rest.append(lambda: self._undo(name))
            if self.purpose is Purpose.REPAIR:
                # What was undone is spoiled again.
                self._rest += self._to_promotion(f"{name}-again", request)
        if self.purpose is Purpose.LATE:
            self.changed = {*views}
        self._stages = len(self._rest)

    def _to_promotion(self, name: str, request: Request) -> list[Callable[[], object]]:
        world = self.world
        return [
            lambda: replays.open_replay(None, world, request, "me", self._run_id, name),
            lambda: replays.compute(None, world, name, self._run_id),
            lambda: replays.compare(None, world, name, self._run_id),
            lambda: replays.approve(None, world, name, self._run_id, "me"),
            lambda: replays.promote(None, world, name, self._run_id),
        ]

    def _undo(self, name: str) -> None:
        versions = {view.name: self._version(view) for view in VIEWS.values()}
        promoted = replays.record.find(self.world, name).promoted
        if promoted is not None and not promoted.versions:
            # Nothing was in the interval, so there is nothing to undo.
            return
        undone = replays.undo(None, self.world, name, self._run_id, "me")
        for view in VIEWS.values():
            at = promoted.versions.get(gold_of(view)) if promoted else None
            is_newest = at is not None and versions[view.name] == at + 1
            if is_newest and undone.versions.get(gold_of(view)) == self._version(view) - 1:
                self.world.met["an undo restored the rows"] += 1
                self._check_restored(view, self.world.lake.read(gold_of(view), at - 1))

    def _check_restored(self, view: View, before: Rows) -> None:
        now = self.world.rows(gold_of(view))
        if now.exceptAll(before) or before.exceptAll(now):
            raise Broken(UNDONE, f"{view.name}: {now.exceptAll(before)[:2]} and {before.exceptAll(now)[:2]}")

    def _version(self, view: View) -> int:
        """How many versions gold has."""
        table = self.world.lake.tables.get(gold_of(view))
        return len(table.versions) if table else 0

    def _spoil(self, views: list[View]) -> None:
        for view in views:
            if self._version(view) and self.world.rows(gold_of(view)):
                self.changed.add(view.name)
                self.world.lake.spoil(gold_of(view), self._spoiled)

    def _spoiled(self, rows: list[Row]) -> list[Row]:
        dice = self.world.random
        kept = [row for row in rows if dice.random() < 0.7]
        return [{**row, "user_id": "nobody"} if "user_id" in row and dice.random() < 0.2 else row for row in kept]
