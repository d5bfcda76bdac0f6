"""Which service reads which setting, so that a changed one restarts these services and no others."""

from collections.abc import Mapping

_ALL = "`lockstep down`, then `lockstep up`: every service reads it"
_DATA = "what is there was written with it: keep it, or begin again with `lockstep reset`"

# The services of the platform that read a setting, by its field. What nobody reads while it runs has none.
READ_BY: Mapping[str, tuple[str, ...]] = {
    "cache": (),
    "ivy_settings": (),
    "spark_master_ui_port": (),
    "spark_worker_ui_port": (),
    # Services are production's.
    "env": (),
    "kafka_memory": ("kafka",),
    "connect_memory": ("connect",),
    # `lockstep cdc verify` reads them too, by hand.
    **dict.fromkeys(("databases", "database_passwords"), ("connect", "monitor")),
    "spark_ui_port": ("spark",),
    "spark_master": ("spark",),
    "spark_config": ("spark",),
    "spark_memory": ("spark",),
    "spark_executor_memory": ("spark",),
    "event_log": ("spark", "spark-history"),
    "history_port": ("spark-history",),
    **dict.fromkeys(("thrift_port", "thrift_connect_port", "thrift_memory"), ("thrift",)),
    "cores": ("spark", "airflow-scheduler", "live"),
    "views": ("airflow-scheduler", "live", "monitor"),
    # Of `lockstep dbt`, by hand.
    **dict.fromkeys(("dbt_schema", "dbt_sample_days"), ()),
    "max_offsets_per_run": ("airflow-scheduler",),
    "max_offsets_per_trigger": ("live",),
    "heartbeat_seconds": ("live",),
    "retain_hours": ("spark-history", "airflow-scheduler"),
    "log_hours": ("airflow-scheduler",),
    "airflow_hours": ("airflow-scheduler",),
    "max_lag_seconds": ("airflow-scheduler", "monitor"),
    "metrics_port": ("monitor",),
    "notifiers": ("monitor",),
    # A query that runs has the address with which it began.
    **dict.fromkeys(
        ("schema_registry_url", "schema_registry_user", "schema_registry_password"),
        ("spark", "airflow-scheduler", "live", "monitor"),
    ),
    # The sinks of alerts are opened in Python workers of the server, which have its environment.
    **dict.fromkeys(
        ("webhook_url", "webhook_token", "mail_server", "mail_from", "mail_to", "mail_user", "mail_password"),
        ("spark", "live"),
    ),
}
# The settings that cannot be changed while the stack runs, and the way for each.
FIXED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *(
                "project",
                "kafka",
                "kafka_config",
                "spark_remote",
                "spark_token",
                "connect_url",
                "airflow_url",
                "listen",
            ),
            *("postgres_host", "postgres_port", "kafka_port", "kafka_controller_port", "connect_port", "spark_port"),
            *("airflow_port", "airflow_password"),
        ),
        _ALL,
    ),
    "home": "another home is another stack: `lockstep down` with the old one, move the directory, `lockstep up`",
    "lake": "another lake has other tables: `lockstep down`, move the lake there, `lockstep up`",
    "package": "the source database has this name: `lockstep down`, then `lockstep up`, which makes the database of the new name",
    "state_partitions": "it is fixed with the first micro-batch of a job: `lockstep down live` and `lockstep up live` give it to "
    "jobs that begin later, `lockstep checkpoints reset` begins a view again",
    **dict.fromkeys(
        ("postgres_user", "postgres_password", "airflow_fernet_key", "airflow_jwt_secret", "token_key"), _DATA
    ),
}
