"""The delete of a row that has ended without a record of its own."""

import json

from lockstep.refine.deletes import End, delete_of


def test_a_delete_has_the_row_as_it_was_and_the_place_in_the_sources_log_at_which_it_ended():
    source = {
        "connector": "postgresql",
        "lsn": 20,
        "sequence": '[null,"20"]',
        "ts_ms": 5,
        "snapshot": "last",
        "table": "t",
    }
    change = {"before": None, "after": {"id": 1, "price": "9.90"}, "op": "r", "source": source}
    told = json.loads(delete_of(json.dumps(change).encode(), End(2, 30, 40, 1_000)))
    assert (told["op"], told["before"], told["after"]) == ("d", change["after"], None)
    assert (told["source"]["lsn"], json.loads(told["source"]["sequence"])) == (40, ["30", "40"])
    assert (told["source"]["connector"], told["source"]["table"], told["source"]["ts_ms"]) == ("lockstep", "t", 1_000)
