"""Look at the project's files and at what runs, without Spark."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lockstep import lake, ledger
from lockstep.checkpoints.compatible import fingerprint
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import broken, chosen
from lockstep.definition.tables import Tables, gold_of
from lockstep.definition.version import definition_version
from lockstep.deploy.plan import Observed, ViewState
from lockstep.deploy.topics import differences
from lockstep.ingest.offsets import offsets_of_existing_topics
from lockstep.live import generations, progress, query
from lockstep.service import members_of

if TYPE_CHECKING:
    from lockstep.ledger.ranges import TopicOffsets
    from lockstep.live.sink import Member
    from lockstep.settings import Settings
    from lockstep.stack.stack import Stack


def observe(stack: "Stack") -> Observed:
    """Look once.

    Raises:
        KafkaUnavailable: no broker answers.
        psycopg2.OperationalError: the control database does not answer.
    """
    settings = stack.settings
    contracts = [*CONTRACTS.values()]
    there = offsets_of_existing_topics(settings, [c.topic for c in contracts])
    members = members_of(settings, chosen(settings.views))
    known = stack.supervisor.processes()
    ours = {Tables.of(c).bronze for c in contracts}
    return Observed(
        broken=broken(),
        missing_topics={c.name: (c.topic, c.partitions) for c in contracts if c.topic not in there},
        topic_differences=differences(settings, contracts) if contracts else {},
        views={member[1].name: _view(settings, member, there) for member in members},
        running=frozenset(progress.latest(settings)),
        without_contract=tuple(t.partition(".")[2] for t in lake.tables(settings, ["bronze"]) if t not in ours),
        new_services=tuple(
            name for name, s in stack.services.items() if known and s.launch and not s.on_demand and name not in known
        ),
    )


def _view(settings: "Settings", member: "Member", topics: "Mapping[str, TopicOffsets]") -> ViewState:
    generation, view = member
    gold = ledger.latest(settings, gold_of(view))
    return ViewState(
        started=generations.last_definition(settings, generation),
        current=fingerprint(topics, member) if topics.keys() >= {*query.topics_of([member])} else None,
        gold=gold.definition if gold else None,
        version=definition_version(view),
    )
