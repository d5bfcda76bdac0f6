import hashlib
from pathlib import Path

import pytest
from tests.support.paths import CHECKOUT

from lockstep.settings import Settings
from lockstep.stack import jars


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """A lock of two jars, which hold their own names."""
    names = ("kafka/a.jar", "spark/b.jar")
    path = tmp_path / "jars.lock"
    path.write_text("".join(f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in names))
    return path


@pytest.fixture
def cached(settings: Settings, lock: Path) -> Path:
    """A cache in which both jars are intact."""
    root = jars.directory(settings, lock)
    for name in jars.locked(lock):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(name)
    return root


def test_an_intact_jar_is_not_fetched_again(settings: Settings, lock: Path, cached: Path) -> None:
    assert jars.broken(cached, lock) == {}
    assert jars.fetch(settings, lock=lock) == 0


def test_a_corrupt_and_a_missing_jar_are_distinguished(lock: Path, cached: Path) -> None:
    (cached / "kafka/a.jar").write_text("half a download")
    (cached / "spark/b.jar").unlink()
    assert jars.broken(cached, lock) == {"kafka/a.jar": "corrupt", "spark/b.jar": "missing"}


def test_another_lock_has_another_directory(settings: Settings, lock: Path, cached: Path) -> None:
    lock.write_text(lock.read_text().replace("a.jar", "c.jar"))
    assert jars.directory(settings, lock) != cached


def test_the_lock_of_the_project_has_the_jars_of_all_three_servers() -> None:
    names = jars.locked()
    assert {name.split("/")[0] for name in names} == {"spark", "kafka", "connect"}
    for jar in ("spark/delta-spark_4.1_2.13-4.4.0.jar", "kafka/kafka_2.13-4.2.0.jar"):
        assert jar in names
    assert any(name.startswith("connect/debezium-connector-postgres-") for name in names)


def test_the_lock_of_the_project_names_every_dependency_of_the_ivy_file() -> None:
    from xml.etree import ElementTree

    wanted = ElementTree.parse(CHECKOUT / "infra" / "ivy.xml").iter("dependency")  # noqa: S314
    expected = {f"{d.get('conf', '').split('->')[0]}/{d.get('name')}-{d.get('rev')}.jar" for d in wanted}
    assert expected <= set(jars.locked())
