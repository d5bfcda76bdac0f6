"""Spark's state store of a stateful operator, in memory."""

import pickle
import struct
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.proto import StateMessage_pb2 as messages

from lockstep.definition.events import LIVE_COLUMNS


class StateStore:
    """One key's variables, as ``StatefulProcessorHandle`` gives them."""

    def __init__(self) -> None:
        self.maps: list[Map] = []

    def getValueState(self, _name: str, _schema: str) -> "Value":
        """As of ``StatefulProcessorHandle``."""
        return Value()

    def getMapState(self, _name: str, _key_schema: str, _value_schema: str) -> "Map":
        """As of ``StatefulProcessorHandle``."""
        self.maps.append(Map())
        return self.maps[-1]


class Value:
    """As Spark's ``ValueState``."""

    def __init__(self) -> None:
        self._value: tuple[Any, ...] | None = None

    def get(self) -> tuple[Any, ...] | None:
        return self._value

    def update(self, value: tuple[Any, ...]) -> None:
        self._value = value

    def clear(self) -> None:
        self._value = None


class Map:
    """As Spark's ``MapState``, with the server's end of its calls: each is answered in its turn."""

    def __init__(self) -> None:
        self.values: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._stateName = "map"
        self._mapStateClient = self._stateful_processor_api_client = self.sockfile = self
        self._answers: deque[tuple[int, str, bytes]] = deque()

    def _deserialize_from_bytes(self, value: bytes) -> tuple[Any, ...]:
        """As of the client of the state server."""
        found: tuple[Any, ...] = pickle.loads(value)  # noqa: S301 the test wrote it
        return found

    def flush(self) -> None:
        """As of the file of a socket."""

    def write(self, sent: bytes) -> None:
        """As of the file of a socket: a call, behind the version of the protocol and its length."""
        version, length = struct.unpack("!ii", sent[:8])
        assert (version, length) == (0, len(sent) - 8)
        request = messages.StateRequest.FromString(sent[8:])
        call = request.stateVariableRequest.mapStateCall
        answer = b""
        match call.WhichOneof("method"):
            case "getValue":
                key = self._deserialize_from_bytes(call.getValue.userKey)
                answer = pickle.dumps(self.values[key]) if key in self.values else b""
            case "updateValue":
                key = self._deserialize_from_bytes(call.updateValue.userKey)
                self.values[key] = self._deserialize_from_bytes(call.updateValue.value)
            case "removeKey":
                self.values.pop(self._deserialize_from_bytes(call.removeKey.userKey), None)
        self._answers.append((0, "", answer))

    def _receive_proto_message(self) -> tuple[int, str, bytes]:
        return self._answers.popleft()


def as_rows(entries: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    """Rows for the operator, as Spark brings them."""
    row_of = Row(*LIVE_COLUMNS)
    return (row_of(*(entry[name] for name in LIVE_COLUMNS)) for entry in entries)
