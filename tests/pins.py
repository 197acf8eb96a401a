"""Install packages as constraints.txt pins them, each verified by a hash of hashes.txt before anything of it runs.

    python tests/pins.py EXTRA…            the project here, with extras, into the environment of this interpreter
    python tests/pins.py --tools NAME…     packages alone
    python tests/pins.py --write           hashes.txt anew, by uv, of what constraints.txt pins

pip can't take hashes from a constraints file: with one, it refuses whatever the file does not list as a requirement. So
pip first says what it would install, from wheels alone, of which nothing runs. Then the lines of these packages, with
the hashes of all their files, are the requirements. The project itself is built last, by a backend that is pinned too.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
CONSTRAINTS, HASHES = ROOT / "constraints.txt", ROOT / "hashes.txt"
PIP = (
    sys.executable,
    "-m",
    "pip",
    "install",
    "--quiet",
    "--quiet",
    "--disable-pip-version-check",
    "--only-binary=:all:",
)


def canonical(name: str) -> str:
    """The name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements(extras: Iterable[str]) -> Iterator[str]:
    """What the project needs, and what builds it; an extra may name others."""
    read = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = read["project"]
    yield from (
        *read["build-system"]["requires"],
        "editables",
        *project["dependencies"],
    )  # the backend asks for it late
    pending = [*extras]
    while pending:
        for line in project["optional-dependencies"][pending.pop()]:
            own = re.fullmatch(rf"{project['name']}\[(.*)\]", line)
            if own is None:
                yield line
            else:
                pending += own[1].split(",")


def hashed() -> dict[str, str]:
    """The requirement of each package in hashes.txt, with its hashes, by name."""
    joined = HASHES.read_text(encoding="utf-8").replace("\\\n", " ")
    return {canonical(line.partition("==")[0]): line for line in joined.splitlines() if line.strip()}


def install(wanted: list[str]) -> None:
    """Install what these requirements resolve to, as it is pinned, if each file has a hash that is known."""
    known = hashed()
    with TemporaryDirectory() as folder:
        report, pinned = Path(folder, "report.json"), Path(folder, "pinned.txt")
        plan = ("--dry-run", "--ignore-installed", "--report", str(report), "--constraint", str(CONSTRAINTS))
        subprocess.run([*PIP, *plan, *wanted], check=True)
        packages = json.loads(report.read_text(encoding="utf-8"))["install"]
        names = sorted(canonical(package["metadata"]["name"]) for package in packages)
        if missing := [name for name in names if name not in known]:
            raise SystemExit(f"not in hashes.txt: {', '.join(missing)}; pin them in constraints.txt, then: make pins")
        pinned.write_text("\n".join(known[name] for name in names), encoding="utf-8")
        subprocess.run([*PIP, "--no-deps", "--require-hashes", "--requirement", str(pinned)], check=True)


def write() -> None:
    """Write hashes.txt: of each pinned version the hashes of all files in the index, for every Python and platform."""
    options = ("--no-deps", "--generate-hashes", "--no-header", "--no-annotate", "--python-version", "3.13")
    subprocess.run(["uv", "pip", "compile", "--quiet", *options, str(CONSTRAINTS), "-o", str(HASHES)], check=True)


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", metavar="NAME", nargs="*")
    parser.add_argument("--tools", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if given.write:
        write()
    elif given.tools:
        install(given.names)
    else:
        install([*requirements(given.names)])
        editable = ("--no-deps", "--no-build-isolation", "--editable", str(ROOT))
        subprocess.run([*PIP, *editable], check=True)


if __name__ == "__main__":
    main()
