"""Debezium's connector: which generation of the source it is of, and what is said of tables without old rows."""

import json
from dataclasses import replace
from typing import Any

import pytest

from lockstep.contracts import CONTRACTS
from lockstep.refine.parse import GENERATION
from lockstep.settings import Database, Settings
from lockstep.stack import new_generation
from lockstep.stack.connector import advice
from lockstep.stack.connector_config import connector_config, generation_of, is_of_another, newest_lsn

HERE = "7711816228859168352/00000001"


def test_each_change_has_the_generation_of_its_source_in_a_header(settings: Settings) -> None:
    config = connector_config(settings, settings.package, 3, HERE)
    (name,) = config["transforms"].split(",")
    assert config[f"transforms.{name}.type"].endswith(".InsertHeader")
    assert config[f"transforms.{name}.header"] == GENERATION
    assert config[f"transforms.{name}.value.literal"] == "3"


def test_the_configuration_tells_its_generation_and_its_database(settings: Settings) -> None:
    config = connector_config(settings, settings.package, 3, HERE)
    assert generation_of(config) == 3
    assert not is_of_another(config, HERE)
    assert is_of_another(config, "7711816228859168352/00000002"), "restored up to an instant, or promoted"
    assert is_of_another(config, "7000000000000000000/00000001"), "another server"


def test_a_connector_that_was_registered_before_there_were_generations_goes_on_in_the_first(settings: Settings) -> None:
    old = {
        k: v
        for k, v in connector_config(settings, settings.package).items()
        if not k.startswith(("transforms", "lockstep"))
    }
    assert generation_of(old) == 1
    assert not is_of_another(old, HERE)


@pytest.mark.parametrize(
    ("offsets", "lsn"),
    [
        ({"offsets": []}, 0),
        ({"offsets": [{"partition": {"server": "shop"}, "offset": {"lsn_proc": 8, "lsn_commit": 7, "lsn": 9}}]}, 9),
        ({"offsets": [{"partition": {"server": "shop"}, "offset": {"snapshot": "INITIAL", "lsn": None}}]}, 0),
    ],
)
def test_the_newest_lsn_that_debezium_has_sent_is_in_its_offsets(offsets: dict[str, Any], lsn: int) -> None:
    assert newest_lsn(offsets) == lsn


def test_a_new_generation_begins_with_a_truncate_before_all_its_other_changes() -> None:
    told = json.loads(new_generation.truncate_record(1_000))
    assert (told["op"], told["before"], told["after"]) == ("t", None, None)
    assert (told["source"]["lsn"], json.loads(told["source"]["sequence"])) == (0, ["0", "0"])


def test_a_table_without_old_rows_is_named_with_the_command_that_helps() -> None:
    assert "ALTER TABLE public.orders REPLICA IDENTITY FULL; ALTER TABLE public.users REPLICA" in advice(
        ["public.orders", "public.users"]
    )


def test_each_database_has_a_connector_a_slot_and_a_password_of_its_own(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    crm = replace(CONTRACTS["orders"], name="crm_orders", database="crm", topic="crm.sales.orders")
    monkeypatch.setitem(CONTRACTS, crm.name, crm)
    two = settings.model_copy(
        update={"databases": (Database(name="crm", host="crm.example.org", port=6432, user="reader"),)}
    )
    own, other = (connector_config(two, name) for name in two.sources)
    assert other["table.include.list"] == "sales.orders"
    assert "sales.orders" not in own["table.include.list"]
    assert (own["slot.name"], other["slot.name"]) == ("lockstep", "lockstep_crm")
    assert (own["topic.prefix"], other["topic.prefix"]) == ("shop", "crm")
    assert (other["database.hostname"], other["database.port"], other["database.user"]) == (
        "crm.example.org",
        "6432",
        "reader",
    )
    assert own["database.password"] == "${env:LOCKSTEP_POSTGRES_PASSWORD}"
    assert other["database.password"] == "${env:LOCKSTEP_DATABASE_CRM_PASSWORD}"
