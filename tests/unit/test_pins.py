"""What is installed to work on the project has a pinned version and a hash that is known: see `tests/pins.py`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pins import CONSTRAINTS, ROOT, canonical, hashed, requirements

HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def test_each_pinned_version_has_hashes_and_nothing_else_has():
    pinned = [line for line in CONSTRAINTS.read_text().splitlines() if line]
    assert [f"{name}=={line.split()[0].partition('==')[2]}" for name, line in hashed().items()] == [
        f"{canonical(line.partition('==')[0])}=={line.partition('==')[2]}"
        for line in sorted(pinned, key=lambda line: canonical(line.partition("==")[0]))
    ]
    for line in hashed().values():
        first, *hashes = line.split()
        assert re.fullmatch(r"[\w.-]+==[\w.]+", first)
        assert hashes
        assert all(HASH.fullmatch(text) for text in hashes), first  # no address, no option


def test_the_requirements_are_those_of_the_project_its_extras_and_what_builds_it():
    assert {"hatchling", "editables"} < {*requirements([])}
    everything = [*requirements(["test"])]
    assert any(line.startswith("pytest>=") for line in everything)  # of the extra `unit`, which `test` names
    assert any(line.startswith("mcp>=") for line in everything)  # and of `mcp`, which that names
    assert not any(line.startswith("jax-compilation-explorer") for line in everything)


@pytest.mark.slow
def test_a_file_whose_hash_is_not_known_is_not_installed(tmp_path):
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "pins.py").write_bytes((ROOT / "tests" / "pins.py").read_bytes())
    lines = hashed()
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = str(environment / "bin" / "python")

    def install(text: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "hashes.txt").write_text(text)
        command = [python, str(tmp_path / "tests" / "pins.py"), "--tools", "pluggy"]
        return subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": ""})

    other = re.sub(r"[0-9a-f]{64}", "0" * 64, lines["pluggy"])
    refused = [install(other), install(lines["packaging"])]
    if "Could not find a version" in refused[0].stderr or "Temporary failure" in refused[0].stderr:
        pytest.skip("there is no package index here")
    assert [done.returncode != 0 for done in refused] == [True, True]
    assert "DO NOT MATCH THE HASHES" in refused[0].stderr
    assert "not in hashes.txt: pluggy" in refused[1].stderr
    assert not list(Path(environment).rglob("pluggy"))
    assert install(lines["pluggy"]).returncode == 0
    assert list(Path(environment).rglob("pluggy"))
