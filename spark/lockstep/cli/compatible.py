"""``lockstep compatible``: what contracts of the working tree do not keep of an earlier version, before it ships."""

import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Annotated, Any

import typer

from lockstep import project, settings, terminal
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition.compatibility import broken_promises
from lockstep.errors import LockstepError
from lockstep.settings import Settings

_PRINT = """
import json
from lockstep.contracts import CONTRACTS
from lockstep.definition.compatibility import promise
print(json.dumps({name: promise(contract) for name, contract in CONTRACTS.items()}))
"""


class NoEarlierVersion(LockstepError):
    """There is nothing to compare with."""


def compatible(
    against: Annotated[
        str, typer.Option(help="The version to compare with, as git names it: origin/main, v1.2.")
    ] = "HEAD",
) -> None:
    """Name each change of a contract that old records, tables or producers do not survive. It exits with 1 if there is one.

    It needs no stack. Where LOCKSTEP_SCHEMA_REGISTRY_URL is set, the registry is asked too, for streams in Confluent's wire
    format.
    """
    project.package()
    console, config = terminal.console(), settings.load()
    refused = False
    for file, reason in CONTRACTS.broken.items():
        refused = True
        console.print(f"{file}: {reason}", style="red", markup=False)
    earlier = promises_of(config.project, against)
    for contract in CONTRACTS.values():
        reasons = broken_promises(earlier[contract.name], contract) if contract.name in earlier else []
        reasons += _refused_by_registry(config, contract)
        refused = refused or bool(reasons)
        for reason in reasons:
            console.print(f"{contract.name}: {reason}", style="red", markup=False)
        if not reasons:
            what = f"keeps what it promised at {against}" if contract.name in earlier else f"is new since {against}"
            console.print(f"{contract.name}: {what}", markup=False)
    if refused:
        console.print("The way out is in docs/streams.md: a column or a field with a new name, or a stream of its own.")
        raise typer.Exit(1)


def promises_of(folder: Path, version: str) -> dict[str, Any]:
    """What the contracts of a project promised at a version, by stream. Contracts that could not be read then are left out.

    Raises:
        NoEarlierVersion: git does not have that version of the project.
    """
    try:
        commit = _git(folder, "rev-parse", "--verify", "--end-of-options", f"{version}^{{commit}}").decode().strip()
        archive = _git(folder, "archive", "--format=zip", commit, "--", "pyproject.toml", "spark")
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        said = getattr(error, "stderr", b"") or str(error).encode()
        raise NoEarlierVersion(
            f"git does not have the project {folder} at {version}: {said.decode().strip()}. Name a version that it has, with "
            "--against; in CI, fetch it first."
        ) from error
    with tempfile.TemporaryDirectory() as earlier:
        with zipfile.ZipFile(io.BytesIO(archive)) as files:
            files.extractall(earlier)
        env = {**os.environ, "LOCKSTEP_PROJECT": earlier}
        done = subprocess.run([sys.executable, "-c", _PRINT], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoEarlierVersion(f"The contracts at {version} cannot be read: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _git(folder: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=True).stdout


def _refused_by_registry(config: Settings, contract: Contract) -> list[str]:
    """Why the registry does not take the contract's schema as the next one of its topic."""
    if not contract.by_registry or not config.schema_registry_url:
        return []
    from lockstep.formats.confluent import Registered
    from lockstep.schema_registry import registry_of

    registry, subject = registry_of(config), f"{contract.topic}-value"
    reasons = registry.incompatible(subject, Registered(contract.format.upper(), contract.schema)) if registry else None
    return [f"the registry refuses its schema for {subject}: {reason}" for reason in reasons or []]
