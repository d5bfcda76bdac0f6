"""Sinks: how rows leave the lake. ``lockstep alerts`` shows what they delivered.

=================  ==================================================================================================
``alerts``         the alerts that views declare: one sink for the topic, one for each receiver that the settings name
``kafka_sink``     rows to a Kafka topic, at most once, at least once or exactly once
``direct_sink``    rows to a receiver without a log between, over a transport: ``webhook`` or ``mail``. They go through the
                   ``outbox`` in PostgreSQL, from which a ``sender`` sends them
=================  ==================================================================================================
"""
