"""Spark's state store of a stateful operator, in memory."""

from typing import Any


class StateStore:
    """One key's variables and timers, as ``StatefulProcessorHandle`` gives them; also the ``TimerValues`` of a call."""

    def __init__(self) -> None:
        self.timers: set[int] = set()
        self.watermark = 0

    def getValueState(self, _name: str, _schema: str) -> "Value":
        """As of ``StatefulProcessorHandle``."""
        return Value()

    def getMapState(self, _name: str, _key_schema: str, _value_schema: str) -> "Map":
        """As of ``StatefulProcessorHandle``."""
        return Map()

    def registerTimer(self, milliseconds: int) -> None:
        """As of ``StatefulProcessorHandle``."""
        self.timers.add(milliseconds)

    def deleteTimer(self, milliseconds: int) -> None:
        """As of ``StatefulProcessorHandle``."""
        self.timers.discard(milliseconds)

    def getCurrentWatermarkInMs(self) -> int:
        """As of ``TimerValues``."""
        return self.watermark


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
    """As Spark's ``MapState``."""

    def __init__(self) -> None:
        self.values: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def getValue(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None:
        return self.values.get(key)

    def updateValue(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> None:
        self.values[key] = value

    def removeKey(self, key: tuple[Any, ...]) -> None:
        self.values.pop(key, None)
