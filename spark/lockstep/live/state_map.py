"""A map in the state of Spark's stateful operator, of which many keys are read or written at once.

PySpark's ``MapState`` makes a call for each key, and waits for its answer from the server's JVM: on a machine that has other work
these are some milliseconds each, and a micro-batch of some thousand machines took minutes. The server answers calls in their
order, so here many are sent at once, before the first answer is read.
"""

import pickle
import struct
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkRuntimeError
from pyspark.sql.streaming.proto import StateMessage_pb2 as messages

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState

Key = tuple[Any, ...]
# Calls that are sent before their answers are read. Calls that read, and answers to calls that write, are short, and so many of
# them fit into the buffers of a socket: otherwise each side could wait until the other one reads.
_AT_ONCE = 100
# Before each call: the version of the protocol, and the length of the call.
_HEADER = struct.Struct("!ii")


class StateMap:
    """Texts by key.

    Args:
        state: of ``StatefulProcessorHandle``, with one column of text as its value.
    """

    def __init__(self, state: "MapState") -> None:
        # There is no public way to make several calls at once (seen in pyspark 4.1.4).
        self._name, self._server = state._stateName, state._mapStateClient._stateful_processor_api_client

    def read(self, keys: Iterable[Key]) -> dict[Key, str]:
        """The texts of those keys that there are."""
        found: dict[Key, bytes] = {}
        for some in _batches(keys):
            answers = self._call([{"getValue": {"userKey": _encoded(key)}} for key in some])
            found |= {key: value for key, value in zip(some, answers, strict=True) if value}
        return {key: self._server._deserialize_from_bytes(value)[0] for key, value in found.items()}

    def write(self, values: Mapping[Key, str | None]) -> None:
        """Write the texts; None removes a key, if it is there."""
        for some in _batches(values.items()):
            self._call([_writing(key, value) for key, value in some])

    def _call(self, calls: list[dict[str, Any]]) -> list[bytes]:
        file = self._server.sockfile
        for call in calls:
            # The parts of a message are made in place from dicts. A message that is given to another is copied.
            of_map: Any = {"mapStateCall": {"stateName": self._name, **call}}
            text = messages.StateRequest(stateVariableRequest=of_map).SerializeToString()
            file.write(_HEADER.pack(0, len(text)) + text)
        # The client's own method would send each of them by itself.
        file.flush()
        answers = [self._server._receive_proto_message() for _ in calls]
        if errors := [error for status, error, _ in answers if status != 0]:
            raise PySparkRuntimeError(
                f"{len(errors)} of {len(calls)} calls of the state {self._name} failed: {errors[0]}"
            )
        return [value for _, _, value in answers]


def _writing(key: Key, value: str | None) -> dict[str, Any]:
    if value is None:
        return {"removeKey": {"userKey": _encoded(key)}}
    return {"updateValue": {"userKey": _encoded(key), "value": _encoded((value,))}}


def _encoded(values: tuple[Any, ...]) -> bytes:
    """What the client's own method gives for texts and numbers, in a twentieth of the time: it makes a row of them first."""
    return pickle.dumps(values, pickle.HIGHEST_PROTOCOL)


def _batches(items: Iterable[Any]) -> Iterator[list[Any]]:
    rest = iter(items)
    while some := [*islice(rest, _AT_ONCE)]:
        yield some
