"""A project outside of the checkout, run by the platform's wheel: from ``lockstep init`` to the rows that its views serve.

In a directory with a space in its name, and on a machine without Java. It is the first file of this folder, so that its stack is
gone when the demo's stack starts.
"""

import json
import re
import shlex
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.airflow import AirflowPages
from tests.support.elsewhere import Elsewhere, now, produce, project_in
from tests.support.paths import CHECKOUT

# A mart, and one that is made from it.
MARTS = {
    "returns_by_day": """
{{ config(event_time='day', partition_by='day') }}
select cast(returned_at as date) as day, count(*) as returned from {{ source('silver', 'returns') }}
{% if is_incremental() %} where {{ interval_of_run('returned_at') }} {% endif %}
group by 1
""",
    "returns_doubled": """
{{ config(event_time='day', partition_by='day') }}
select day, returned * 2 as returned from {{ ref('returns_by_day') }}
{% if is_incremental() %} where {{ interval_of_run('day') }} {% endif %}
""",
}
# Until every layer has all records, and reconcile has compared the two: a minute on two idle cores.
PATIENCE = 420


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    with project_in(tmp_path_factory.mktemp("elsewhere")) as project:
        yield project


def test_the_platform_is_the_wheels_and_there_is_no_shop_and_no_java(acme):
    code = "import lockstep, shutil; from importlib.util import find_spec; "
    code += "print(lockstep.__file__, find_spec('shop'), shutil.which('java'))"
    location, shop, java = acme.run("python", "-c", code).rsplit(maxsplit=2)
    assert Path(location).is_relative_to(acme.cwd.parents[1] / "venv")
    assert (shop, java) == ("None", "None")


def of_the_readme() -> list[list[str]]:
    """The commands of the README for a project of one's own."""
    (block,) = re.findall(r"```shell\n(.*?)```", (CHECKOUT / "README.md").read_text(), re.DOTALL)
    return [shlex.split(line) for line in block.replace("\\\n", "").splitlines()]


def test_a_stream_and_two_views_are_served_as_their_oracles_say(acme):
    made, entered, *commands, up = of_the_readme()
    # The fixture has done these two, for a directory with a space in its name.
    assert (made[:2], entered[:1]) == (["lockstep", "init"], ["cd"])
    assert ["pytest"] in commands
    for mart, sql in MARTS.items():
        (acme.cwd / "dbt" / "models" / "marts").mkdir(exist_ok=True)
        mart_file(acme, mart).write_text(sql)
    for command in commands:
        # The environment has the modules of this one, and not its scripts.
        acme.run(*(["python", "-m", "pytest", "-q"] if command == ["pytest"] else command))
    acme.run("lockstep", "new", "view", "returns_numbered", "--input", "returns", "--keyed")
    acme.run(*up)
    drive = Path(__file__).parent / "drive_project.py"
    acme.run("python", str(drive), str(PATIENCE))
    status = json.loads(acme.run("lockstep", "status", "--json"))
    verdicts = {view["name"]: view["verdict"] for view in status["views"]}
    assert verdicts == {"returns_per_minute": "equal", "returns_numbered": "equal"}
    assert (status["ok"], status["problems"]) == (True, [])


def mart_file(acme: Elsewhere, name: str) -> Path:
    return acme.cwd / "dbt" / "models" / "marts" / f"{name}.sql"


@pytest.fixture(scope="module")
def pages(acme: Elsewhere) -> AirflowPages:
    address = (
        "from lockstep.settings import load; s = load(); print(s.airflow_url, s.airflow_password.get_secret_value())"
    )
    return AirflowPages(*acme.run("python", "-c", address).split())


def come_back(acme: Elsewhere, pages: AirflowPages, name: str) -> None:
    """A parcel comes back today, and silver has it."""
    event = {"return_id": name, "returned_at": now(), "order_id": "1", "refund": 1.5}
    produce(acme, "returns", [event], "order_id")
    pages.trigger("ingest")
    served(acme, "n\n1", f"SELECT count(*) AS n FROM silver.returns WHERE return_id = '{name}'")


