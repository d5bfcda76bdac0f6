"""Fixtures that last as long as the tests of a folder end with it."""

from tests.support.paths import CHECKOUT


def test_a_folder_whose_fixtures_last_for_the_package_is_a_package():
    """Pytest lets them last for the whole run otherwise, and the tests of other folders see the servers of this one."""
    folders = [
        file.parent for file in (CHECKOUT / "tests").rglob("conftest.py") if 'scope="package"' in file.read_text()
    ]
    assert folders
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []
