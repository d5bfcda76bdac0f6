"""The suites: one JSON file of Great Expectations for each table, at ``expectations/<layer>/<table>.json``."""

from typing import TYPE_CHECKING, Any

from lockstep.contracts import CONTRACTS
from lockstep.quality.distributions import follows_history, name_of, problem
from lockstep.suite_files import Severity, SuiteMissing, quarantining, read, root, severity_of, suite_file, text_of

if TYPE_CHECKING:
    from lockstep.settings import Settings

_NOT_DELETED = {"type": "comparison", "column": {"name": "_deleted"}, "operator": "==", "parameter": False}


def gated(settings: "Settings") -> list[str]:
    """The tables that have a suite, as ``layer.name``, sorted."""
    return sorted(f"{file.parent.name}.{file.stem}" for file in root(settings).glob("*/*.json"))


def load(settings: "Settings", table: str) -> dict[str, Any]:
    """The table's suite, as Great Expectations takes it.

    An expectation that puts rows of a stream of changes aside is not asked of deletes: they are never put aside, because they may
    have no more than the key.

    Raises:
        SuiteMissing: the file does not exist, or it is not a valid suite.
    """
    suite = read(settings, table)
    for expectation in filter(follows_history, suite["expectations"]):
        if reason := problem(expectation, pii_columns(table)):
            file = suite_file(settings, table).relative_to(settings.project)
            raise SuiteMissing(f"{file}: {name_of(expectation)}: {reason}")
    contract = CONTRACTS.get(table.partition(".")[2])
    if contract and contract.kind == "changes":
        suite["expectations"] = [_of_rows(one) for one in suite["expectations"]]
    return suite


def _of_rows(expectation: dict[str, Any]) -> dict[str, Any]:
    if severity_of(expectation) is not Severity.QUARANTINE:
        return expectation
    return {**expectation, "kwargs": {**expectation["kwargs"], "row_condition": _NOT_DELETED}}


def problems(settings: "Settings") -> dict[str, str]:
    """The suites that cannot be used, and why, by file. Those of silver are refused with their contract, and not named here."""
    found = {}
    for table in gated(settings):
        if table.startswith("silver."):
            continue
        try:
            expectations = quarantining(settings, table)
        except SuiteMissing as error:
            found[table] = str(error)
            continue
        if expectations:
            texts = ", ".join(text_of(one["type"], one["kwargs"]) for one in expectations)
            found[table] = (
                f"{texts}: only rows of silver can be put aside, where both layers read the same records; leave out "
                "meta.quarantine, or ask it of the stream's suite"
            )
    return {str(suite_file(settings, table)): reason for table, reason in found.items()}


def pii_columns(table: str) -> frozenset[str]:
    """The columns of the table whose values are never shown in messages, not even as tokens."""
    contract = CONTRACTS.get(table.partition(".")[2])
    return frozenset(contract.pii) if contract else frozenset()
