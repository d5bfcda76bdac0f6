"""What dbt says while it runs, told to the boxes that it is about: its own lines, and why something failed.

A mart has two boxes: one of its model, one of its tests.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.marts import artefacts
from lockstep.marts.progress import Box, Kind, Progress, State

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
        boxes = boxes_of(manifest, node)
        level = _LEVELS.get(event.info.level)
        if level and event.info.name.startswith(_LINES_OF_RUN):
            for box in boxes:
                progress.say(event.info.msg.strip(), box, level)
            if not boxes:
                log.log(level, "%s", event.info.msg.strip())
        if event.info.name == "NodeFinished":
            _finished(settings, node, event.data.run_result, boxes, progress)

    return hear


def boxes_of(manifest: "Manifest", node: Any) -> list[Box]:
    """The boxes that a model or a test is about: a test may be of several marts."""
    kind = Kind.RUN if node.resource_type.value == "model" else Kind.TEST
    return [Box(mart, kind) for mart in about(manifest, node)]


def about(manifest: "Manifest", node: Any) -> list[str]:
    """The marts that a model or a test is about: itself; that of a generic test; all that a singular test reads."""
    attached = getattr(node, "attached_node", None)
    candidates = [node.unique_id] if node.resource_type.value == "model" else [attached or "", *node.depends_on_nodes]
    found = [name for name in candidates if name in manifest.nodes and manifest.nodes[name].schema == lake.BUILT]
    marts = [manifest.nodes[name].name for name in found if manifest.nodes[name].resource_type.value == "model"]
    return marts[:1] if attached else sorted({*marts})


def tests_of(manifest: "Manifest", mart: str) -> list[str]:
    """The names of the tests that are about a mart; sorted."""
    tests = (node for node in manifest.nodes.values() if node.resource_type.value == "test")
    return sorted(node.name for node in tests if mart in about(manifest, node))


def _finished(settings: "Settings", node: Any, result: Any, boxes: list[Box], progress: Progress) -> None:
    is_broken = result.status in _BROKEN
    for box in boxes:
        progress.found(
            box, State.FAILED if is_broken else State.SKIPPED if result.status in _SKIPPED else State.SUCCESS
        )
    if is_broken:
        progress.failed[node.name] = boxes
    if not is_broken and result.status not in _WARNED:
        return
    level = logging.ERROR if is_broken else logging.WARNING
    # What failed, and is no mart's, is why none is published.
    told: list[Box | None] = [*boxes] or [None]
    for whom in told:
        lines = [line.rstrip() for line in (result.message or "").splitlines() if line.strip()]
        for line in lines[:_LINES]:
            progress.say(f"  {line}", whom, level)
        progress.say(f"  the statement: {artefacts.compiled(settings, node)}", whom, level)
