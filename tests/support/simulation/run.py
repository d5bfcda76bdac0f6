"""Play a seed: steps at random, then everything is drained, and what must hold is checked."""

from collections.abc import Callable

from tests.support.simulation import invariants, reconciliation, seams
from tests.support.simulation.history import History
from tests.support.simulation.invariants import Broken, FinalRows
from tests.support.simulation.live import LiveJob
from tests.support.simulation.producers import Producers
from tests.support.simulation.streams import CONTRACTS, KEYED, VIEWS, WINDOWED
from tests.support.simulation.world import Faults, Killed, World

from lockstep.batch.rollup import roll_up
from lockstep.contracts import Contract
from lockstep.definition import View
from lockstep.errors import LeaseHeld, Overtaken
from lockstep.ingest.bronze import ingest
from lockstep.reconcile.run import reconcile
from lockstep.refine.silver import refine

STEPS = 110
# Offsets that a run takes at least, once the producers have stopped.
DRAINED = 25
# Until all is drained; far more than it takes.
ROUNDS = 400
VARIABLE = "LOCKSTEP_SIMULATION_SEED"


class Failure(AssertionError):
    """A seed that broke an invariant, with its last steps and how to play it again."""

    def __init__(self, world: World, error: BaseException) -> None:
        again = f"{VARIABLE}={world.seed} .venv/bin/python -m pytest tests/unit/simulation -k seed"
        steps = "\n".join(world.trace)
        super().__init__(f"seed {world.seed}: {type(error).__name__}: {error}\n{steps}\nAgain: {again}")
        self.invariant = getattr(error, "invariant", type(error).__name__)


