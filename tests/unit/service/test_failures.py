from lockstep.service.failures import cause

IN_A_SINK = """(STREAM_FAILED) [session: 1] Found error inside foreachBatch Python process: Traceback (most recent call last):
  File "foreach_batch_worker.py", line 84, in main
    process(df_ref_id, int(batch_id))
            ^^^^^^^^^^
pyspark.errors.exceptions.connect.UnknownException: (KafkaIllegalStateException) Some data may have been lost;
either the data was aged out

JVM stacktrace:
"""


def test_an_error_in_a_sink_is_named_and_not_where_it_was_seen():
    assert cause(IN_A_SINK) == "UnknownException: (KafkaIllegalStateException) Some data may have been lost;"


def test_another_failure_is_its_first_line():
    assert cause("[CAST_INVALID_INPUT] The value 'x' cannot be cast.\nmore\n") == (
        "[CAST_INVALID_INPUT] The value 'x' cannot be cast."
    )
