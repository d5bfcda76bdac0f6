"""An LSN of a source database is waited for in the database that has it."""

from dataclasses import replace

import pytest

from lockstep.cli import wait as module
from lockstep.cli.wait import wait
from lockstep.contracts import CONTRACTS
from lockstep.errors import LockstepError


@pytest.fixture
def customers_are_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    users = replace(CONTRACTS["users"], database="crm", topic="crm.public.users")
    monkeypatch.setitem(CONTRACTS, "users", users)


def waited_for(monkeypatch: pytest.MonkeyPatch, view: str) -> list[tuple[str, int]]:
    """The databases and the LSNs that `lockstep wait` waits for."""
    found: list[tuple[str, int]] = []
    monkeypatch.setattr(module, "await_capture", lambda _, database, lsn, _seconds: found.append((database, lsn)))
    monkeypatch.setattr(module, "_ends", lambda *_: {})
    monkeypatch.setattr(module, "work", lambda *_: None)
    wait(view, lsn="1/2", timeout=0)
    return found


def test_the_lsn_is_one_of_the_database_that_the_view_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited_for(monkeypatch, "orders_with_customer") == [("shop", 2**32 + 2)]


@pytest.mark.usefixtures("customers_are_elsewhere")
def test_for_a_view_of_tables_of_several_databases_an_lsn_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited_for(monkeypatch, "product_stock") == [("shop", 2**32 + 2)]
    with pytest.raises(LockstepError, match="reads tables of crm and shop, each of which has LSNs of its own"):
        waited_for(monkeypatch, "orders_with_customer")