class Run:
    """One run of a seed."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self.producers = Producers(self.world)
        self.final = FinalRows()
        self.history = History(self.world)
        for name, views in (("_windows_clicks", WINDOWED), ("_keyed", KEYED)):
            self.world.jobs[name] = LiveJob(self.world, name, views)
        self.runs = 0
        self.world.anything = self.meanwhile

    def play(self) -> None:
        """Play it.

        Raises:
            Failure: an invariant does not hold, or the platform raised an error.
        """
        try:
            with seams.playing(self.world):
                for _ in range(STEPS):
                    self.step()
                self.drain()
                self.check()
        except (Exception, Broken) as error:
            raise Failure(self.world, error) from error

    def step(self) -> None:
        """Something happens."""
        dice, world = self.world.random, self.world
        world.now += dice.choice((0, 1, 200, 700, 1_500)) if dice.random() < 0.97 else dice.randint(5_000, 20_000)
        kind = dice.random()
        if any(job.is_between for job in world.jobs.values()) and dice.random() < 0.05:
            # A micro-batch that runs again must give the same rows.
            self.producers.add_partition()
        elif kind < 0.45:
            for _ in range(dice.randint(1, 4)):
                self.producers.produce()
        elif kind < 0.85:
            self.task()
        elif kind < 0.88:
            self.attempt("replay", lambda: self.history.step(self.run_id()))
        elif kind < 0.91:
            self.producers.heartbeats()
        elif kind < 0.95:
            self.producers.transact()
        elif kind < 0.97:
            self.idle()
        elif kind < 0.98:
            self.producers.add_partition()
        else:
            self.housekeeping()

    def task(self) -> None:
        """One task or query of the platform runs, and perhaps dies."""
        dice, world = self.world.random, self.world
        kind = dice.randrange(5)
        if world.late_writes and dice.random() < 0.3:
            self.again(dice.choice(world.late_writes).table)
        elif kind == 0:
            self.ingest(dice.choice([*CONTRACTS.values()]))
        elif kind == 1:
            self.refine(dice.choice([*CONTRACTS.values()]))
        elif kind == 2:
            self.roll_up(dice.choice([*VIEWS.values()]))
        elif kind == 3:
            job = dice.choice([*world.jobs.values()])
            self.attempt(f"live {job.name}", job.trigger)
        elif world.late_writes:
            world.arrive(world.late_writes.pop(dice.randrange(len(world.late_writes))))
        else:
            self.reconcile(dice.choice([*VIEWS.values()]))

    def again(self, table: str) -> None:
        """A task whose write goes on is tried again."""
        layer, _, name = table.partition(".")
        contract = CONTRACTS.get(name.removesuffix("_changes"))
        if layer == "bronze" and contract:
            self.ingest(contract)
        elif layer in {"silver", "quarantine"} and contract:
            self.refine(contract)
        elif layer == "gold":
            self.roll_up(VIEWS[name])

    def ingest(self, contract: Contract) -> bool:
        """Bring bronze up."""
        return self.attempt(f"ingest {contract.name}", lambda: ingest(None, self.world, contract, self.run_id()))

    def refine(self, contract: Contract) -> bool:
        """Bring silver up."""
        return self.attempt(f"refine {contract.name}", lambda: refine(None, self.world, contract, self.run_id()))

    def meanwhile(self) -> None:
        """What happens while a task is between two writes."""
        if self.world.late_writes and self.world.random.random() < 0.6:
            self.world.arrive(self.world.late_writes.pop())
        else:
            self.task()

    def roll_up(self, view: View) -> bool:
        """Bring gold up."""
        done = self.attempt(f"roll up {view.name}", lambda: roll_up(None, self.world, view, self.run_id()))
        if view.name in self.history.changed:
            self.final.forget(view)
        else:
            self.final.check(self.world, view)
        return done

    def reconcile(self, view: View) -> None:
        """Compare what both layers have closed."""
        if view.name in self.history.changed:
            return
        invariants.check_now(self.world, view)
        # Live may be behind gold in a view of upserts. That this is the cause is found with Spark.
        if not view.upserts:
            self.attempt(f"reconcile {view.name}", lambda: self._reconciled(view))

    def _reconciled(self, view: View) -> None:
        report = reconcile(None, self.world, view, self.run_id())
        self.world.met[f"reconciled: {report.verdict}"] += bool(report.windows)
        if view.name not in self.history.changed:
            reconciliation.check_report(self.world, view, report)

    def idle(self) -> None:
        """A partition stops to get records of producers, or gets them again."""
        place = self.world.random.choice(sorted(self.world.kafka.log))
        self.producers.idle ^= {place}

    def housekeeping(self) -> None:
        """OPTIMIZE, a lost file of machines, another leader of a partition, or a live query that ends."""
        dice, world = self.world.random, self.world
        kind = dice.randrange(4)
        if kind == 0 and world.lake.tables:
            world.lake.optimize(dice.choice(sorted(world.lake.tables)))
        elif kind == 1 and world.machine_files:
            world.machine_files[dice.choice(sorted(world.machine_files))].clear()
        elif kind == 2:
            world.kafka.elect(dice.choice(sorted(world.kafka.log)))
            world.met["a leader is elected"] += 1
        else:
            job = dice.choice([*world.jobs.values()])
            world.say(f"{job.name} is stopped")
            job._operator = None

    def run_id(self) -> str:
        """A new one."""
        self.runs += 1
        return f"run-{self.runs}"

    def attempt(self, name: str, task: Callable[[], object]) -> bool:
        """Run a task that may die, or meet another; whether it did anything."""
        self.world.say(name)
        try:
            return bool(task())
        except Killed:
            return True
        except Overtaken:
            self.world.say("  overtaken")
            self.world.met["overtaken"] += 1
            return True
        except LeaseHeld:
            return False

    def drain(self) -> None:
        """Nobody produces any more, all time limits pass, and every task runs until nothing is new."""
        world = self.world
        world.say("the producers stop")
        self.producers.close(world.now + 600_000)
        # Larger steps from here on: what they can break was tried above.
        world.max_offsets_per_run = max(world.max_offsets_per_run, DRAINED)
        world.max_offsets_per_trigger = max(world.max_offsets_per_trigger, DRAINED)
        for _ in range(ROUNDS):
            if world.late_writes:
                world.arrive(world.late_writes.pop())
            if not self.everything():
                return
        raise Broken(invariants.AGAIN, f"after {ROUNDS} rounds something is still new")

    def everything(self) -> bool:
        """Every task runs once; whether anything was new."""
        world, new = self.world, bool(self.world.late_writes)
        for contract in CONTRACTS.values():
            new |= self.ingest(contract)
            new |= self.refine(contract)
        for view in VIEWS.values():
            new |= self.roll_up(view)
        for job in world.jobs.values():
            new |= self.attempt(f"live {job.name}", job.trigger)
        if self.history.purpose is not None:
            new |= self.attempt("replay", lambda: self.history.step(self.run_id()) or True)
        return new

    def check(self) -> None:
        """What must hold at the end."""
        world = self.world
        before = invariants.versions(world)
        self.everything()
        after = invariants.versions(world)
        invariants.check(before == after, invariants.AGAIN, f"{before} became {after}")
        invariants.check_tables(world)
        for view in VIEWS.values():
            invariants.check_now(world, view)
        invariants.check_views(world)
        world.faults = Faults(0, 0, 0)
        reconciliation.check_at_the_end(world, self.run_id())
        if self.producers.orderly:
            invariants.check_orderly(world)


def play(seed: int) -> World:
    """Play a seed; the world at its end."""
    run = Run(seed)
    run.play()
    return run.world
