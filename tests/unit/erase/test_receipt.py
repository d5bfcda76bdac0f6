"""What the receipt of an erasure keeps when all places are looked at once more."""

from lockstep.erase.receipt import looked_again


def test_what_was_found_the_first_time_stays_and_what_is_left_is_what_there_is_now():
    first = {"records": {"users": 3}, "views": ["v"], "places": {"lake": {"before": 7, "after": 1}}, "left": ["a file"]}
    now = {"records": {"users": 9}, "views": [], "places": {"lake": {"before": 1, "after": 0}}, "left": []}
    assert looked_again(first, now) == first | {"places": {"lake": {"before": 7, "after": 0}}, "left": []}
