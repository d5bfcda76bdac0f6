"""The stack's commands: ``up``, ``down``, ``logs``, ``doctor``, ``reset`` and ``jars``."""

import os
from typing import Annotated

import typer
from rich.console import Console

from lockstep import project, settings
from lockstep.stack import doctor, jars
from lockstep.stack.parts import log_file
from lockstep.stack.registry import select
from lockstep.stack.stack import Stack

app = typer.Typer()
console = Console(highlight=False, soft_wrap=True)
Parts = Annotated[list[str] | None, typer.Argument(help="Parts, such as kafka spark airflow; all when none is named.")]


def say(line: str) -> None:
    """One line for a person, as it is."""
    console.print(line, markup=False)


@app.command()
def up(parts: Parts = None) -> None:
    """Start the stack and wait until it is healthy."""
    project.package()
    Stack(settings.load()).up(parts, say)


@app.command()
def down() -> None:
    """Stop the stack. Nothing is lost."""
    Stack(settings.load()).down(say)


@app.command()
def logs(
    part: Annotated[str, typer.Argument(help="A part, or supervisord.")],
    lines: Annotated[int, typer.Option("--lines", "-n", help="How many of the last lines.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as more are written.")] = False,
) -> None:
    """Show what a part printed."""
    if part != "supervisord":
        select([part])
    path = log_file(settings.load(), part)
    if follow:
        os.execlp("tail", "tail", f"-n{lines}", "-F", str(path))
    for line in doctor.last_lines(path, lines):
        say(line)


@app.command("doctor")
def diagnose() -> None:
    """Say what stands in the way of the stack, and how to fix it."""
    found = settings.load()
    stack = Stack(found)
    health = stack.health()
    stopped = [part for part in select() if part.launch and health[part.name].state in ("stopped", "failed")]
    findings = doctor.examine(found, stopped)
    if not stopped:
        findings += doctor.tools(found)
    for name, state in health.items():
        if state.healthy:
            findings.append(doctor.Finding("ok", f"{name}: {state.detail}"))
        elif state.state != "stopped":
            what = f"{name} is {state.state}: {state.detail}"
            findings.append(doctor.Finding("problem", what, f"read `lockstep logs {name}`; `lockstep up {name}`."))
    for finding in findings:
        say(f"{finding.level:8}{finding.what}" + (f"\n        To fix it: {finding.fix}" if finding.fix else ""))
    if any(finding.level == "problem" for finding in findings):
        raise typer.Exit(1)


@app.command()
def reset(yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False) -> None:
    """Stop the stack and remove all of its data: databases, topics, lake, logs and secrets.

    A lake outside of the home stays."""
    found = settings.load()
    if not yes:
        typer.confirm(f"Remove {found.home}, with its databases, topics and lake?", abort=True)
    Stack(found).reset(say)
    say(f"{found.home} is gone; the jars in {found.cache} stay.")


@app.command("jars")
def fetch_jars(
    relock: Annotated[bool, typer.Option("--relock", help="Write infra/jars.lock anew.")] = False,
) -> None:
    """Fetch the jars of the stack, and check each against its SHA-256."""
    found = settings.load()
    if relock:
        say(f"{jars.LOCK_FILE} names {jars.relock(found)} jars now: review the difference before it is committed.")
    count = jars.fetch(found, say)
    say(f"{len(jars.locked())} jars in {jars.directory(found)}, {count} fetched.")