@pytest.mark.slow
def test_a_mart_that_is_broken_is_red_alone_and_is_published_when_its_task_is_cleared_after_the_repair(acme, pages):
    before = pages.trigger("marts")
    assert pages.ended("marts", before) == "success"
    mart_file(acme, "returns_doubled").write_text("select no_such_column from {{ ref('returns_by_day') }}")
    come_back(acme, pages, "late")
    doubled = "SELECT count(*) AS n FROM marts.returns_doubled WHERE day = current_date()"
    run = pages.trigger("marts")
    assert pages.ended("marts", run) == "failed"
    red_alone = {"build": "success", "marts.returns_by_day.run": "success", "marts.returns_doubled.run": "failed"}
    # The project has no tests of marts.
    of_tests = {"marts.returns_by_day.test": "skipped", "marts.returns_doubled.test": "skipped"}
    assert pages.states("marts", run) == red_alone | of_tests | {"complete": "upstream_failed"}
    why = " ".join(pages.log("marts", run, "marts.returns_doubled.run"))
    assert "no_such_column" in why
    assert "readers keep the last good version" in why
    assert acme.run("lockstep", "sql", "--csv", doubled) == "n\n0\n"

    mart_file(acme, "returns_doubled").write_text(MARTS["returns_doubled"])
    pages.clear("marts", run, "marts.returns_doubled.run")
    assert pages.ended("marts", run) == "success"
    assert pages.states("marts", run) == dict.fromkeys([*red_alone, "complete"], "success") | of_tests
    assert "OK created sql incremental model" in " ".join(pages.log("marts", run, "marts.returns_doubled.run", 2))
    assert acme.run("lockstep", "sql", "--csv", doubled) == "n\n1\n"


@pytest.mark.slow
def test_a_red_test_has_a_task_of_its_own_that_publishes_what_waited_for_it_when_it_is_cleared(acme, pages):
    test = acme.cwd / "dbt" / "tests" / "nothing_came_back.sql"
    test.parent.mkdir(exist_ok=True)
    test.write_text("select * from {{ ref('returns_by_day') }} where day = current_date()")
    come_back(acme, pages, "tested")
    today = "SELECT returned FROM marts.returns_by_day WHERE day = current_date()"
    seen = acme.run("lockstep", "sql", "--csv", today)
    run = pages.trigger("marts")
    assert pages.ended("marts", run) == "failed"
    assert pages.states("marts", run) == {
        "build": "success",
        "marts.returns_by_day.run": "success",
        "marts.returns_by_day.test": "failed",
        "marts.returns_doubled.run": "skipped",
        "marts.returns_doubled.test": "skipped",
        "complete": "upstream_failed",
    }
    assert "FAIL 1 nothing_came_back" in " ".join(pages.log("marts", run, "marts.returns_by_day.test"))
    assert "It was built, but is not published" in " ".join(pages.log("marts", run, "marts.returns_by_day.run"))
    assert acme.run("lockstep", "sql", "--csv", today) == seen

    test.write_text("select * from {{ ref('returns_by_day') }} where returned < 0")
    pages.clear("marts", run, "marts.returns_by_day.test")
    assert pages.ended("marts", run) == "success"
    assert "PASS nothing_came_back" in " ".join(pages.log("marts", run, "marts.returns_by_day.test", 2))
    assert pages.states("marts", run)["marts.returns_doubled.run"] == "success"
    assert acme.run("lockstep", "sql", "--csv", today) != seen
    test.unlink()


def tip(acme: Elsewhere, *ids: str, **fields: str) -> None:
    """Tips of now."""
    produce(
        acme, "tips", [{"event_id": name, "event_time": now(), "user_id": name, **fields} for name in ids], "user_id"
    )


