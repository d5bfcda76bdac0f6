"""The demo, from nothing running to the verdict, with three of its processes killed on the way."""

import json
import os
from collections import Counter, defaultdict
from datetime import UTC
from urllib.parse import quote

import httpx
import pandas as pd
import pytest
from deltalake import DeltaTable
from tests.e2e.conftest import DAYS
from tests.support import retail_oracle
from tests.support.airflow import AirflowPages
from tests.support.openlineage import complaints
from tests.support.paths import CHECKOUT

from lockstep import lake, ledger
from lockstep.airflow_api import USER, connected
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.lineage import tables
from lockstep.maintain import airflow_database
from lockstep.results import KEY
from lockstep.serving import changelog
from lockstep.stack.postgres import connected as connected_to
from lockstep.stack.services import environment

PARQUET = CHECKOUT / "spark" / "shop" / "simulate" / "data" / "online_retail.parquet"


def pages_of(demo) -> AirflowPages:
    return AirflowPages(demo.settings.airflow_url, demo.settings.airflow_password.get_secret_value())


def table(demo, name: str) -> pd.DataFrame:
    return DeltaTable(lake.path(demo.settings, name)).to_pandas()


def test_every_killed_process_runs_again_under_another_pid(demo):
    assert demo.killed.keys() == {"airflow-scheduler", "kafka", "spark"}
    now = {service: demo.stack.pid(service) for service in demo.killed}
    assert all(now[service] and now[service] != old for service, old in demo.killed.items()), (demo.killed, now)
    for old in demo.killed.values():
        with pytest.raises(ProcessLookupError):  # the processes that it had started have ended too
            os.killpg(old, 0)


def test_every_service_is_healthy_and_the_status_says_that_all_is_right(demo):
    assert {service: h.state for service, h in demo.stack.health().items() if not h.healthy} == {}
    assert demo.status.problems == []


def test_what_the_broker_acknowledged_is_in_bronze_once_offset_by_offset(demo):
    for contract in CONTRACTS.values():
        if contract.kind == "events":
            sent = {(r["partition"], r["offset"]) for r in retail_oracle.records(demo.settings.home, contract.topic)}
            stored = table(demo, f"bronze.{contract.name}")
            found = list(zip(stored["partition"], stored["offset"], strict=True))
            assert len(found) == len(set(found)), f"{contract.name} has an offset twice"
            assert set(found) == sent, contract.name


def test_the_ledgers_are_whole_chains(demo):
    for contract in CONTRACTS.values():
        entries = list(ledger.entries(demo.settings, f"bronze.{contract.name}"))
        assert list(ledger.problems(reversed(entries))) == []


def test_the_sums_add_up_for_every_stream_and_view(demo):
    for s in demo.status.streams:
        assert s.bronze == s.silver + s.duplicates + s.quarantined + s.markers, s
    silver = {s.name: s.silver for s in demo.status.streams}
    assert {view.name for view in demo.status.views} == set(VIEWS)
    for view in demo.status.views:
        taken = sum(silver[stream] for stream in VIEWS[view.name].streams)
        assert taken == view.counted + view.ignored + view.side_output, view


def test_page_views_per_minute_is_what_the_oracle_counts_in_both_layers(demo):
    views, outcomes = retail_oracle.page_views(demo.settings.home)
    for layer in ("gold", "live"):
        rows = table(demo, f"{layer}.page_views_per_minute")
        starts = pd.to_datetime(rows["window_start"], utc=True)
        found = Counter((s.to_pydatetime(), p, n) for s, p, n in zip(starts, rows["page"], rows["views"], strict=True))
        assert found == Counter((minute, page, count) for (minute, page), count in views.items()), layer
    stream = next(s for s in demo.status.streams if s.name == "page_views")
    assert {name: outcomes.get(name, 0) for name in ("silver", "duplicates", "quarantined", "markers")} == {
        name: getattr(stream, name) for name in ("silver", "duplicates", "quarantined", "markers")
    }


def test_poison_and_late_events_were_really_there(demo):
    _, outcomes = retail_oracle.page_views(demo.settings.home)
    assert min(outcomes["duplicates"], outcomes["ignored"], outcomes["markers"]) > 0
    assert sum(s.quarantined for s in demo.status.streams) > 0


