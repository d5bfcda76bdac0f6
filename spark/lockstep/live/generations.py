"""The generations of the live views: rows in the control database that say which checkpoint each view continues from.

Generation 1 of a view that has always had a job of its own has no row.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from psycopg2.extras import execute_values
from pyarrow import fs

from lockstep import lake
from lockstep.control.database import control
from lockstep.definition.tables import live_of
from lockstep.live.generation import Beginning, Generation, Job
from lockstep.live.seeds import Seed

if TYPE_CHECKING:
    from lockstep.checkpoints.savepoints import Savepoint
    from lockstep.definition import View
    from lockstep.settings import Settings

_COLUMNS = "query, generation, reason, started_by, starts, since, savepoint, job, job_number, streams, label, seed"


def current(settings: "Settings", query: str) -> int:
    """The number of the query's current generation."""
    return get(settings, query).number


def get(settings: "Settings", query: str) -> Generation:
    """The query's current generation."""
    return all_current(settings).get(query, Generation(query))


def all_current(settings: "Settings") -> dict[str, Generation]:
    """The current generation of each view that has a row, by the view's name."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(
            f"SELECT DISTINCT ON (query) {_COLUMNS} FROM live_generations ORDER BY query, generation DESC"  # noqa: S608
        )
        return {row[0]: _generation(*row) for row in cursor.fetchall()}


def earlier_jobs(settings: "Settings") -> set[Job]:
    """The jobs that have run a view in an earlier generation, and run none now."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {_COLUMNS} FROM live_generations")  # noqa: S608
        ever = [_generation(*row) for row in cursor.fetchall()]
    current = {generation.job for generation in all_current(settings).values()}
    # Generation 1 may have no row, but a later one shows that it is over.
    first = {Job(generation.query, 1) for generation in ever if generation.number > 1}
    return ({generation.job for generation in ever} | first) - current


def earlier_jobs_of(settings: "Settings", queries: Collection[str]) -> set[Job]:
    """The jobs that have run one of these views in an earlier generation, and run none now."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {_COLUMNS} FROM live_generations WHERE query = ANY(%s)", ([*queries],))  # noqa: S608
        ever = {_generation(*row).job for row in cursor.fetchall()}
    return earlier_jobs(settings) & (ever | {Job(query, 1) for query in queries})


def share(settings: "Settings", views: "Sequence[View]") -> None:
    """Give the views that have never run jobs together. Running it twice changes nothing."""
    known = names(settings)
    never_run = [view for view in views if view.name not in known]
    sharing = Counter(view.shared_job for view in never_run)
    # One that would be alone has a job of its own.
    new = [view for view in never_run if sharing[view.shared_job] > 1]
    if not new:
        return
    with control(settings) as connection, connection.cursor() as cursor:
        execute_values(
            cursor,
            "INSERT INTO live_generations (query, generation, reason, started_by, starts, job, job_number, streams) "
            "SELECT new.name, 1, 'first', '', '{}', new.job, before.last + 1, new.streams::jsonb "
            "FROM (VALUES %s) new (name, job, streams), "
            "(SELECT coalesce(max(job_number), 0) AS last FROM live_generations) before",
            [(view.name, view.shared_job, streams) for view, streams in _with_streams_of_job(new)],
        )


def _with_streams_of_job(views: "Sequence[View]") -> "Iterator[tuple[View, str]]":
    """Each view, with the streams that its shared job reads, as JSON."""
    for view in views:
        job = [stream for other in views if other.shared_job == view.shared_job for stream in other.streams]
        yield view, json.dumps(sorted({*job}))


def names(settings: "Settings") -> set[str]:
    """The views of which the control database has a generation, or a definition that has started."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT query FROM live_generations UNION SELECT query FROM live_definitions")
        return {query for (query,) in cursor.fetchall()}


