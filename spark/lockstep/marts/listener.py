"""What dbt says while it runs, told to the marts that it is about: its own lines, and why something failed."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.marts import artefacts
from lockstep.marts.progress import Progress, State

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest

    from lockstep.settings import Settings

log = logging.getLogger(__name__)
# dbt's levels that people read.
_LEVELS = {"info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
# Its events of a model or a test that begins, ends or is left out. Others repeat the messages of what fails, with stacks.
_LINES_OF_RUN = ("Log", "Skipping")
# What is wrong is in the first lines of a message. Spark's plan and stack follow.
_LINES = 5
# What dbt says of a model or a test that is not in order.
_BROKEN, _WARNED, _SKIPPED = {"error", "fail", "runtime error"}, {"warn"}, {"skipped"}


def listener(settings: "Settings", manifest: "Manifest", progress: Progress) -> Callable[[Any], None]:
    """A callback for dbt's events."""

    def hear(event: Any) -> None:
        node_info = getattr(event.data, "node_info", None)
        unique_id = getattr(node_info, "unique_id", "")
        node = manifest.nodes.get(unique_id) if unique_id else None
        if node is None:
            return
        marts = about(manifest, node)
        level = _LEVELS.get(event.info.level)
        if level and event.info.name.startswith(_LINES_OF_RUN):
            for mart in marts:
                progress.say(event.info.msg.strip(), mart, level)
            if not marts:
                log.log(level, "%s", event.info.msg.strip())
        if event.info.name == "NodeFinished":
            _finished(settings, node, event.data.run_result, marts, progress)

    return hear


def about(manifest: "Manifest", node: Any) -> list[str]:
    """The marts that a model or a test is about: itself; that of a generic test; all that a singular test reads."""
    attached = getattr(node, "attached_node", None)
    candidates = [node.unique_id] if node.resource_type.value == "model" else [attached or "", *node.depends_on_nodes]
    found = [name for name in candidates if name in manifest.nodes and manifest.nodes[name].schema == lake.BUILT]
    marts = [manifest.nodes[name].name for name in found if manifest.nodes[name].resource_type.value == "model"]
    return marts[:1] if attached else sorted({*marts})


def _finished(settings: "Settings", node: Any, result: Any, marts: list[str], progress: Progress) -> None:
    is_model = node.resource_type.value == "model"
    for mart in marts:
        if result.status in _BROKEN:
            progress.found(mart, State.FAILED)
        elif is_model:
            progress.found(mart, State.SKIPPED if result.status in _SKIPPED else State.SUCCESS)
    if result.status in _BROKEN:
        progress.failed[node.name] = marts
    if result.status not in _BROKEN | _WARNED:
        return
    level = logging.ERROR if result.status in _BROKEN else logging.WARNING
    # What failed, and is no mart's, is why none is published.
    for mart in marts or [""]:
        lines = [line.rstrip() for line in (result.message or "").splitlines() if line.strip()]
        for line in lines[:_LINES]:
            progress.say(f"  {line}", mart, level)
        progress.say(f"  the statement: {artefacts.compiled(settings, node)}", mart, level)
