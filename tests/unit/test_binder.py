"""Binder installs from its own list of pins: they must stay the project's own."""

import os
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
BINDER = ROOT / "binder"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def pins(file: Path) -> dict[str, str]:
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith(("#", "-c "))]
    found = [Requirement(line) for line in lines]
    for requirement in found:
        assert [s.operator for s in requirement.specifier] == ["=="], f"{file.name}: {requirement} is no exact pin"
        assert requirement.url is None, f"{file.name}: {requirement} has an address"
    return {canonicalize_name(r.name): next(iter(r.specifier)).version for r in found}


def required(extras: tuple[str, ...]) -> list[Requirement]:
    extra = [line for name in extras for line in PROJECT["optional-dependencies"][name]]
    found = [Requirement(line) for line in PROJECT["dependencies"] + extra]
    return [requirement for requirement in found if requirement.name != PROJECT["name"]]


@pytest.mark.parametrize(
    ("file", "extras"),
    [(BINDER / "requirements.txt", ("lab",)), (ROOT / "constraints.txt", ("lab", "png", "unit", "test", "docs"))],
    ids=["binder", "constraints"],
)
def test_every_requirement_is_pinned_to_a_version_it_allows(file: Path, extras: tuple[str, ...]):
    pinned = pins(file)
    for requirement in required(extras):
        version = pinned.get(canonicalize_name(requirement.name))
        assert version is not None, f"{file.name} does not pin {requirement.name}"
        assert requirement.specifier.contains(version), f"{file.name} has {requirement.name} {version}: {requirement}"


def test_binder_has_the_versions_that_the_tests_use():
    assert pins(BINDER / "requirements.txt").items() <= pins(ROOT / "constraints.txt").items()
    assert "-c ../constraints.txt" in (BINDER / "requirements.txt").read_text().splitlines()


def test_binder_has_a_python_that_the_project_allows():
    version = (BINDER / "runtime.txt").read_text().strip().removeprefix("python-")
    assert SpecifierSet(PROJECT["requires-python"]).contains(version)


@pytest.mark.parametrize("name", ["postBuild", "start"])
def test_binder_scripts_can_run_and_stop_at_the_first_failure(name: str):
    script = BINDER / name
    assert os.access(script, os.X_OK)
    assert "set -euo pipefail" in script.read_text().splitlines()


def test_binder_start_hands_over_to_the_server():
    assert (BINDER / "start").read_text().splitlines()[-1] == 'exec "$@"'
