"""Make the changes of a plan, in order. What need not stop is not stopped, and it may run twice."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from lockstep.deploy import columns
from lockstep.deploy.observe import observe
from lockstep.deploy.plan import Observed
from lockstep.errors import LockstepError
from lockstep.kafka_clients import ensure_topics
from lockstep.live import progress
from lockstep.stack import connector
from lockstep.stack.connector_config import captured_tables

if TYPE_CHECKING:
    from lockstep.stack.stack import Stack

# The first batch of a new query takes a few seconds, and half a minute on a server that has just started.
_LIVE_SECONDS = 180.0
LIVE = "live"


class ApplyIncomplete(LockstepError):
    """Not everything runs as the project's files say."""


def apply(stack: "Stack", observed: Observed, say: Callable[[str], None]) -> None:
    """Make the changes: topics, settings, services, columns, and the live queries of the views that differ.

    Batch needs nothing else: each task reads the project's files when it begins.

    Raises:
        ApplyIncomplete: a view does not run after three minutes; the message says why.
    """
    if observed.missing_topics:
        for topic in ensure_topics(stack.settings):
            say(f"topic {topic}: created")
    if observed.restarted:
        stack.restart({name for setting in observed.settings for name in setting.services}, say)
    if observed.new_services:
        stack.up([*observed.new_services], say)
    if observed.capture.new or observed.capture.gone:
        connector.register(stack.settings)
        connector.remove_unused(stack.settings)
        tables = [table for name in stack.settings.sources for table in captured_tables(stack.settings, name)]
        say(f"connect: captures {', '.join(tables) or 'nothing'}")
    if observed.tables:
        columns.follow(stack.settings, observed.tables)
        for name in observed.tables:
            say(f"table {name}: has the columns that are declared")
    if observed.not_live:
        stack.supervisor.signal(LIVE, "HUP")
        say("live: loads the project's files again")
        _await_live(stack)
        say("live: runs the views as they are")


def _await_live(stack: "Stack") -> None:
    """Wait until the live service runs each view as it is now."""

    def left() -> list[str]:
        names, published = observe(stack).not_live, progress.latest(stack.settings)
        errors = {name: f": {q.error}" for name, q in published.items() if q.error}
        return [f"{name}{errors.get(name, '')}" for name in names]

    attempts = Retrying(stop=stop_after_delay(_LIVE_SECONDS), wait=wait_fixed(2), retry=retry_if_result(bool))
    try:
        attempts(left)
    except RetryError as error:
        views = "\n".join(f"  {line}" for line in error.last_attempt.result())
        raise ApplyIncomplete(
            f"The live service does not run these views as they are after {_LIVE_SECONDS:.0f} s:\n{views}\n"
            "See `lockstep logs live`; `lockstep checkpoints compatible` says which of them cannot go on."
        ) from None