def served(acme: Elsewhere, expected: str, statement: str) -> float:
    """Wait until a statement has this answer; the seconds that it took."""
    began = time.monotonic()
    acme.run("python", str(Path(__file__).parent / "ask_project.py"), statement, expected, "240")
    return time.monotonic() - began


def queries_started(acme: Elsewhere) -> Counter[str]:
    """How often the live service has started the query of each view, by its log."""
    lines = acme.run("lockstep", "logs", "live", "-n", "2000").splitlines()
    return Counter(
        line.split("INFO ")[1].partition(":")[0] for line in lines if ": starting from the checkpoint" in line
    )


def test_what_is_changed_under_the_running_stack_is_applied_and_nothing_else_stops(acme, record_property):
    views, contracts = acme.cwd / "spark" / "acme" / "views", acme.cwd / "spark" / "acme" / "contracts"
    before = queries_started(acme)
    assert acme.run("lockstep", "plan") == "Everything runs as the project's files say.\n"

    acme.run("lockstep", "new", "stream", "tips")
    acme.run("lockstep", "new", "view", "tips_per_minute", "--input", "tips")
    planned = acme.run("lockstep", "plan", code=2)
    assert "+ topic tips" in planned
    assert "+ view tips_per_minute" in planned
    acme.run("lockstep", "apply")
    tip(acme, "a", "b", "c")
    total = "SELECT sum(events) AS n FROM serving.tips_per_minute"
    record_property("seconds after the apply of a new view", served(acme, "n\n3", total))
    served(acme, "n\n3", "SELECT count(*) AS n FROM silver.tips")  # the live layer may be first: no table yet

    view, contract = views / "tips_per_minute.py", contracts / "tips.py"
    view.write_text(view.read_text().replace('"count(*)"', '"10 * count(*)"'))
    contract.write_text(contract.read_text().replace("    columns={\n", '    columns={\n        "note": "STRING",\n'))
    (views / "returns_numbered.py").unlink()
    planned = acme.run("lockstep", "plan", code=2)
    assert "~ view tips_per_minute" in planned
    assert "- view returns_numbered" in planned
    assert "~ table silver.tips: gets the column note STRING" in planned
    assert "table silver.tips: has the columns that are declared" in acme.run("lockstep", "apply")
    tip(acme, "d", note="thanks")
    served(acme, "\nd,thanks", "SELECT user_id, note FROM silver.tips WHERE note IS NOT NULL")
    changed = served(acme, "\n10", "SELECT max(events) FROM serving.tips_per_minute")
    record_property("seconds after the apply of a changed view", changed)
    assert acme.run("lockstep", "plan") == "Everything runs as the project's files say.\n"
    started = queries_started(acme)
    assert started["returns_per_minute"] == before["returns_per_minute"], "its query was not touched"
    assert started["tips_per_minute"] == 2

    declared = contract.read_text()
    contract.write_text(declared.replace('"note": "STRING"', '"note": "DATE"'))
    assert "table silver.tips: refused: the column note is of type string, and declared as DATE" in acme.run(
        "lockstep", "plan", code=1
    )
    contract.write_text(declared)
    odd = views / "odd.py"
    odd.write_text(view.read_text().replace("tips_per_minute", "odd").replace('"10 * count(*)"', '"sum(nobody)"'))
    assert "view odd: refused: it does not run" in acme.run("lockstep", "plan", code=1)
    odd.unlink()
    (views / "broken.py").write_text("from lockstep.definition import Windowed\n\nVIEW = Windowd()\n")
    for command in ("plan", "apply", "status"):
        assert "broken.py" in (said := acme.run("lockstep", command, code=1))
        assert "line 3: NameError: name 'Windowd' is not defined" in said
    tip(acme, "e")
    served(acme, "\ne", "SELECT user_id FROM silver.tips")
    (views / "broken.py").unlink()
    acme.run("lockstep", "down")
