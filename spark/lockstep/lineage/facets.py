"""The platform's own facets of OpenLineage events. ``infra/openlineage/facets.json`` is their schema."""

import attr
from openlineage.client.facet_v2 import InputDatasetFacet, OutputDatasetFacet, RunFacet

SCHEMA = "urn:lockstep:openlineage:facets:1"


@attr.define
class OffsetsInputDatasetFacet(InputDatasetFacet):
    """The offsets that a step has taken of a topic, or of the rows that came from it.

    Args:
        topics: by topic and partition, the first offset and the one after the last.
    """

    topics: dict[str, dict[str, list[int]]]

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMA}#/$defs/OffsetsInputDatasetFacet"


@attr.define
class CommitOutputDatasetFacet(OutputDatasetFacet):
    """What a commit of a table records.

    Args:
        topics: the offsets that it has taken, as in :class:`OffsetsInputDatasetFacet`.
        interval: the event time (ISO, UTC) that it has replaced: start and end.
        counts: the writer's own sums, such as silver's.
    """

    topics: dict[str, dict[str, list[int]]]
    interval: list[str]
    counts: dict[str, int]

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMA}#/$defs/CommitOutputDatasetFacet"


@attr.define
class StepRunFacet(RunFacet):
    """Which run a step belongs to.

    Args:
        runId: of Airflow's DAG run, or of the command; the ledger has it too.
        codeVersion: of the platform and the project.
    """

    runId: str
    codeVersion: str

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMA}#/$defs/StepRunFacet"
