"""``lockstep init`` makes an empty project that works as it is, and touches nothing that is there."""

import os
import re
import subprocess
import sys
from string import Template

import pytest
from tests.support.paths import CHECKOUT

from lockstep.new import init
from lockstep.new.render import NotMade

TEMPLATES = CHECKOUT / "spark" / "lockstep" / "new" / "templates" / "project"


def test_the_package_is_named_after_the_directory(tmp_path):
    package, files = init.project(tmp_path / "My Shop-2")
    assert package == "my_shop_2"
    assert all((tmp_path / "My Shop-2" / file).is_file() for file in files)


def test_a_directory_that_has_anything_in_it_is_refused_and_left_alone(tmp_path):
    (tmp_path / ".keep").touch()
    with pytest.raises(NotMade, match="is not an empty directory"):
        init.project(tmp_path, "acme")
    assert [file.name for file in tmp_path.iterdir()] == [".keep"]


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "acme").touch()
    with pytest.raises(NotMade, match="is not an empty directory"):
        init.project(tmp_path / "acme")


@pytest.mark.parametrize("package", ["class", "Acme", "2nd", "my-shop", "../acme", "ünder"])
def test_what_cannot_be_a_package_is_refused(tmp_path, package):
    with pytest.raises(NotMade, match="choose one with --package"):
        init.project(tmp_path / "acme", package)
    assert not (tmp_path / "acme").exists()


# A database that the platform has, a module of the standard library, one of a dependency, and one that is installed here.
@pytest.mark.parametrize("package", ["lockstep", "airflow", "postgres", "template0", "json", "kafka", "hypothesis"])
def test_a_name_that_is_taken_is_refused(tmp_path, package):
    with pytest.raises(NotMade, match="choose another with --package"):
        init.project(tmp_path / "acme", package)
    assert not (tmp_path / "acme").exists()


def test_a_directory_whose_name_cannot_be_a_package_needs_the_option(tmp_path):
    with pytest.raises(NotMade, match="--package"):
        init.project(tmp_path / "2026")
    assert init.project(tmp_path / "2026", "acme")[0] == "acme"


def test_an_empty_project_has_no_streams_and_views_and_its_tests_pass(empty):
    code = "from lockstep.contracts import CONTRACTS; from lockstep.definition.registry import VIEWS, chosen; "
    code += "print(list(CONTRACTS), list(VIEWS), chosen('all'))"
    env = os.environ | {"PYTHONPATH": str(CHECKOUT / "spark")}
    for command, printed in (["-c", code], "[] [] []"), (["-m", "pytest", "-q", "-p", "no:cacheprovider"], "2 skipped"):
        done = subprocess.run([sys.executable, *command], cwd=empty.project, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert printed in done.stdout


@pytest.mark.parametrize(
    ("file", "template"),
    [("dbt/dbt_project.yml", "dbt_project.yml"), ("tests/shop/oracles/record.py", "record.py")],
)
def test_the_shop_has_the_files_that_a_new_project_gets(file, template):
    expected = Template((TEMPLATES / f"{template}.tmpl").read_text()).substitute(package="shop")
    # Only the streams are the shop's own.
    actual = re.sub(r"(REQUIRED: .* = ){.*?\n}", r"\1{}", (CHECKOUT / file).read_text(), flags=re.DOTALL)
    assert actual == expected, f"{file} and its template must be changed together"
