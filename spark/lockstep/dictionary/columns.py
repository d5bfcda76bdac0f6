"""The texts of the columns that the platform adds to streams and views. Data only."""

from collections.abc import Mapping

BRONZE: Mapping[str, str] = {
    "topic": "The topic of the record.",
    "partition": "The partition of the record.",
    "offset": "The offset of the record in its partition.",
    "timestamp": "The record's Kafka timestamp (UTC): when it arrived, which decides whether it is late.",
    "timestamp_type": "Who set the timestamp: 0 the producer (CreateTime), 1 the broker (LogAppendTime).",
    "key": "The record's key as bytes; null where it has none.",
    "headers": "The record's headers, in their order. The header lockstep-heartbeat marks a record without data.",
    "value": "The record's value as bytes: JSON, with personal values in the clear. Null in a tombstone.",
}
# The columns of the other layers, which have the same meaning in all tables.
ADDED: Mapping[str, str] = {
    "_topic": "The topic of the record that the row comes from.",
    "_partition": "The partition of the record that the row comes from.",
    "_offset": "The offset of the record that the row comes from.",
    "_arrival": "When the record arrived (UTC): its Kafka timestamp.",
    "_watermark": (
        "The watermark of the row's partition when it arrived (UTC): the newest arrival so far, less the out-of-orderness "
        "that the contract allows."
    ),
    "_op": "What happened to the row in its table, as Debezium says it: c created, u updated, d deleted, r read by a snapshot.",
    "_lsn": "The position of the change in the log of the source database (LSN).",
    "_commit_lsn": "The LSN of the commit that the change is part of. Changes are ordered by it, and then by _lsn.",
    "_committed_at": "When the change was committed in the source database (UTC).",
    "_deleted": "Whether the row was deleted in the source database. It keeps the values that it had.",
    "_before": "The row before an update, as JSON without its personal columns; null for all other changes.",
    "_generation": "The life of the source database, from 1: a restored or replaced one begins the next, whose LSNs begin anew.",
    "_unknown": "The names of fields that the record has and the contract does not name, as a JSON array; null: there are none.",
    "_reason": "Why the record failed validation, such as malformed or missing user_id.",
    "_key": "The record's key as bytes.",
    "_value": "The record's value as bytes, with personal values in the clear.",
    "_run_id": "The run of refine that quarantined the record.",
    "at": "The instant of the event or of the timer that the row comes from (UTC).",
    "window_start": "When the window begins (UTC); this instant is in it.",
    "window_end": "When the window ends (UTC); this instant is not in it.",
    "_revision": "The number of the row among those of its machine: of two rows of a key, the higher one is valid.",
    "_updated_at": "When the live query wrote the row (UTC).",
    "valid_from": "From when on the row was like this (UTC).",
    "valid_to": "Until when the row was like this (UTC; this instant is not in it); null: until further notice.",
    "known_from": "Since when this was known (UTC): the time of the commit that said so.",
    "known_to": "Until when this was known (UTC), before a later commit ended or corrected it; null: it is known now.",
    "is_current": "Whether this is the row as it is now: it is known now, and nothing has ended it.",
    "_late_by": "How long after its event time the row arrived.",
    "_counted": "Whether the row was counted although it was late: it arrived before correct_within had passed.",
    "_layer": "The layer that the row is from: batch or live.",
    "_final": "Whether batch has closed the row: only a replay changes it after that. Rows of views over tables are never final.",
    "_as_of": "When the row's layer last wrote (UTC): later events are not in the row.",
}
FRESHNESS: Mapping[str, str] = {
    "view": "The name of the view.",
    "final_until": "Rows before this instant (UTC) are final; null: nothing is.",
    "batch_at": "When batch last wrote the view (UTC); null: it has not.",
    "live_at": "When the live query last wrote the view (UTC); null: it has not.",
}
