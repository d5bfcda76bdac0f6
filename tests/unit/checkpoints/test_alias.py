from pathlib import Path

import pytest

from lockstep.checkpoints import alias


@pytest.mark.parametrize("location", ["/lake/_checkpoints/a/1", "s3://bucket/my lake/_checkpoints/a/1"])
def test_a_location_that_the_reader_finds_stays_as_it_is(location: str) -> None:
    assert alias.readable(location) == location


def test_a_location_with_a_space_is_reached_through_a_link_without_one(tmp_path: Path) -> None:
    checkpoint = tmp_path / "my lake" / "_checkpoints" / "a" / "1"
    checkpoint.mkdir(parents=True)
    for _ in range(2):
        path = alias.readable(str(checkpoint))
        assert " " not in path
        assert Path(path).resolve() == checkpoint.resolve()
    Path(path.partition("/_checkpoints")[0]).unlink()
