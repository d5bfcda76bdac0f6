"""The DAGs as Airflow parses them."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import ValidationError, validate
from tests.support.paths import CHECKOUT

from lockstep.contracts import CONTRACTS
from lockstep.orchestration import BACKFILL_POOL, BACKGROUND_POOL, LIVE_POOL, PARALLELISM, POOLS

TASKS = {
    "ingest": {"events", "changes", "landed", "complete"},
    "refine": {"silver", "gate_silver", "gold", "gate_gold", "complete"},
    "reconcile": {"reconcile"},
    "marts": {"build", "complete"},
    "rollup_daily": {"day_has_passed", "rebuild_day", "complete"},
    "maintain": {"maintain", "airflow_database", "dbt_docs", "dbt_source_freshness"},
    "replay": {"plan", "shadow", "diff", "who_decides", "by_hand", "by_rule", "answer", "promote", "discard"},
    "replay_undo": {"undo"},
    "checkpoints": {"carry_out"},
    "erase": {"plan", "approve", "answer", "live_is_stopped", "erase", "forget_form", "complete"},
}


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = str(tmp_path_factory.mktemp("airflow"))
    env = os.environ | {"AIRFLOW_HOME": home, "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    # In a process of its own: other tests have imported modules that a DAG must not import.
    command = [sys.executable, str(Path(__file__).parent / "parse.py"), str(CHECKOUT / "dags")]
    output = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    result: dict[str, Any] = json.loads(output.partition("RESULT")[2])
    return result


@pytest.fixture(scope="module")
def dags(parsed: dict[str, Any]) -> dict[str, Any]:
    return dict(parsed["dags"])


@pytest.fixture(scope="module")
def tasks(dags: dict[str, Any]) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    yield [(f"{dag}.{name}", task) for dag, fields in dags.items() for name, task in fields["tasks"].items()]


def test_every_file_is_imported_without_an_error(parsed: dict[str, Any]) -> None:
    assert parsed["errors"] == {}


def test_the_dags_and_their_tasks_are_those_of_the_design(dags: dict[str, Any]) -> None:
    names = [file.stem for file in (CHECKOUT / "dbt" / "models" / "marts").glob("*.sql")]
    of_marts = {f"marts.{name}.{kind}" for name in names for kind in ("run", "test")}
    found = {name: set(dag["tasks"]) for name, dag in dags.items() if name in TASKS}
    assert found == TASKS | {name: TASKS[name] | of_marts for name in ("marts", "rollup_daily")}


def test_a_mart_is_run_and_then_tested_after_the_run_of_dbt_and_the_marts_that_it_is_made_from(
    dags: dict[str, Any],
) -> None:
    for dag, builder in (("marts", "build"), ("rollup_daily", "rebuild_day")):
        tasks = dags[dag]["tasks"]
        assert tasks["marts.daily_orders.run"]["upstream"] == [builder]
        assert tasks["marts.daily_orders.run"]["outlets"] == ["marts.daily_orders"]
        assert tasks["marts.daily_orders.test"]["upstream"] == ["marts.daily_orders.run"]
        assert tasks["marts.daily_orders.test"]["outlets"] == []
        tested = {f"marts.{name}.test" for name in ("customer_lifetime_value", "daily_customers")}
        assert {*tasks["marts.customer_cohorts.run"]["upstream"]} == {builder, *tested}
        # A red mart, or a red test, must not end in a green run.
        assert {*tasks["complete"]["upstream"]} == {builder} | {name for name in tasks if name.startswith("marts.")}


def test_parsing_a_dag_imports_nothing_heavy(parsed: dict[str, Any]) -> None:
    assert parsed["heavy"] == []


def test_every_dag_says_what_it_does(dags: dict[str, Any]) -> None:
    assert [name for name, dag in dags.items() if not (dag["doc"] and dag["description"] and dag["tags"])] == []


def test_no_dag_catches_up_by_itself(dags: dict[str, Any]) -> None:
    assert [name for name, dag in dags.items() if dag["catchup"]] == []


def test_every_task_has_an_owner_and_is_retried_soon(tasks: list[tuple[str, dict[str, Any]]]) -> None:
    wrong = [name for name, t in tasks if t["owner"] != "lockstep" or t["retries"] < 3 or not 0 < t["delay"] <= 30]
    # Whoever clears a mart sees what becomes of it; the task that runs dbt for all is retried.
    assert {name.rsplit(".", 2)[0] for name in wrong} <= {"marts.marts", "rollup_daily.marts"}


def test_every_task_has_a_time_limit_and_backs_off_but_a_person_may_take_days(dags: dict[str, Any]) -> None:
    tasks = {f"{name}.{task}": t for name, dag in dags.items() for task, t in dag["tasks"].items()}
    assert {name for name, t in tasks.items() if not t["timeout"]} == {"replay.by_hand", "erase.approve"}
    assert [name for name, t in tasks.items() if t["backoff"] < 2] == []


def test_live_work_and_backfills_have_pools_of_their_own(dags: dict[str, Any]) -> None:
    pools = {name: {task["pool"] for task in dag["tasks"].values()} for name, dag in dags.items()}
    assert all(pool in POOLS for used in pools.values() for pool in used)
    assert pools["ingest"] == pools["refine"] == pools["checkpoints"] == {LIVE_POOL}
    assert pools["rollup_daily"] == pools["replay"] == pools["erase"] == {BACKFILL_POOL}


def test_the_marts_and_the_comparison_run_one_after_the_other(dags: dict[str, Any]) -> None:
    """No row waits for them, and each one is older while both are at work. Who clears the task of a mart waits for neither."""
    tasks = {f"{name}.{task}": t["pool"] for name, dag in dags.items() for task, t in dag["tasks"].items()}
    assert {name for name, pool in tasks.items() if pool == BACKGROUND_POOL} == {"marts.build", "reconcile.reconcile"}
    assert POOLS[BACKGROUND_POOL][0] == 1
    assert {pool for name, pool in tasks.items() if name.startswith("marts.marts.")} == {LIVE_POOL}


def test_the_live_pool_has_room_for_all_of_its_dags_at_once(dags: dict[str, Any]) -> None:
    """A task of ingest that waits for the marts makes all views older. What waits in the triggerer takes no slot."""
    live = [dag for dag in dags.values() if LIVE_POOL in {task["pool"] for task in dag["tasks"].values()}]
    assert sum(map(width, live)) == POOLS[LIVE_POOL][0]
    assert sum(slots for slots, _ in POOLS.values()) == PARALLELISM, "no pool waits for another"


def width(dag: dict[str, Any]) -> int:
    """How many tasks of one run may be at work at once."""
    depths: dict[str, int] = {}

    def depth(name: str) -> int:
        if name not in depths:
            depths[name] = 1 + max(map(depth, dag["tasks"][name]["upstream"]), default=0)
        return depths[name]

    working = [name for name in dag["tasks"] if name != "complete" and not name.startswith("marts.")]
    return max(Counter(map(depth, working)).values())


def test_gold_comes_only_after_the_gate_on_silver(dags: dict[str, Any]) -> None:
    tasks = dags["refine"]["tasks"]
    assert tasks["gate_silver"]["upstream"] == ["silver"]
    assert tasks["gold"]["upstream"] == ["gate_silver"]
    assert tasks["gate_gold"]["upstream"] == ["gold"]
    # A red gate must not end in a green run.
    assert tasks["complete"]["upstream"] == ["gate_gold", "gate_silver", "gold", "silver"]


def test_one_dag_starts_the_next(dags: dict[str, Any]) -> None:
    assert dags["ingest"]["tasks"]["landed"]["outlets"] == ["lockstep://bronze"]
    assert dags["ingest"]["tasks"]["landed"]["upstream"] == ["changes", "events"]


def test_airflows_asset_graph_leads_from_a_topic_to_the_marts(tasks: list[tuple[str, dict[str, Any]]]) -> None:
    reached = {f"kafka.{CONTRACTS['orders'].topic}"}
    for _ in range(4):
        readers = [task for _, task in tasks if reached & {*task["inlets"]}]
        reached |= {table for task in readers for table in task["outlets"]}
    assert {"bronze.orders", "silver.orders_changes", "silver.orders", "quarantine.orders"} <= reached
    assert {"gold.orders_with_customer", "marts.daily_orders", "ops.reconciliation"} <= reached


def test_the_marts_read_the_tables_that_their_models_name(dags: dict[str, Any]) -> None:
    assert dags["marts"]["tasks"]["build"]["inlets"] == [
        *("gold.ad_click_through", "gold.fraud_alerts", "gold.product_stock"),
        *("silver.inventory_changes", "silver.order_lines", "silver.order_lines_changes", "silver.orders"),
        *("silver.orders_changes", "silver.page_views", "silver.payments", "silver.products"),
        *("silver.products_changes", "silver.users_changes"),
    ]


def test_a_replay_may_write_every_layer(dags: dict[str, Any]) -> None:
    promoted, undone = dags["replay"]["tasks"]["promote"], dags["replay_undo"]["tasks"]["undo"]
    assert promoted["outlets"] == undone["outlets"]
    assert {"bronze.page_views", "silver.page_views", "gold.page_views_per_minute"} <= {*promoted["outlets"]}


def test_what_follows_runs_by_the_clock_too_so_that_nothing_waits_for_new_rows(dags: dict[str, Any]) -> None:
    assert "*/5 * * * *" in dags["refine"]["schedule"]
    assert "2-59/5 * * * *" in dags["reconcile"]["schedule"]


def test_a_run_of_rollup_daily_covers_one_day_in_utc(dags: dict[str, Any]) -> None:
    assert dags["rollup_daily"]["interval"] == ["2026-11-19T00:00:00+00:00", "2026-11-20T00:00:00+00:00"]


def test_a_replay_is_promoted_only_after_somebody_or_the_rule_has_decided(dags: dict[str, Any]) -> None:
    tasks = dags["replay"]["tasks"]
    upstream = {name: task["upstream"] for name, task in tasks.items()}
    assert upstream["shadow"] == ["plan"]
    assert "shadow" in upstream["diff"]
    assert "diff" in upstream["who_decides"]
    assert set(upstream["by_hand"]) == {"diff", "who_decides"}
    assert set(upstream["by_rule"]) == {"plan", "who_decides"}
    assert set(upstream["promote"]) == {"answer", "by_rule"}


def test_the_form_of_a_replay_has_the_words_of_its_file(dags: dict[str, Any]) -> None:
    from lockstep.replay.request import Request

    assert set(dags["replay"]["params"]) == {field.alias or name for name, field in Request.model_fields.items()}


def test_no_field_of_a_form_is_put_into_a_template(dags: dict[str, Any]) -> None:
    for dag in ("replay", "replay_undo", "checkpoints", "erase"):
        assert [name for name, task in dags[dag]["tasks"].items() if "params" in task["templated"]] == []


def test_nothing_is_erased_before_somebody_has_approved_it_and_the_live_queries_are_stopped(
    dags: dict[str, Any],
) -> None:
    upstream = {name: {*task["upstream"]} for name, task in dags["erase"]["tasks"].items()}
    assert upstream["approve"] == {"plan"}
    assert upstream["live_is_stopped"] == {"answer"}
    assert upstream["erase"] == {"approve", "live_is_stopped"}
    assert dags["erase"]["tasks"]["erase"]["at_once"] == 1
    # A red erasure must not end in a green run.
    assert upstream["complete"] == {"erase"}


def test_what_was_to_be_erased_is_forgotten_whatever_becomes_of_the_run(dags: dict[str, Any]) -> None:
    teardowns = {name: task["rule"] for name, task in dags["erase"]["tasks"].items() if task["teardown"]}
    assert teardowns == {"forget_form": "TriggerRule.ALL_DONE_SETUP_SUCCESS"}
    assert dags["erase"]["tasks"]["forget_form"]["upstream"] == ["erase"], "which ends after all others"


@pytest.mark.parametrize("text", ["page_views:0:5-9", "shop.public.users:12:0-1"])
def test_the_form_of_an_erasure_takes_the_ranges_that_the_command_takes(dags: dict[str, Any], text: str) -> None:
    schema = dags["erase"]["params"]["ranges"]
    validate([text], schema)
    validate(None, schema)
    for wrong in (f"{text} ", text.replace(":", " "), f"{text}0:1"):
        with pytest.raises(ValidationError):
            validate([wrong], schema)


@pytest.mark.parametrize("field", ["action", "query", "name", "to"])
@pytest.mark.parametrize("evil", ["'; DROP TABLE live.x", "{{ conn.password }}", "$(id)", "`id`", "a\nb"])
def test_the_form_of_checkpoints_takes_nothing_that_is_code(dags: dict[str, Any], field: str, evil: str) -> None:
    schema = dags["checkpoints"]["params"][field]
    with pytest.raises(ValidationError):
        validate(evil, schema)
    validate({"action": "reset", "query": "page_views_per_minute", "to": "0=1,1=2"}.get(field), schema)


@pytest.mark.parametrize(
    "text", ["the customers' ids were swapped", "R&D asked for it", "$5 missed; see ticket", "{{ x }}"]
)
def test_the_form_of_checkpoints_takes_any_reason_of_some_length(dags: dict[str, Any], text: str) -> None:
    schema = dags["checkpoints"]["params"]["reason"]
    validate(text, schema)
    with pytest.raises(ValidationError):
        validate(text * 100, schema)
