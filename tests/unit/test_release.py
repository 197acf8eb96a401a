"""What says the version, or the name that pip knows, says the same everywhere."""

import json
import re
import tomllib
from pathlib import Path

import explorer as ex
from explorer.model.distribution import NAME

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_written_once_and_repeated_right():
    assert "version" in PROJECT["dynamic"]
    (cited,) = re.findall(r"^version: (\S+)$", read("CITATION.cff"), re.MULTILINE)
    (released,) = re.findall(r"^date-released: (\S+)$", read("CITATION.cff"), re.MULTILINE)
    heading, day = re.findall(r"^## \[(\d[^\]]*)\] – (\S+)$", read("CHANGELOG.md"), re.MULTILINE)[0]
    package = json.loads(read("explorer/view/labextension/package.json"))
    assert {ex.__version__, cited, heading, package["version"]} == {"0.2.0"}
    assert released == day


def test_extras_are_named_by_the_distributions_name():
    assert PROJECT["name"] == NAME
    own = [line for lines in PROJECT["optional-dependencies"].values() for line in lines if "explorer[" in line]
    assert own
    assert all(line.startswith(f"{NAME}[") for line in own)
    assert {"lab", "cuda", "mcp", "png", "asm"} <= PROJECT["optional-dependencies"].keys()


def test_nobody_is_told_to_install_another_projects_package():
    documents = [ROOT / name for name in ("README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md")]
    code = (file for folder in ("explorer", "tests") for file in (ROOT / folder).rglob("*.py"))
    files = [*documents, *(ROOT / "docs").rglob("*.md"), *code]
    extra = r"(?<![\w.-])explorer\[(?:lab|png|asm|mcp|cuda|test|unit)"
    wrong = re.compile(rf"pip install (?:-\S+ )*['\"]?explorer\b(?!-)|{extra}")
    found = {str(file): hits for file in files if file != Path(__file__) and (hits := wrong.findall(file.read_text()))}
    assert found == {}


def test_types_are_published():
    for package in ("explorer", "pytest_explorer"):
        assert (ROOT / package / "py.typed").is_file()


def test_the_workflow_runs_every_check_and_a_release():
    workflow = read(".github/workflows/test.yml")
    targets = set(re.findall(r"make (\w+)", workflow))
    assert {"test", "release"} <= targets
    makefile = read("Makefile")
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
