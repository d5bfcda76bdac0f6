"""The embedded stack: PostgreSQL, Kafka, Connect, Spark Connect and Airflow as supervised processes on the loopback."""
