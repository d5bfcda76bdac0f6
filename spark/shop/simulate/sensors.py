"""The warehouse's sensors: regular readings of a daily wave, with noise and rare excursions. Pure."""

from math import pi, sin
from random import Random

from shop.simulate.sessions import DAY, HOUR, Event, stamp

# metric -> (mean, half of the daily wave, standard deviation, height of an excursion)
_METRICS = {"temperature": (18.0, 4.0, 0.3, 12.0), "humidity": (50.0, 8.0, 1.5, 30.0)}
_EXCURSION = 0.002


def readings(rng: Random, count: int, start: int, end: int, interval: int) -> list[Event]:
    """The readings of ``count`` sensors at each multiple of ``interval`` in ``[start, end)``, all in milliseconds."""
    events = []
    for number in range(count):
        sensor = f"sensor-{number + 1:02d}"
        metric = list(_METRICS)[number % len(_METRICS)]
        mean, wave, deviation, height = _METRICS[metric]
        for at in range(-(-start // interval) * interval, end, interval):
            value = mean + wave * sin(2 * pi * (at % DAY - 9 * HOUR) / DAY) + rng.gauss(0, deviation)
            if rng.random() < _EXCURSION:
                value += height
            payload = {"sensor_id": sensor, "metric": metric, "reading": f"{value:.3f}"}
            identity = {"event_id": f"{rng.getrandbits(96):024x}", "event_time": stamp(at)}
            events.append(Event("sensors", sensor, at, identity | payload))
    return events
