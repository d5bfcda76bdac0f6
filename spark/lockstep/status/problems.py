"""What is not all right, from what the status has gathered. Pure: one function for each kind of trouble."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from lockstep.live.progress import Progress
from lockstep.status.model import HEALTHY, Problem, Status

# transaction.max.timeout.ms of a broker is 15 minutes: then it ends a transaction of which it knows.
_LONGEST_TRANSACTION = timedelta(minutes=15)
# The live service sends a heartbeat after seconds.
_QUIET = timedelta(minutes=10)
# Below this, PostgreSQL and the broker are close to a write that fails: the share of the disk, or the bytes if that is less.
_FREE_SHARE, _FREE_BYTES = 0.05, 2 * 1024**3
# Time to get a new certificate.
_CERTIFICATE_NOTICE = timedelta(days=14)
# Of so many rows of one commit, so large a share is late: not some late rows, but a wrong clock or no time at all.
_LATE_ROWS, _LATE_SHARE = 100, 0.9
# Kafka's greatest limit is none.
_NO_LIMIT = 2**63 - 1
# How many names a line has.
_NAMES = 5

# By layer, where to look when it is behind.
_LAG_FIXES = {
    "bronze": "see the runs of the DAG ingest and `lockstep ledger lag`",
    "silver": "see the runs of the DAG refine and `lockstep ledger lag`",
    "gold": "see the runs of the DAG refine and the gates of silver",
    "live": "see `lockstep logs live` and `lockstep ledger lag`",
}


def problems(status: Status, now: datetime) -> list[Problem]:
    """One for each thing that is not all right.

    Args:
        now: UTC.
    """
    return [
        *_services(status),
        *_disks(status),
        *_torn(status),
        *_certificates(status, now),
        *_dags(status),
        *_definitions(status),
        *_topics(status),
        *_captured(status),
        *_unpublished(status),
        *_registry(status),
        *_sums(status),
        *_transactions(status, now),
        *_quiet_partitions(status),
        *_lags(status),
        *_live(status),
        *_late_rows(status),
        *_gates(status),
        *_marts(status),
        *_differences(status),
    ]


def _services(status: Status) -> Iterator[Problem]:
    for name, state in status.health.items():
        if state != HEALTHY:
            yield Problem(f"service:{name}", f"{name} is {state}", f"see `lockstep logs {name}` and `lockstep doctor`")


def _disks(status: Status) -> Iterator[Problem]:
    for folder, disk in status.disks.items():
        if disk.free < min(_FREE_BYTES, _FREE_SHARE * disk.size):
            yield Problem(
                f"disk:{folder}",
                f"{disk.free // 1024**2:,} MB of {disk.size // 1024**2:,} are free on the disk of {folder}",
                "free some, or lower LOCKSTEP_RETAIN_HOURS and run the DAG maintain",
            )


def _torn(status: Status) -> Iterator[Problem]:
    for table, versions in status.torn.items():
        several = "s" if len(versions) > 1 else ""
        yield Problem(
            f"torn:{table}",
            f"the log of {table} is torn, as after a power cut: version{several} {', '.join(map(str, versions))}",
            f"stop all but PostgreSQL, Kafka and Spark, and `lockstep ledger repair {table.removeprefix('bronze.')}`, see "
            "docs/operations/ledger.md",
        )


def _certificates(status: Status, now: datetime) -> Iterator[Problem]:
    for file, ends in status.certificates.items():
        if ends - now < _CERTIFICATE_NOTICE:
            when = "was valid until" if ends < now else "is valid until"
            yield Problem(f"certificate:{file}", f"the certificate in {file} {when} {ends:%F %T} UTC", "renew it")


def _dags(status: Status) -> Iterator[Problem]:
    # Who asks for a run sees on its page what became of it. A DAG without a schedule only runs then.
    scheduled = [dag for dag in status.airflow.dags.values() if dag.schedule]
    for dag in scheduled:
        if dag.paused:
            yield Problem(
                f"dag-paused:{dag.name}",
                f"DAG {dag.name} is paused, so it does not run",
                f"unpause it on Airflow's page, or with `lockstep airflow dags unpause {dag.name}`",
            )
        run = status.airflow.runs.get(dag.name)
        if run and run.failed and not run.asked_for:
            yield Problem(
                f"dag-failed:{dag.name}",
                f"the last run of the DAG {dag.name} failed",
                f"see the tab Tables of its page in Airflow, /dags/{dag.name}/runs/{run.run_id}/plugin/tables",
                datetime.fromisoformat(run.ended_at) if run.ended_at else None,
            )
    for file, error in status.airflow.import_errors.items():
        yield Problem(f"dag-import:{file}", f"Airflow cannot import {file}: {error}", "correct the file")


def _definitions(status: Status) -> Iterator[Problem]:
    for place, reason in status.broken.items():
        yield Problem(f"definition:{place}", f"{place} is left out: {reason}", "correct it, then `lockstep apply`")


def _topics(status: Status) -> Iterator[Problem]:
    for stream in status.without_topic:
        yield Problem(
            f"topic:{stream}",
            f"{stream} has no topic, so nothing can be produced to it",
            "`lockstep apply` makes it",
        )
    for stream in status.forbidden:
        yield Problem(
            f"topic:{stream}",
            f"the account may not see the topic of {stream}, so nothing is read from it",
            "give it the rights DESCRIBE and READ on the topic, as with `lockstep kafka acls`",
        )
    for of in status.clocks_ahead:
        yield Problem(
            f"clocks:{of.topic}",
            f"{of.topic} takes records of clocks that are {_length(of.taken)} ahead, and its contract allows "
            f"{_length(of.allowed)}: one of them makes the records of other producers late",
            f"`lockstep kafka configs --alter --entity-type topics --entity-name {of.topic} --add-config "
            f"message.timestamp.after.max.ms={of.allowed}`, or allow as much by max_clock_skew in the contract",
        )


def _captured(status: Status) -> Iterator[Problem]:
    for stream, drift in status.captured.items():
        yield Problem(
            f"captured:{stream}",
            f"{stream}: {drift}",
            'see "When its columns change" in docs/operations/captured-tables.md',
        )


def _unpublished(status: Status) -> Iterator[Problem]:
    for of in status.unpublished:
        waiting = (
            f", and {_names([*of.readers])} wait{'' if len(of.readers) > 1 else 's'} for them" if of.readers else ""
        )
        yield Problem(
            f"unpublished:{of.stream}",
            f"{of.view} has results that are not in its stream {of.stream}{waiting}",
            "see the task gate_gold of the DAG refine, and the lag of the stream in bronze and silver",
            of.since,
        )


def _registry(status: Status) -> Iterator[Problem]:
    if status.registry:
        yield Problem(
            "unreachable:schema-registry",
            status.registry,
            "until then the records wait whose schemas are not known yet, and all others are read",
        )


def _sums(status: Status) -> Iterator[Problem]:
    for s in status.streams:
        if not s.adds_up:
            yield Problem(
                f"sums:{s.name}",
                f"{s.name}: the rows of bronze and silver do not add up",
                "see `lockstep ledger verify`",
            )


def _transactions(status: Status, now: datetime) -> Iterator[Problem]:
    for s in status.streams:
        for p in s.partitions:
            if p.waiting and p.written_at and now - p.written_at > _LONGEST_TRANSACTION:
                yield Problem(
                    f"transaction:{s.topic}-{p.partition}",
                    f"{p.waiting:,} records of {s.topic}-{p.partition} wait behind a transaction that is open",
                    "see `lockstep kafka transactions find-hanging`",
                    p.written_at,
                )


def _quiet_partitions(status: Status) -> Iterator[Problem]:
    for s in status.streams:
        stamps = [at for at in s.newest.values() if at]
        for partition, at in s.newest.items():
            if stamps and (at is None or max(stamps) - at > _QUIET):
                yield Problem(
                    f"quiet:{s.topic}-{partition}",
                    f"{s.topic}-{partition} has had no record for a while, and others of its topic have, so views with "
                    "machines wait for it, and no later window is final",
                    "start `live`, which sends heartbeats there if its account has the right WRITE on the topic; or write to it",
                    at,
                )


def _lags(status: Status) -> Iterator[Problem]:
    """One for each layer: where a layer stands still, it does for all."""
    behind: dict[str, dict[str, int]] = {}
    for s in status.streams:
        for table, offsets in s.overdue.items():
            layer, _, view = table.partition(".")
            of_layer = behind.setdefault(layer, {})
            of_layer[view or s.name] = of_layer.get(view or s.name, 0) + offsets
    for layer, of_layer in behind.items():
        named = sorted(of_layer.items(), key=lambda item: -item[1])
        what = _names([f"{name} ({offsets:,} offsets)" for name, offsets in named])
        yield Problem(f"lag:{layer}", f"{layer} is further behind than it may be: {what}", _LAG_FIXES[layer])


def _live(status: Status) -> Iterator[Problem]:
    failing: dict[str, list[Progress]] = {}
    for v in status.views:
        if v.live is None:
            continue
        if v.live.failures:
            failing.setdefault(v.live.error or "", []).append(v.live)
        if v.live.dropped_rows:
            yield Problem(
                f"live-dropped:{v.name}",
                f"the live query of {v.name} has dropped {v.live.dropped_rows:,} rows as too late, which it must never do",
                f"compare it with `lockstep reconcile {v.name}`, and compute it again with "
                f"`lockstep checkpoints reset {v.name} --to earliest --reason …`",
            )
    # Views that share a job fail together.
    for error, queries in failing.items():
        names = [q.query for q in queries]
        yield Problem(
            f"live-failing:{','.join(names)}",
            f"live: {_names(names)} failed {max(q.failures for q in queries)} times in a row: {error}",
            "see `lockstep logs live` and `lockstep checkpoints verify`",
        )
    # Only where the service runs: a service that does not is a problem of its own.
    if status.health.get("live") == HEALTHY and (unknown := [v.name for v in status.views if v.live is None]):
        yield Problem(
            f"live-missing:{','.join(unknown)}",
            f"the live service does not run {_names(unknown)}",
            "`lockstep apply` starts what is new; else see `lockstep logs live`",
        )


def _late_rows(status: Status) -> Iterator[Problem]:
    for v in status.views:
        late = v.recent.get("ignored", 0) + v.recent.get("side_output", 0)
        rows = late + v.recent.get("counted", 0)
        if rows >= _LATE_ROWS and late >= _LATE_SHARE * rows:
            yield Problem(
                f"late:{v.name}",
                f"{late:,} of the newest {rows:,} rows of {v.name} came too late",
                f"see late.{v.name} for whose they are: a producer that sets no time, or a wrong clock",
            )


def _gates(status: Status) -> Iterator[Problem]:
    for table, verdict in status.quality.items():
        if not verdict.success:
            yield Problem(
                f"gate:{table}",
                f"the gate of {table} is shut: {verdict}",
                f"see `lockstep quality show {table}`, or the data docs; a replay with corrected code, or a corrected suite, "
                "opens it",
            )


def _marts(status: Status) -> Iterator[Problem]:
    for days, reason in status.marts.items():
        yield Problem(
            f"marts:{days}",
            f"the marts of {days} could not be built, and readers keep the last good version: {' '.join(reason.split())}",
            "correct the rows or the model, see docs/marts.md; they are tried again every five minutes",
        )


def _differences(status: Status) -> Iterator[Problem]:
    for v in status.views:
        if v.unexplained:
            yield Problem(
                f"unexplained:{v.name}",
                f"{v.name}: live and batch differ in {v.unexplained} windows, such as {v.sample}",
                f"see `lockstep reconcile {v.name}`",
            )


def _length(milliseconds: int) -> str:
    return "by any time" if milliseconds == _NO_LIMIT else str(timedelta(milliseconds=milliseconds))


def _names(names: list[str]) -> str:
    more = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {more} more" if more > 0 else "")
