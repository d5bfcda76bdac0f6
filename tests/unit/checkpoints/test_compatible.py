"""A verdict on whether a query can continue from its checkpoint."""

from lockstep.checkpoints.compatible import Verdict


def test_a_verdict_names_the_generation_to_begin():
    verdict = Verdict("a", 3, ("it differs",))
    assert not verdict.resumes
    assert "Begin generation 4: `lockstep checkpoints reset a --to earliest`" in str(verdict)


def test_a_query_without_differences_resumes():
    assert Verdict("a", 3, ()).resumes
