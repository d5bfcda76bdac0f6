"""The progress of a query, from Spark's own JSON."""

from datetime import UTC, datetime

from lockstep.live.progress import parse, rows_dropped

LAST_PROGRESS = {
    "batchId": 7,
    "timestamp": "2026-11-21T09:00:00.250Z",
    "durationMs": {"triggerExecution": 800, "addBatch": 600},
    "eventTime": {"watermark": "2026-11-21T06:59:00.000Z"},
    "stateOperators": [
        {"numRowsTotal": 5, "memoryUsedBytes": 100, "numRowsDroppedByWatermark": 0},
        {"numRowsTotal": 6, "memoryUsedBytes": 200, "numRowsDroppedByWatermark": 1},
    ],
    "sources": [
        {
            "numInputRows": 20,
            "startOffset": {"views": {"0": 1}},
            "endOffset": {"views": {"0": 5, "1": 6}},
            "latestOffset": {"views": {"0": 9, "1": 6}},
        },
        {"numInputRows": 3, "endOffset": '{"clicks":{"0":1}}', "latestOffset": '{"clicks":{"0":2}}'},
    ],
}


def test_progress_is_summed_over_sources_and_operators():
    progress = parse("a", 2, LAST_PROGRESS, {"views", "clicks"}, state_rows=11, dropped_rows=4)
    assert (progress.query, progress.generation, progress.batch, progress.batch_ms) == ("a", 2, 7, 800)
    assert (progress.input_rows, progress.rows_per_second, progress.lag) == (4 + 6 + 3, 13 / 0.8, 5)
    assert (progress.state_rows, progress.state_bytes, progress.dropped_rows) == (11, 300, 4)
    assert progress.at == datetime(2026, 11, 21, 9, 0, 0, 250_000, UTC)
    assert progress.watermark == datetime(2026, 11, 21, 6, 59, tzinfo=UTC)


def test_before_the_first_event_there_is_no_watermark():
    assert (
        parse("a", 1, LAST_PROGRESS | {"eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}}, {"views"}).watermark
        is None
    )
    assert parse("a", 1, LAST_PROGRESS | {"eventTime": {}}, {"views"}).watermark is None


def test_what_the_job_reads_for_other_views_is_not_counted():
    progress = parse("a", 1, LAST_PROGRESS, {"clicks"})
    assert (progress.input_rows, progress.lag) == (3, 1)


def test_a_query_that_does_not_run_has_its_error():
    progress = parse("a", 1, None, {"views"}, 3, "no topic views yet")
    assert (progress.batch, progress.failures, progress.error) == (None, 3, "no topic views yet")


def test_what_a_batch_has_dropped_is_summed_over_its_operators():
    assert rows_dropped(LAST_PROGRESS) == 1
    assert rows_dropped({"batchId": 8}) == 0