def own_shared_jobs(settings: "Settings", query: str) -> set[Job]:
    """The shared jobs that have run this view, and no other view in any generation."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT job, job_number FROM live_generations WHERE job IS NOT NULL "
            "GROUP BY job, job_number HAVING bool_and(query = %s)",
            (query,),
        )
        return {Job(job, number) for job, number in cursor.fetchall()}


def advance(
    settings: "Settings",
    query: str,
    reason: str,
    by: str,
    starts: Mapping[str, Mapping[int, int]] | None = None,
    since: datetime | None = None,
    savepoint: "Savepoint | None" = None,
    run_id: str | None = None,
    seed: Seed | None = None,
) -> int:
    """Create the view's next generation, in a job of its own, and return its number. Whoever runs the view switches to it.

    Args:
        savepoint: it continues from this one.
        run_id: the run that asks; when the same run asks again, no further generation is created.
        seed: it continues from this point of the batch layer.
    """
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO live_generations "
            "(query, generation, reason, started_by, starts, since, savepoint, streams, label, run_id, seed) "
            "SELECT %(query)s, greatest(before.last, %(in_lake)s) + 1, "
            "%(reason)s, %(by)s, %(starts)s, %(since)s, %(savepoint)s, %(streams)s, "
            "%(label)s, %(run_id)s, %(seed)s FROM "
            "(SELECT coalesce(max(generation), 1) AS last FROM live_generations WHERE query = %(query)s) before "
            "ON CONFLICT (query, run_id) DO NOTHING",
            {
                "query": query,
                "in_lake": newest_in_lake(settings, query),
                "reason": reason,
                "by": by,
                "starts": json.dumps(starts or {}),
                "since": since,
                "savepoint": savepoint.reference if savepoint else None,
                "streams": json.dumps(savepoint.streams if savepoint else ()),
                "label": savepoint.label if savepoint else "",
                "run_id": run_id,
                "seed": json.dumps(seed.as_json()) if seed else None,
            },
        )
    return current(settings, query)


def advance_together(
    settings: "Settings", views: Sequence[Beginning], reason: str, by: str, run_id: str | None = None
) -> dict[str, int]:
    """Create the next generation of each of these views, in new jobs that they share; their numbers by view.

    Args:
        run_id: the run that asks; when the same run asks again, no further generation is created.
    """
    streams = {view.name: streams for view, streams in _with_streams_of_job([one.view for one in views])}
    jobs_in_lake = max((newest_checkpoint(settings, job) for job in {one.view.shared_job for one in views}), default=0)
    with control(settings) as connection, connection.cursor() as cursor:
        execute_values(
            cursor,
            "INSERT INTO live_generations "
            "(query, generation, reason, started_by, starts, since, run_id, seed, job, job_number, streams) "
            "SELECT new.name, greatest(before.last, new.in_lake) + 1, new.reason, new.by, new.starts::jsonb, "
            "new.since::timestamptz, new.run_id, new.seed::jsonb, new.job, greatest(jobs.last, new.jobs_in_lake) + 1, "
            "new.streams::jsonb "
            "FROM (VALUES %s) new (name, in_lake, reason, by, starts, since, run_id, seed, job, jobs_in_lake, "
            "streams), "
            "LATERAL (SELECT coalesce(max(generation), 1) AS last FROM live_generations WHERE query = new.name) before, "
            "(SELECT coalesce(max(job_number), 0) AS last FROM live_generations) jobs "
            "ON CONFLICT (query, run_id) DO NOTHING",
            [
                (
                    one.view.name,
                    newest_in_lake(settings, one.view.name),
                    reason,
                    by,
                    json.dumps(one.starts),
                    one.since,
                    run_id,
                    json.dumps(one.seed.as_json()) if one.seed else None,
                    one.view.shared_job,
                    jobs_in_lake,
                    streams[one.view.name],
                )
                for one in views
            ],
            # All in one statement: those of one name get the same job.
            page_size=max(len(views), 1),
        )
    known = all_current(settings)
    return {one.view.name: known[one.view.name].number for one in views}


def newest_in_lake(settings: "Settings", query: str) -> int:
    """The newest generation of the query that has a checkpoint of its own, or has written its table; 0: there is none.

    The control database may not know it, if an older copy of it was restored.
    """
    written = (int(c.record["generation"]) for c in lake.commits(settings, live_of(query)) if "generation" in c.record)
    return max(newest_checkpoint(settings, query), next(written, 0))


def newest_checkpoint(settings: "Settings", job: str) -> int:
    """The number of the newest checkpoint under a job's name; 0: it has none."""
    filesystem, root = fs.FileSystem.from_uri(lake.checkpoint(settings, job, 0).rpartition("/")[0])
    infos = filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True))
    return max((int(info.base_name) for info in infos if info.base_name.isdigit()), default=0)


def _generation(
    query: str,
    number: int,
    reason: str,
    by: str,
    starts: Any,
    since: datetime | None,
    savepoint: str | None,
    job: str | None,
    job_number: int | None,
    streams: list[str],
    label: str,
    seed: dict[str, Any] | None,
) -> Generation:
    return Generation(
        query=query,
        number=number,
        reason=reason,
        by=by,
        starts={topic: {int(p): offset for p, offset in ends.items()} for topic, ends in starts.items()},
        since=since.astimezone(UTC) if since else None,
        savepoint=savepoint,
        shared=Job(job, job_number, tuple(streams)) if job and job_number else None,
        streams=tuple(streams),
        label=label,
        seed=Seed.of_json(seed) if seed else None,
    )