def test_daily_orders_are_the_figures_of_the_original_file(demo):
    expected = retail_oracle.daily_orders(PARQUET, DAYS, demo.today.astimezone(UTC).date())
    found = table(demo, "marts.daily_orders").sort_values(["day", "country"], ignore_index=True)
    found["orders"] = found["orders"].astype(int)
    pd.testing.assert_frame_equal(found[expected.columns.tolist()], expected, check_dtype=False)


def test_personal_columns_are_tokens_from_silver_on(demo):
    users = table(demo, "silver.users")
    assert users["email"].str.fullmatch("[0-9a-f]{32}").all()
    assert not users["email"].str.contains("@").any()


def test_each_captured_table_can_be_rebuilt_from_its_changelog_topic_alone(demo):
    for contract in CONTRACTS.values():
        if contract.kind == "changes":
            rebuilt = changelog.verify(demo.settings, contract)
            assert (rebuilt.rows > 0, rebuilt.differing) == (True, ()), contract.name


def test_airflow_has_no_import_errors_and_no_failed_run(demo):
    with connected(demo.settings) as airflow:
        assert airflow.import_errors() == {}
        states = {run.state for dag in airflow.dags() for run in airflow.runs(dag)}
    assert "failed" not in states
    assert "success" in states


def test_every_bronze_table_is_an_asset_of_airflow_whose_events_have_its_rows(demo):
    with connected_to(demo.settings, "airflow") as database, database.cursor() as cursor:
        cursor.execute(
            "SELECT asset.name, asset_event.extra FROM asset_event JOIN asset ON asset.id = asset_id "
            "WHERE asset_event.extra::text <> '{}'"
        )
        events = cursor.fetchall()
    told: Counter[str] = Counter()
    for name, extra in events:
        told[name] += extra["rows"]
    # What dbt itself says that its models read. A run says it of the tables that there are.
    manifest = json.loads((demo.settings.home / "dbt" / "prod" / "manifest.json").read_text())
    models = (node for name, node in manifest["nodes"].items() if name.startswith("model."))
    by_models = {name for model in models for name in model["depends_on"].get("nodes", ())}
    read = {f"{of['source_name']}.{of['name']}" for name, of in manifest["sources"].items() if name in by_models}
    assert read == {*tables.mart_sources()}
    said = {source for name, extra in events if name == "marts.daily_orders" for source in extra["sources"]}
    assert {"silver.orders", "silver.order_lines"} <= said <= read
    for contract in CONTRACTS.values():
        assert 0 < told[f"bronze.{contract.name}"] <= len(table(demo, f"bronze.{contract.name}")), contract.name
    assert {"silver.orders", "quarantine.clicks", "marts.daily_orders", "ops.quality"} <= told.keys()
    assert {f"gold.{name}" for name in VIEWS} <= told.keys()


def test_a_receiver_of_openlineage_can_draw_the_way_from_a_topic_to_a_mart(demo):
    events = [json.loads(body) for _, body in demo.lineage.taken]
    assert [complaint for event in events for complaint in complaints(event)] == [], "the specification takes them"
    completed = [event for event in events if event["eventType"] == "COMPLETE"]
    per_stream = {f"{step}.{stream}" for step in ("ingest", "refine") for stream in CONTRACTS}
    assert {event["job"]["name"] for event in completed} >= {
        *per_stream,
        *(f"roll_up.{view}" for view in VIEWS),
        "marts",
    }
    after = defaultdict(set)
    for event in completed:
        written = {of["name"].removeprefix(f"{demo.settings.lake}/") for of in event["outputs"]}
        for source in event["inputs"]:
            after[source["name"].removeprefix(f"{demo.settings.lake}/")] |= written
    reached, new = set(), {CONTRACTS["orders"].topic}
    while new:
        reached |= new
        new = {name for source in new for name in after[source]} - reached
    assert reached >= {"bronze/orders", "silver/orders_changes", "gold/orders_with_customer", "marts/daily_orders"}


