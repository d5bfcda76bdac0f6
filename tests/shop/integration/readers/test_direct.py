"""Direct messages: what becomes of alerts that a busy receiver does not take is the sender's choice."""

from lockstep.definition.alerting import Overload
from lockstep.sinks.direct_sink import Outcome
from shop.readers import direct


def test_an_overload_is_dropped_buffered_or_pushed_back_as_chosen(settings):
    said = []
    shown = direct.demonstrate(settings, said.append)
    left = direct.ALERTS - direct.TAKES
    assert shown == {
        Overload.DROP: Outcome(sent=direct.TAKES, dropped=left),
        Overload.BUFFER: Outcome(sent=direct.TAKES, waiting=left),
        Overload.BACKPRESSURE: None,
    }
    afterwards = [line for line in said if line.startswith("  ")]
    assert [line.endswith(f"{n} in all.") for line, n in zip(afterwards, (direct.TAKES, 20, 20), strict=True)] == [
        True
    ] * 3
