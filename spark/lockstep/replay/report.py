"""A plan and a diff for people: Markdown for Airflow's page, tables for the terminal.

Text that comes from a person or from a row is shown as it is, and never read as markup.
"""

from rich.console import Group
from rich.text import Text

from lockstep.ledger.ranges import Range
from lockstep.replay.plan import Plan
from lockstep.replay.stages import Compared, TableDiff
from lockstep.terminal import Listing, plain

KINDS = ("windows", "equal", "changed", "added", "removed")


def diff_as_markdown(replay: str, compared: Compared) -> str:
    """The diff as a table with samples, for the page on which somebody decides."""
    lines = [
        f"Replay `{replay}`: {compared.changed:,} of {compared.windows:,} windows would change.",
        "",
        "| table | " + " | ".join(KINDS) + " |",
        "|---" * (len(KINDS) + 1) + "|",
    ]
    lines += [f"| {name} | " + " | ".join(_counts(table)) + " |" for name, table in compared.tables.items()]
    lines += [""]
    lines += [f"- `{name}` {_code(sample)}" for name, table in compared.tables.items() for sample in table.samples]
    lines += [f"- `{name}` fails its suite: {_code(f)}" for name, failed in compared.checks.items() for f in failed]
    return "\n".join(lines)


def _counts(table: TableDiff) -> list[str]:
    return [f"{getattr(table, kind):,}" for kind in KINDS]


def _code(text: str) -> str:
    """As code, so that no value of a row is read as Markdown."""
    return "`" + text.replace("`", "'") + "`"


def plan_as_table(plan: Plan) -> Group:
    """What a plan reads, which windows it touches, and what it costs."""
    table = Listing("stream", "is read from", "offsets [start, end)", "rows", "MB", "arrived (UTC)")
    for part in plan.parts:
        arrived = f"{part.arrived[0]:%F %T} to {part.arrived[1]:%F %T}" if part.arrived else "-"
        cells = (part.source, _ranges(part.ranges), f"{part.rows:,}", f"{part.size / 1e6:.1f}", arrived)
        table.add_row(part.stream, *cells)
        if part.missing:
            cells = ("Kafka, by its time index", _ranges(part.missing), "", "", "not in bronze yet")
            table.add_row("", *cells)
    lines = []
    for target in plan.targets:
        span = f"[{target.low:%F %T}, {target.high:%F %T})" if target.low and target.high else "what these rows touch"
        windows = f", at most {target.windows:,} windows" if target.windows is not None else ""
        lines.append(f"gold.{target.view}: {span}{windows}")
    if not plan.parts and not plan.targets:
        lines.append("Nothing: no table has anything of what was asked for.")
    cost = f"about {plan.seconds:.0f} s for the shadow" if plan.seconds else "no replay like it was timed yet"
    lines.append(f"Cost: {plan.rows:,} rows, {sum(p.size for p in plan.parts) / 1e6:.1f} MB; {cost}.")
    return Group(*([table] if plan.parts else []), *map(Text, lines))


def _ranges(ranges: tuple[Range, ...]) -> str:
    return "  ".join(f"{r.partition}: [{r.start:,}, {r.end:,})" for r in ranges if r.size) or "-"


def diff_as_table(compared: Compared) -> Group:
    """What a promotion would change."""
    table = Listing("table", *KINDS)
    for name, changes in compared.tables.items():
        table.add_row(name, *_counts(changes))
    samples = [f"  {name} {sample}" for name, changes in compared.tables.items() for sample in changes.samples]
    failures = [f"  {name} fails its suite: {f}" for name, failed in compared.checks.items() for f in failed]
    return Group(table, *map(plain, [*samples, *failures]))
