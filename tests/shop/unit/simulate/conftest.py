"""The real history, read once, and a week of traffic around it."""

from datetime import date

import pandas as pd
import pytest

from shop.simulate import retail
from shop.simulate.plan import Amounts, Plan
from shop.simulate.retail import Retail

TODAY = date(2026, 11, 21)


@pytest.fixture(scope="session")
def raw() -> pd.DataFrame:
    """The file as it is."""
    return retail.read()


@pytest.fixture(scope="session")
def plan(raw: pd.DataFrame) -> Plan:
    """The last three days, with the default traffic."""
    return Plan.make(raw, 3, Amounts(), TODAY)


@pytest.fixture(scope="session")
def shop(raw: pd.DataFrame, plan: Plan) -> Retail:
    """The shop's tables, moved as the plan says."""
    return retail.tables(raw, plan.shift_weeks)
