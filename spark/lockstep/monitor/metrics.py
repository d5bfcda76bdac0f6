"""The newest status as Prometheus metrics. Times are seconds since 1970."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from lockstep.live.progress import Progress
from lockstep.status.model import HEALTHY, Status, Stream, ViewStatus

Samples = Iterable[tuple[Sequence[str], float]]


class StatusCollector(Collector):
    """Gives each scrape the status of the newest look; nothing before the first."""

    def __init__(self) -> None:
        self.status: Status | None = None
        self.looked_at = 0.0

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The metrics. All are gauges, because each look reads the sums where the platform keeps them."""
        if self.status is None:
            return
        yield _gauge("look_timestamp_seconds", "when the monitor looked last", [], [((), self.looked_at)])
        for stream_metrics in (_platform(self.status), _streams(self.status.streams), _views(self.status.views)):
            yield from stream_metrics

    def publish(self, status: Status) -> None:
        """Give the next scrapes this status."""
        self.status, self.looked_at = status, time.time()


def _platform(status: Status) -> Iterator[GaugeMetricFamily]:
    yield _gauge(
        "problem", "1 for each problem of `lockstep status`", ["key"], [((p.key,), 1) for p in status.problems]
    )
    yield _gauge(
        "service_healthy",
        "whether a service of the stack is healthy",
        ["service"],
        [((name,), state == HEALTHY) for name, state in status.health.items()],
    )
    yield _gauge(
        "dag_paused", "whether a DAG is paused", ["dag"], [((d.name,), d.paused) for d in status.airflow.dags.values()]
    )
    yield _gauge(
        "dag_last_run_failed",
        "whether the newest run that has ended has failed",
        ["dag"],
        [((name,), run.failed) for name, run in status.airflow.runs.items()],
    )
    yield _gauge(
        "gate_open",
        "whether the newest rows of a table have passed its gate",
        ["table"],
        [((table,), verdict.success) for table, verdict in status.quality.items()],
    )
    disks = status.disks.items()
    yield _gauge("disk_free_bytes", "free on a disk", ["folder"], [((folder,), d.free) for folder, d in disks])
    yield _gauge("disk_size_bytes", "the size of a disk", ["folder"], [((folder,), d.size) for folder, d in disks])
    yield _gauge(
        "certificate_ends_timestamp_seconds",
        "when a certificate is not valid any more",
        ["file"],
        [((file,), ends.timestamp()) for file, ends in status.certificates.items()],
    )


def _streams(streams: Iterable[Stream]) -> Iterator[GaugeMetricFamily]:
    yield _gauge(
        "lag_offsets",
        "offsets from the position of a layer to the end of a partition",
        ["stream", "partition", "layer"],
        [
            ((s.name, str(p.partition), layer), lag)
            for s in streams
            for p in s.partitions
            for layer, lag in p.lag.items()
        ],
    )
    yield _gauge(
        "overdue_offsets",
        "offsets that a layer has not read although they are older than it may lag",
        ["stream", "layer"],
        [((s.name, layer), s.overdue.get(layer, 0)) for s in streams for layer in s.lag],
    )
    yield _gauge(
        "waiting_offsets",
        "offsets behind an open transaction",
        ["stream"],
        [((s.name,), s.waiting) for s in streams],
    )
    outcomes = ("bronze", "silver", "duplicates", "quarantined", "markers", "erased")
    yield _gauge(
        "stream_rows",
        "rows of bronze, and by outcome what became of them in silver",
        ["stream", "outcome"],
        [((s.name, outcome), getattr(s, outcome)) for s in streams for outcome in outcomes],
    )
    yield _gauge(
        "bronze_commit_timestamp_seconds",
        "when bronze was committed last",
        ["stream"],
        [((s.name,), s.fresh_at / 1000) for s in streams if s.fresh_at],
    )


def _views(views: Iterable[ViewStatus]) -> Iterator[GaugeMetricFamily]:
    outcomes = ("counted", "ignored", "side_output")
    yield _gauge(
        "view_rows",
        "rows of silver, by what became of them in gold",
        ["view", "outcome"],
        [((v.name, outcome), getattr(v, outcome)) for v in views for outcome in outcomes],
    )
    yield _gauge(
        "unexplained_windows",
        "windows in which live and batch differ for no known reason",
        ["view"],
        [((v.name,), v.unexplained) for v in views],
    )
    live = [v.live for v in views if v.live]
    of_live: dict[str, tuple[str, Callable[[Progress], float]]] = {
        "live_batch_seconds": ("how long the last micro-batch took", lambda q: q.batch_ms / 1000),
        "live_rows_per_second": ("the offsets that it read, per second", lambda q: q.rows_per_second),
        "live_state_rows": ("rows of the state", lambda q: q.state_rows or 0),
        "live_state_bytes": ("memory of the state stores", lambda q: q.state_bytes),
        "live_dropped_rows": ("rows dropped as too late since the service started", lambda q: q.dropped_rows),
        "live_failures": ("how often in a row the query has failed", lambda q: q.failures),
    }
    for name, (help_text, value) in of_live.items():
        yield _gauge(name, help_text, ["view"], [((q.query,), value(q)) for q in live])


def _gauge(name: str, help_text: str, labels: Sequence[str], samples: Samples) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"lockstep_{name}", help_text, labels=labels)
    for values, value in samples:
        family.add_metric(values, float(value))
    return family
