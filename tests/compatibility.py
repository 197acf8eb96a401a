"""What works on each JAX between the oldest and the newest: the unit tests on every one, and a table of how many pass.

    python -m tests.compatibility [0.11.0 …] [--jobs 2]
    python -m tests.compatibility --kept

Each release has a virtual environment of its own (`.venv-jax-…`, kept), on one of the Pythons that `RELEASES` names,
with the newest of all else that fits. One runs after the other. A test that fails is run again, alone, as `make unit`
does, and counts where it fails there as well. Rows of releases that are not run stay as they are in
docs/compatibility.md. `--kept` runs nothing: it takes the rows of the two ends from what `make unit` and `make
unit-newest` left of their last run, if that was of the commit that is here.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from tests.support.pythons import python_of

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "docs" / "compatibility.md"
# The Python is the oldest that the release has wheels for, or a newer one, so that each Python is run.
RELEASES = {
    "0.10.2": "3.11", "0.11.0": "3.12", "0.11.1": "3.13", "0.11.2": "3.12", "0.12.0": "3.13", "0.12.0.1": "3.12",
}  # fmt: skip
# The environments of `make unit` and `make unit-newest`, and the prefix of the folders that keep their last runs.
KEPT = {".venv": "unit", ".venv-newest": "newest"}
TESTS = ("-m", "not slow", "tests/unit", "tests/seeds")
QUICKLY = {"XLA_FLAGS": "--xla_backend_optimization_level=0", "JAX_PLATFORMS": "cpu"}  # as the Makefile's unit
HEAD = """\
# JAX, release by release

The fast unit tests on each release of JAX, as `make compatibility` ran them: one environment for each, with the newest
versions of all other packages. A failed test runs again, alone, and counts as failed if it fails again. Skipped tests
need a device, another compiler or a missing package. Differences between JAX releases, such as the number of kernels,
are no failures: the tests compare Explorer's statements with the installed release.

| JAX | Python | passed | failed | skipped | day | commit |
|---|---|---:|---:|---:|---|---|
"""


@dataclass(frozen=True)
class Row:
    """What one release gave."""

    jax: str
    python: str
    passed: int
    failed: int
    skipped: int
    day: str
    commit: str

    def to_markdown(self) -> str:
        counts = f"{self.passed:,} | {self.failed:,} | {self.skipped:,}"
        return f"| {self.jax} | {self.python} | {counts} | {self.day} | {self.commit} |"


def main() -> int:
    """Run the releases that are named, or all; the exit status says whether one has a failure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help=f"all if none is given: {', '.join(RELEASES)}")
    parser.add_argument("--jobs", default="2", help="how many tests at once: 2")
    parser.add_argument("--kept", action="store_true", help="the last runs of make unit and make unit-newest")
    given = parser.parse_args()
    rows = read_rows(TABLE.read_text(encoding="utf-8")) if TABLE.is_file() else {}
    failures = 0
    releases = given.releases or (() if given.kept else RELEASES)
    made = (run(release, RELEASES.get(release, "3.13"), given.jobs) for release in releases)
    kept = map(kept_run, KEPT if given.kept else ())
    for row in chain(made, kept):
        print(row.to_markdown(), flush=True)
        failures += row.failed
        rows[row.jax] = row
        ordered = sorted(rows.values(), key=lambda row: [int(part) for part in row.jax.split(".")])
        TABLE.write_text(HEAD + "".join(f"{row.to_markdown()}\n" for row in ordered), encoding="utf-8")
    return failures > 0


def read_rows(text: str) -> dict[str, Row]:
    """The rows of the table, by release."""
    cells = re.findall(r"^\| (\d[\d.]+) \| (\S+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| (\S+) \| (\S+) \|$", text, re.M)
    rows = (
        Row(jax, python, *(int(count.replace(",", "")) for count in counts), day, commit)
        for jax, python, *counts, day, commit in cells
    )
    return {row.jax: row for row in rows}


