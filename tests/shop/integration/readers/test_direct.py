"""Direct messages: the sender chooses what happens to alerts that a busy receiver does not take."""

from lockstep.definition.alerting import Overload
from lockstep.sinks.direct_sink import Outcome
from shop.readers import direct


def test_an_overload_is_dropped_buffered_or_exerts_backpressure_as_chosen(settings):
    lines = []
    outcomes = direct.demonstrate(settings, lines.append)
    left = direct.ALERTS - direct.TAKES
    assert outcomes == {
        Overload.DROP: Outcome(sent=direct.TAKES, dropped=left),
        Overload.BUFFER: Outcome(sent=direct.TAKES, waiting=left),
        Overload.BACKPRESSURE: None,
    }
    afterwards = [line for line in lines if line.startswith("  ")]
    assert [line.endswith(f"{n} in all.") for line, n in zip(afterwards, (direct.TAKES, 20, 20), strict=True)] == [
        True
    ] * 3
