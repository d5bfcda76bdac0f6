"""A step as OpenLineage's events: START, and COMPLETE or FAIL, with offsets and versions as facets.

They are sent where OpenLineage's own variables and its ``openlineage.yml`` say.
"""

import logging
import os
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    InputDatasetFacet,
    RunFacet,
    dataset_version_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    set_producer,
)
from openlineage.client.uuid import generate_new_uuid

from lockstep import lake
from lockstep.contracts import CONTRACTS
from lockstep.definition.tables import Tables
from lockstep.lineage.facets import CommitOutputDatasetFacet, OffsetsInputDatasetFacet, StepRunFacet
from lockstep.lineage.tables import TOPIC
from lockstep.lineage.written import offsets
from lockstep.version import code_version

if TYPE_CHECKING:
    from lockstep.lineage.step import Step
    from lockstep.lineage.written import Written
    from lockstep.settings import Settings

log = logging.getLogger(__name__)
set_producer("urn:lockstep")
_KIND = job_type_job.JobTypeJobFacet(processingType="BATCH", integration="LOCKSTEP", jobType="TASK")


def send(settings: "Settings", step: "Step") -> bool:
    """Send the events of a step; whether the receiver took them. If it did not, that is logged, and fails nothing."""
    try:
        with closing(OpenLineageClient()) as client:
            for event in events(settings, step):
                client.emit(event)
    except Exception as error:  # noqa: BLE001 - each transport raises its own, and the step has done its work
        log.warning("The OpenLineage events of %s were not sent: %s", step.job, error)
        return False
    return True


def events(settings: "Settings", step: "Step") -> list[RunEvent]:
    """The events of a step: that it has begun, and how it has ended."""
    job = Job(os.environ.get("OPENLINEAGE_NAMESPACE") or settings.package, step.job, {"jobType": _KIND})
    run_id = str(generate_new_uuid(step.started))
    facets: dict[str, RunFacet] = {"lockstep_step": StepRunFacet(step.run_id, code_version())}
    inputs = [_input(settings, name, step.written) for name in step.reads]
    begun = RunEvent(
        eventTime=step.started.isoformat(), eventType=RunState.START, run=Run(run_id, facets), job=job, inputs=inputs
    )
    if step.error:
        facets = {**facets, "errorMessage": error_message_run.ErrorMessageRunFacet(step.error, "PYTHON")}
    ended = RunEvent(
        eventTime=step.ended.isoformat(),
        eventType=RunState.FAIL if step.error else RunState.COMPLETE,
        run=Run(run_id, facets),
        job=job,
        inputs=inputs,
        outputs=[_output(settings, of) for of in step.written],
    )
    return [begun, ended]


def dataset(settings: "Settings", name: str) -> tuple[str, str]:
    """The namespace and the name of a table or topic, by OpenLineage's rules for Kafka and for files."""
    if name.startswith(TOPIC):
        return f"kafka://{settings.kafka.partition(',')[0]}", name.removeprefix(TOPIC)
    address = urlsplit(lake.path(settings, name))
    if address.scheme:
        return f"{address.scheme}://{address.netloc}", address.path.lstrip("/")
    return "file", address.path


def _input(settings: "Settings", name: str, written: "tuple[Written, ...]") -> InputDataset:
    topic = _topic(name)
    taken = {t: of for facts in written for t, of in offsets(facts.ranges).items() if t == topic}
    versions = [facts.sources[name] for facts in written if name in facts.sources]
    of_dataset: dict[str, DatasetFacet] = {"version": _version(versions[-1])} if versions else {}
    of_input: dict[str, InputDatasetFacet] = {"lockstep_offsets": OffsetsInputDatasetFacet(taken)} if taken else {}
    return InputDataset(*dataset(settings, name), facets=of_dataset, inputFacets=of_input)


def _output(settings: "Settings", written: "Written") -> OutputDataset:
    rows = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=written.rows)
    commit = CommitOutputDatasetFacet(offsets(written.ranges), [*written.interval], dict(written.counts))
    return OutputDataset(
        *dataset(settings, written.table),
        facets={"version": _version(written.version)},
        outputFacets={"outputStatistics": rows, "lockstep_commit": commit},
    )


def _version(version: int) -> DatasetFacet:
    return dataset_version_dataset.DatasetVersionDatasetFacet(str(version))


def _topic(name: str) -> str | None:
    """The topic that the rows of a table came from, where it is one."""
    if name.startswith(TOPIC):
        return name.removeprefix(TOPIC)
    found = (c.topic for c in CONTRACTS.values() if name in (Tables.of(c).bronze, Tables.of(c).log))
    return next(found, None)