def run(release: str, python: str, jobs: str) -> Row:
    """The unit tests on one release of JAX."""
    environment = ROOT / f".venv-jax-{release}"
    binary = environment / "bin" / "python"
    if not (environment / "ready").is_file():
        install(environment, release, python)
    with TemporaryDirectory() as folder:
        junit, cache = Path(folder, "all.xml"), ("-o", f"cache_dir={folder}/cache", "-p", "no:randomly")
        pytest(binary, *cache, "-n", jobs, f"--junitxml={junit}", *TESTS)
        if counts(junit)[1]:
            last = ("--last-failed", "--last-failed-no-failures", "none")
            pytest(binary, *cache, *last, "-v", f"--junitxml={junit.with_name('again.xml')}", *TESTS)
        return row(binary, junit)


def kept_run(environment: str) -> Row:
    """What the last run of `make unit`, or of `make unit-newest`, gave; an error where it was of another commit."""
    pattern = f".pytest_cache/{KEPT[environment]}-*/all.xml"
    junits = sorted(ROOT.glob(pattern))
    if not junits:
        raise SystemExit(f"{pattern} is not there: make unit and make unit-newest write it")
    committed = datetime.fromisoformat(git("log", "-1", "--format=%cI"))
    if min(map(start, junits)) < committed or git("status", "--porcelain", "explorer"):
        raise SystemExit(f"{pattern} is of another commit, or explorer/ has changes: run it again")
    return row(ROOT / environment / "bin" / "python", *junits)


def row(binary: Path, *junits: Path) -> Row:
    """Return the row of a run in parts; `again.xml` next to the file of a part has what was run a second time."""
    total, failed, skipped = map(sum, zip(*map(counts_at_last, junits), strict=True))
    script = "import jax, platform; print(jax.__version__, platform.python_version())"
    versions = subprocess.run([binary, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    jax, python = versions.stdout.split()
    day = min(map(start, junits)).date().isoformat()
    return Row(jax, python, total - failed - skipped, failed, skipped, day, git("rev-parse", "--short", "HEAD"))


def start(junit: Path) -> datetime:
    """When a run began."""
    suites = ElementTree.parse(junit).getroot().iter("testsuite")
    return min(datetime.fromisoformat(suite.get("timestamp", "")).astimezone(UTC) for suite in suites)


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def install(environment: Path, release: str, python: str) -> None:
    """A virtual environment with that JAX and what the unit tests need."""
    print(f"setting up {environment.name} (once, some minutes)", flush=True)
    shutil.rmtree(environment, ignore_errors=True)
    interpreter = python_of(python)
    if interpreter is None:
        raise SystemExit(f"there is no Python {python} on the PATH, nor under pyenv")
    subprocess.run([interpreter, "-m", "venv", environment], check=True)
    options = ["--quiet", "--disable-pip-version-check", f"jax=={release}", "-e", f"{ROOT}[unit]"]
    subprocess.run([environment / "bin" / "python", "-m", "pip", "install", *options], check=True)
    (environment / "ready").touch()


def pytest(binary: Path, *arguments: str) -> None:
    subprocess.run([binary, "-m", "pytest", "-q", *arguments], cwd=ROOT, env={**os.environ, **QUICKLY}, check=False)


def counts(junit: Path) -> tuple[int, int, int]:
    """How many tests there were, failed, and were skipped."""
    suites = ElementTree.parse(junit).getroot().iter("testsuite")
    total = failed = skipped = 0
    for suite in suites:
        total += int(suite.get("tests", 0))
        failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped += int(suite.get("skipped", 0))
    return total, failed, skipped


def counts_at_last(junit: Path) -> tuple[int, int, int]:
    """Return the counts of a part; of its failures, those that failed again."""
    total, failed, skipped = counts(junit)
    again = junit.with_name("again.xml")
    return total, counts(again)[1] if failed and again.is_file() else failed, skipped


if __name__ == "__main__":
    sys.exit(main())
