"""What says the version, or the name that pip knows, says the same everywhere."""

import json
import re
import tomllib
from pathlib import Path

import yaml

import explorer as ex
from explorer.model.text import NAME
from tests.release import bill_of_materials

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


def test_every_action_is_pinned_by_commit_and_says_its_version():
    uses = re.findall(r"uses: (.*)", read(".github/workflows/test.yml"))
    assert uses
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", line) for line in uses), uses


def test_only_the_job_that_builds_nothing_can_sign():
    workflow = yaml.safe_load(read(".github/workflows/test.yml"))
    assert workflow["permissions"] == {"contents": "read"}
    permitted = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
    assert permitted == {"attest": {"id-token": "write", "attestations": "write"}}
    assert not any("run" in step for step in workflow["jobs"]["attest"]["steps"])
    assert workflow["jobs"]["attest"]["if"] == "startsWith(github.ref, 'refs/tags/v')"


def test_what_is_pinned_is_what_dependabot_looks_at():
    updates = yaml.safe_load(read(".github/dependabot.yml"))["updates"]
    assert {update["package-ecosystem"] for update in updates} == {"github-actions", "npm", "pip"}
    for update in updates:
        assert (ROOT / update["directory"].lstrip("/")).is_dir()


def test_the_bill_of_materials_has_each_package_with_its_hash():
    def package(name, digest):
        return {
            "metadata": {"name": name, "version": "1.0"},
            "download_info": {"url": "file:///x", "archive_info": {"hashes": {"sha256": digest}}},
        }

    report = {"install": [package("jax_compilation.explorer", "a" * 64), package("NumPy", "b" * 64)]}
    bill = bill_of_materials(report)
    assert bill["metadata"]["component"]["purl"] == f"pkg:pypi/{NAME}@1.0"
    (part,) = bill["components"]
    assert (part["purl"], part["hashes"]) == ("pkg:pypi/numpy@1.0", [{"alg": "SHA-256", "content": "b" * 64}])
    assert bill["dependencies"] == [{"ref": f"pkg:pypi/{NAME}@1.0", "dependsOn": ["pkg:pypi/numpy@1.0"]}]
    assert "file:" not in json.dumps(bill)  # no address
