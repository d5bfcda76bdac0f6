"""The data docs say what a table and its columns mean, beside what is expected of them."""

import shutil
from pathlib import Path

from tests.support.paths import CHECKOUT

from lockstep import dictionary
from lockstep.quality import docs
from lockstep.settings import Settings


def test_the_page_of_a_suite_says_what_the_table_and_its_columns_mean(tmp_path: Path) -> None:
    suite = Path("expectations/silver/users.json")
    (tmp_path / suite).parent.mkdir(parents=True)
    shutil.copy(CHECKOUT / suite, tmp_path / suite)
    index = docs.build(Settings(project=tmp_path, home=tmp_path / "home"))
    page = (index.parent / "expectations/silver/users.html").read_text()
    said = dictionary.texts("silver.users")
    assert said and said.columns["age"]
    for text in (said.description, f"<code>age</code>: {said.columns['age']}", "so no address may show"):
        assert text in page
