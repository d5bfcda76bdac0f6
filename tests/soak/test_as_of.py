"""A captured table as of two hundred random moments is what an oracle says."""

from tests.support.as_of import assert_as_of_random_moments

MOMENTS = 200


def test_a_table_is_what_it_was_at_two_hundred_random_moments(source, report):
    assert_as_of_random_moments(source, MOMENTS)
    report(f"as of {MOMENTS} random moments: each is what the oracle says")
