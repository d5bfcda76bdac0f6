"""The Compose file and the image are sound in themselves: valid, pinned, without secrets, and of paths that exist."""

import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from tests.support.paths import CHECKOUT

from lockstep.settings import Settings

from .conftest import SECRETS, VARIABLE, fill_in

PINNED = re.compile(r"[\w./-]+:v?\d+\.\d+[\w.-]*@sha256:[0-9a-f]{64}")
SECRET_FIELDS = {
    f"LOCKSTEP_{name.upper()}" for name, field in Settings.model_fields.items() if "Secret" in str(field.annotation)
}
# Given by whoever receives alerts or runs another Spark server; without them there is none.
GIVEN = {
    "LOCKSTEP_DATABASE_PASSWORDS",
    "LOCKSTEP_WEBHOOK_TOKEN",
    "LOCKSTEP_MAIL_PASSWORD",
    "LOCKSTEP_SPARK_TOKEN",
    "LOCKSTEP_SCHEMA_REGISTRY_PASSWORD",
}


def test_it_follows_the_compose_specification() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*command, CHECKOUT / "docker-compose.yml"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_images_are_pinned_by_version_and_digest(services: dict[str, Any], dockerfile: str) -> None:
    bases = re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)
    pulled = [service["image"] for service in services.values() if "build" not in service]
    assert len(pulled) == 4
    assert len(bases) == 1
    assert all(PINNED.fullmatch(image) for image in [*bases, *pulled])
    assert f"python:{sys.version_info.major}.{sys.version_info.minor}." in bases[0]


def test_our_image_has_the_version_of_the_package(services: dict[str, Any]) -> None:
    from lockstep import __version__

    assert {s["image"] for s in services.values() if "build" in s} == {f"lockstep:{__version__}"}


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_a_missing_secret_is_named_with_what_to_do(source: str, name: str) -> None:
    with pytest.raises(LookupError, match=rf"{name}: set it in \.env \(see \.env\.example\)"):
        fill_in(source, {key: value for key, value in SECRETS.items() if key != name})


def test_every_secret_of_the_settings_is_asked_for_and_none_is_in_a_file(source: str, dockerfile: str) -> None:
    assert set(SECRETS) | GIVEN == SECRET_FIELDS
    for line in source.splitlines():
        key, _, value = line.strip().partition(": ")
        if key in SECRET_FIELDS or "PASSWORD" in key:
            found = VARIABLE.fullmatch(value)
            assert found and found["name"] in SECRET_FIELDS, line
            assert (found["kind"], found["rest"]) == ("-", "") if key in GIVEN else found["kind"] == "?", line
    assert not any(name in dockerfile for name in SECRET_FIELDS)


def test_every_path_exists_and_every_volume_is_declared(compose: dict[str, Any]) -> None:
    used = set()
    for service in compose["services"].values():
        if "build" in service:
            assert (CHECKOUT / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
        for volume in service.get("volumes", []):
            what = volume.split(":")[0]
            if what.startswith("."):
                assert (CHECKOUT / what).is_file(), volume
                assert volume.endswith(":ro"), volume
            else:
                used.add(what)
    assert used == set(compose["volumes"])


def test_the_image_is_made_of_paths_that_exist_and_that_docker_is_given(dockerfile: str) -> None:
    rules = [line for line in (CHECKOUT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    given = {rule[1:] for rule in rules if rule.startswith("!")}
    assert rules[0] == "*"
    assert all((CHECKOUT / path).exists() for path in given)
    copied = [path for line in re.findall(r"^COPY (.*)$", dockerfile, re.MULTILINE) for path in line.split()[:-1]]
    assert len(copied) > 10
    for path in copied:
        assert (CHECKOUT / path).exists(), path
        assert path.split("/")[0] in given, path
    assert not any(fnmatch(".env", rule) for rule in given)


def test_the_layer_that_fetches_the_jars_has_every_module_that_it_imports(dockerfile: str, tmp_path: Path) -> None:
    before = dockerfile.partition("jars.fetch")[0]
    for line in re.findall(r"^COPY (.*)$", before, re.MULTILINE):
        *files, folder = line.split()
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy(CHECKOUT / file, tmp_path / folder)
    command = [sys.executable, "-c", "from lockstep.stack import jars; print(jars.__file__, len(jars.locked()))"]
    # No file of the checkout, which an editable install points at, may stand in for one that was not copied.
    env = {"PYTHONPATH": str(tmp_path / "spark"), "PATH": os.environ["PATH"]}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path))


def test_what_an_unprivileged_process_writes_to_is_its_own(
    compose: dict[str, Any], dockerfile: str, image_settings: dict[str, str]
) -> None:
    user = re.findall(r"^USER (\w+)$", dockerfile, re.MULTILINE)[-1]
    assert user != "root"
    owned = {path for paths in re.findall(rf"chown (?:-R )?{user} ([^&\n]*)", dockerfile) for path in paths.split()}
    ours = [service for service in compose["services"].values() if "build" in service]
    targets = {volume.split(":")[1] for service in ours for volume in service.get("volumes", [])}
    assert targets | {image_settings[f"LOCKSTEP_{name}"] for name in ("HOME", "LAKE", "CACHE")} == owned
