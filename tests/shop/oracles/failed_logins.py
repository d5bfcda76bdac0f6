"""Users who failed to log in three times within five minutes."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from tests.shop.oracles.record import Record, accepted, on_time, parsed


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """One alert where a failure is the third of its five minutes, and the failure before it was not yet such a one."""
    by_user = defaultdict(list)
    for record in on_time(accepted(records["logins"]), 10):
        if record.value["success"] is False:
            by_user[record.value["user_id"]].append(
                (parsed(record.value["event_time"]), record.value["event_id"], record)
            )
    alerts = []
    for user, failures in by_user.items():
        failures.sort(key=lambda f: f[:2])
        recent = [
            [earlier for earlier, _, _ in failures[: n + 1] if (time - earlier).total_seconds() < 300]
            for n, (time, _, _) in enumerate(failures)
        ]
        for n, (_, event_id, record) in enumerate(failures):
            if len(recent[n]) >= 3 and len(recent[n - 1]) < 3:
                country = record.value.get("country")
                alerts.append(
                    {"user_id": user, "event_id": event_id, "first_failed_at": min(recent[n]), "country": country}
                )
    return alerts
