"""The stack's commands: ``up``, ``down``, ``logs``, ``doctor``, ``reset`` and ``jars``."""

import os
from typing import Annotated

import typer

from lockstep import project, settings, terminal
from lockstep.deploy import apply as deploy
from lockstep.deploy.observe import observe
from lockstep.stack import doctor, jars
from lockstep.stack.registry import select
from lockstep.stack.services import log_file
from lockstep.stack.stack import Stack

console = terminal.console()
Services = Annotated[
    list[str] | None, typer.Argument(help="Services, such as kafka spark airflow; all when none is named.")
]


def say(line: str) -> None:
    """Print a line as it is: brackets in it are no markup."""
    console.print(line, markup=False)


def up(services: Services = None) -> None:
    """Start the stack and wait until it is healthy. If it ran already, it gets to run what the project's files say now."""
    project.package()
    stack = Stack(settings.load())
    ran = stack.pid("live")
    stack.up(services, say)
    if ran and not services:
        deploy.apply(stack, observe(stack), say)


def down(services: Services = None) -> None:
    """Stop the stack, or services and those that need them. Nothing is lost."""
    Stack(settings.load()).down(services, say)


def logs(
    service: Annotated[str, typer.Argument(help="A service, or supervisord.")],
    lines: Annotated[int, typer.Option("--lines", "-n", help="How many of the last lines to show.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as more lines are written.")] = False,
) -> None:
    """Show the log of a service."""
    if service != "supervisord":
        select([service])
    path = log_file(settings.load(), service)
    if follow:
        os.execlp("tail", "tail", f"-n{lines}", "-F", str(path))
    for line in doctor.last_lines(path, lines):
        say(line)


def diagnose() -> None:
    """Show what keeps the stack from running, and how to fix it."""
    current = settings.load()
    stack = Stack(current)
    health = stack.health()
    stopped = [
        service for service in select() if service.launch and health[service.name].state in ("stopped", "failed")
    ]
    findings = doctor.examine(current, stopped)
    if not stopped:
        findings += doctor.tools(current)
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


def reset(yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False) -> None:
    """Stop the stack and remove all of its data: databases, topics, lake, logs and secrets.

    A lake outside of the home stays.
    """
    current = settings.load()
    if not yes:
        typer.confirm(f"Remove {current.home}, with its databases, topics and lake?", abort=True)
    Stack(current).reset(say)
    say(f"{current.home} is removed; the jars in {current.cache} stay.")


def fetch_jars(
    relock: Annotated[bool, typer.Option("--relock", help="Write infra/jars.lock again.")] = False,
) -> None:
    """Fetch the jars of the stack, and check each against its SHA-256."""
    current = settings.load()
    if relock:
        say(f"{jars.LOCK_FILE} names {jars.relock(current)} jars now: review the difference before you commit it.")
    count = jars.fetch(current, say)
    say(f"{len(jars.locked())} jars in {jars.directory(current)}, {count} fetched.")
