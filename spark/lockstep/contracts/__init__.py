"""The contracts of the project's streams; ``CONTRACTS`` finds them by name, each with its schema and the rules of its suite."""

from collections.abc import Iterable
from dataclasses import replace

from lockstep.contracts import rules
from lockstep.contracts.contract import Contract, Kind
from lockstep.project import ProjectInvalid, Registry, folder_of
from lockstep.settings import Settings
from lockstep.suite_files import SuiteMissing, quarantining, suite_file, text_of


def with_rules(contract: Contract, settings: Settings) -> Contract:
    """The contract with the rules that the suite of its silver table has, in the project of the settings.

    Raises:
        ProjectInvalid: the suite cannot be read, or an expectation of it cannot put rows aside. Without its rules the stream must
            not run: it would take what they refuse.
    """
    table = f"silver.{contract.name}"
    try:
        expectations = quarantining(settings, table)
    except SuiteMissing as error:
        raise ProjectInvalid(str(error)) from error
    file = suite_file(settings, table).relative_to(settings.project)
    refused = [
        f"{file}: {text_of(one['type'], one.get('kwargs', {}))} cannot put rows aside: {reason}"
        for one in expectations
        for reason in rules.problems(one, contract)
    ]
    if refused:
        raise ProjectInvalid("; ".join(refused))
    return replace(contract, rules=tuple(map(rules.rule_of, expectations)))


def with_schema(contract: Contract, settings: Settings) -> Contract:
    """The contract with the text of its schema's file, if it names one, in the project of the settings.

    Raises:
        ProjectInvalid: there is no such file, or its schema is not one of the contract's columns.
    """
    if not contract.schema_file:
        return contract
    file = folder_of(settings, "contracts") / contract.schema_file
    try:
        completed = replace(contract, schema=file.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise ProjectInvalid(f"its schema {file} cannot be read: {error}") from error
    if completed.problems:
        raise ProjectInvalid("; ".join(f"{contract.schema_file}: {problem}" for problem in completed.problems))
    return completed


def _completed(contract: Contract, settings: Settings) -> Contract:
    return with_rules(with_schema(contract, settings), settings)


CONTRACTS: Registry[Contract] = Registry("contracts", "CONTRACT", lambda contract: contract.problems, _completed)


def of_kind(kind: Kind, streams: Iterable[str] | None = None) -> dict[str, Contract]:
    """By stream, the contracts of a kind: ``changes`` are those of captured tables, and of the results of views.

    Args:
        streams: the names of those that are looked at, whose order stays; None: all of the project.
    """
    return {
        name: CONTRACTS[name] for name in (CONTRACTS if streams is None else streams) if CONTRACTS[name].kind == kind
    }


def captured_tables(streams: Iterable[str] | None = None) -> dict[str, Contract]:
    """By stream, the contracts of captured tables: changes that come from a source database.

    Args:
        streams: see :func:`of_kind`.
    """
    return {name: contract for name, contract in of_kind("changes", streams).items() if contract.is_captured}


__all__ = ["CONTRACTS", "Contract", "Kind", "captured_tables", "of_kind"]
