"""Look at the project's files and at what runs. Only a view that differs needs Spark."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lockstep import lake, ledger
from lockstep.catalog import connect
from lockstep.checkpoints.compatible import fingerprint
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS, broken, chosen
from lockstep.definition.tables import Tables, gold_of
from lockstep.definition.trial import ensure
from lockstep.definition.version import definition_version
from lockstep.deploy import capture, changed_settings, columns, followed
from lockstep.deploy.plan import Observed, ViewState
from lockstep.deploy.topics import differences
from lockstep.errors import ColumnsRefused, ViewRefused
from lockstep.ingest.offsets import offsets_of_existing_topics
from lockstep.live import definitions, progress, query
from lockstep.quality import suites
from lockstep.refine.rules import refusals as rules_refused
from lockstep.service import members_of

if TYPE_CHECKING:
    from lockstep.ledger.ranges import TopicOffsets
    from lockstep.live.sink import Member
    from lockstep.settings import Settings
    from lockstep.stack.stack import Stack


def observe(stack: "Stack") -> Observed:
    """Look once, without Spark.

    Raises:
        KafkaUnavailable: no broker answers.
        ControlUnavailable: the control database does not answer.
    """
    settings = stack.settings
    contracts = [*CONTRACTS.values()]
    there = offsets_of_existing_topics(settings, [c.topic for c in contracts])
    members = members_of(settings, chosen(settings.views))
    known = stack.supervisor.processes()
    ours = {Tables.of(c).bronze for c in contracts}
    changed = changed_settings.look(stack)
    return Observed(
        broken=broken() | suites.problems(settings),
        missing_topics={c.name: (c.topic, c.partitions) for c in contracts if c.topic not in there},
        topic_differences=differences(settings, contracts) if contracts else {},
        views={member[1].name: _view(settings, member, there) for member in members},
        running=frozenset(progress.latest(settings)),
        without_contract=tuple(t.partition(".")[2] for t in lake.tables(settings, ["bronze"]) if t not in ours),
        new_services=tuple(
            name for name, s in stack.services.items() if known and s.launch and not s.on_demand and name not in known
        ),
        settings=tuple(changed),
        restarted=tuple(stack.with_users(name for setting in changed for name in setting.services)),
    )


def compare_files(settings: "Settings", observed: Observed) -> Observed:
    """Compare tables with the columns that are declared, captured tables with those of the connector, and suites and DAGs with
    those that were read last.

    A table that cannot follow its columns is broken.
    """
    found = columns.look(settings)
    refused = {name: change.columns.refused for name, change in found.items() if change.columns.refused}
    return replace(
        observed,
        broken={
            **observed.broken,
            **{f"table {name}": f"{'; '.join(why)}. {ColumnsRefused.way}" for name, why in refused.items()},
        },
        tables={name: change for name, change in found.items() if name not in refused},
        capture=capture.look(settings),
        followed=followed.look(settings),
    )


def try_views(settings: "Settings", observed: Observed) -> Observed:
    """Try each view that is new or changed on the Spark server, for a second or two. One that it cannot run is broken."""
    differing = [
        VIEWS[name] for name in observed.not_live if name in observed.views and observed.views[name].live_differs
    ]
    if not differing:
        return observed
    refused: dict[str, str] = {}
    streams = dict.fromkeys(stream for view in differing for stream in view.streams)
    with connect(settings, "plan") as spark:
        rules = {f"stream {stream}": rules_refused(spark, CONTRACTS[stream]) for stream in streams}
        for view in differing:
            try:
                ensure(spark, view)
            except ViewRefused as error:
                refused[view.name] = "; ".join(error.problems)
    return replace(
        observed,
        broken={
            **observed.broken,
            **{stream: "; ".join(reasons) for stream, reasons in rules.items() if reasons},
            **{f"view {name}": reason for name, reason in refused.items()},
        },
        views={name: state for name, state in observed.views.items() if name not in refused},
        running=observed.running - refused.keys(),
    )


def _view(settings: "Settings", member: "Member", topics: "Mapping[str, TopicOffsets]") -> ViewState:
    generation, view = member
    gold = ledger.latest(settings, gold_of(view))
    return ViewState(
        started=definitions.last_definition(settings, generation),
        current=fingerprint(topics, member) if topics.keys() >= {*query.topics_of([member])} else None,
        gold=gold.definition if gold else None,
        version=definition_version(view),
    )