def test_the_page_of_a_run_has_a_line_for_each_view(demo):
    with connected(demo.settings) as airflow:
        run = next(run for run in airflow.runs("refine") if run.state == "success")
    login = {"username": USER, "password": demo.settings.airflow_password.get_secret_value()}
    with httpx.Client(base_url=demo.settings.airflow_url, timeout=60) as client:
        token = client.post("/auth/token", json=login).json()["access_token"]
        left = f"/api/v2/dags/refine/dagRuns/{quote(run.run_id)}/taskInstances/gold/xcomEntries/{KEY}"
        rows = client.get(left, headers={"Authorization": f"Bearer {token}"}).json()["value"]
        page = client.get("/lockstep/tables").text
    assert {row["table"] for row in rows} == {f"gold.{view}" for view in VIEWS}
    assert f'const KEY = "{KEY}"' in page


def test_each_mart_and_its_tests_have_a_state_and_a_log_of_their_own(demo):
    pages = pages_of(demo)
    of_runs = {run: pages.states("marts", run) for run in pages.runs("marts")}
    names = [file.stem for file in (CHECKOUT / "dbt" / "models" / "marts").glob("*.sql")]
    boxes = {f"marts.{name}.{kind}" for name in names for kind in ("run", "test")}
    assert all(states.keys() == boxes | {"build", "complete"} for states in of_runs.values())
    run = next(run for run, states in of_runs.items() if states["marts.daily_orders.test"] == "success")
    said, of_tests = (" ".join(pages.log("marts", run, f"marts.daily_orders.{kind}")) for kind in ("run", "test"))
    assert "OK created sql incremental model marts_built.daily_orders" in said
    assert "PASS one_row_per_daily_orders" in of_tests
    assert ("one_row_per_daily_orders" in said, "one_row_per_daily_funnel" in of_tests) == (False, False)
    assert "rows were written to marts.daily_orders" in said
    assert "model marts_built.daily_funnel" not in said


def test_runs_that_are_long_over_leave_airflows_database(demo):
    ended = "dag_id = 'refine' AND state = 'success'"
    with connected_to(demo.settings, "airflow") as database, database.cursor() as cursor:
        cursor.execute(f"UPDATE dag_run SET start_date = start_date - interval '40 days' WHERE {ended} RETURNING id")
        old = {run for (run,) in cursor.fetchall()}
        cursor.execute(
            "UPDATE asset_event SET timestamp = timestamp - interval '40 days' WHERE source_dag_id = 'refine'"
        )
        airflow_database.clean(demo.settings)
        cursor.execute("SELECT id FROM dag_run WHERE start_date < now() - interval '30 days' AND dag_id = 'refine'")
        left = {run for (run,) in cursor.fetchall()}
        cursor.execute("SELECT count(*) FROM asset_event WHERE timestamp < now() - interval '30 days'")
        old_events = cursor.fetchone()[0]
        cursor.execute("SELECT count(*) FROM information_schema.tables WHERE table_name LIKE '_airflow_deleted_%'")
        archives = cursor.fetchone()[0]
    assert old
    assert len(left) <= 1, "the newest scheduled run stays"
    assert old_events == archives == 0


def test_the_gates_passed_and_the_data_docs_can_be_opened(demo):
    assert demo.status.quality
    assert all(verdict.success for verdict in demo.status.quality.values())
    written = (demo.settings.home / "data_docs" / "index.html").read_text()
    assert pages_of(demo).page("/lockstep-docs/data_docs/index.html") == written


def test_no_secret_is_in_a_log_a_configuration_or_an_environment_that_is_handed_on(demo):
    secrets = [
        line.partition("=")[2].strip("'\"")
        for line in demo.settings.secrets_file.read_text().splitlines()
        if "=" in line
    ]
    assert len(secrets) >= 5
    assert oct(demo.settings.secrets_file.stat().st_mode & 0o777) == "0o600"
    handed_on = json.dumps(environment(demo.settings))
    assert [s for s in secrets if s in handed_on] == []
    for directory in ("logs", "run"):
        for file in (demo.settings.home / directory).rglob("*"):
            if file.is_file():
                text = file.read_text(errors="ignore")
                assert [file for secret in secrets if secret in text] == []
