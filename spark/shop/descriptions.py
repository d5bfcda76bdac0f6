"""What columns mean that several of the shop's streams have."""

EVENT = {
    "event_id": "The id of the event, which its producer gives it. Copies of an event have the same one.",
    "event_time": "When it happened (UTC).",
}
OF_A_COMMAND = {
    "command_id": "The command that became this event.",
}
VISITOR = {
    "user_id": "The customer: user_id of users.",
    "session_id": "The visit that the event is part of.",
}
PLACE = {
    "country": "The country of the visitor.",
    "device": "mobile, desktop or tablet.",
}
