"""What a release is: a wheel and an sdist, installed where nothing else is and used once, outside of this tree.

    python -m tests.release [--only 3.11]

Both are built into dist/, the wheel from the sdist. Each of `INSTALLS` is a fresh virtual environment, in which
`FIRST_USE` runs. A Python that is not here is an error: a release is tested on all of them. dist/sbom.cdx.json lists
what the wheel needs, as it was installed with the newest packages.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from dataclasses import dataclass
from operator import ne
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.pins import canonical
from tests.support.pythons import python_of

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
NAME = "jax-compilation-explorer"
LARGEST = 1_800_000  # bytes of the wheel

FIRST_USE = """\
import sys
from importlib.metadata import version
from pathlib import Path

import jax, jax.numpy as jnp

import explorer as ex

assert Path(ex.__file__).is_relative_to(sys.prefix), ex.__file__
assert version("jax-compilation-explorer") == ex.__version__
assert (Path(ex.__file__).parent / "py.typed").is_file()


def gelu(x):
    y = jnp.tanh(0.8 * (x + 0.04 * x**3))
    return 0.5 * x * (1 + y)


x = jnp.linspace(-1, 1, 8 * 128).reshape(8, 128)
capture = ex.explore(gelu, x)
assert [stage.name for stage in capture.stages] == ["jaxpr", "stablehlo", "hlo"], capture.failure
page = capture.to_html("gelu.html").read_text()
assert "<script" in page and "gelu" in page
capture.save("gelu.capture")
assert repr(ex.load("gelu.capture")) == repr(capture)
executable = ex.compile(gelu, args=[ex.InputInfo((ex.NamedDimension("batch", 1, 8, 64), 128), jnp.float32)])
assert jnp.allclose(executable(x), gelu(x), atol=1e-6)
assert [finding.rule for finding in ex.lint(lambda v: print(v) or v, x)] == ["impure-print"]
with ex.watch() as ledger:
    jax.jit(gelu)(x)
assert any(event.function == "gelu" for event in ledger.events)
assert ex.time(gelu, x, seconds=0.05).steady.median > 0
ex.record(jax.value_and_grad(lambda v: gelu(v @ v.T).sum()), x).save("gradient.golden")
print(f"explorer {ex.__version__}, jax {jax.__version__}, Python {sys.version.split()[0]}")
"""


@dataclass(frozen=True)
class Install:
    """One environment.

    Args:
        python: Its version.
        jax: What pip is asked for; empty for the newest that fits.
        extra: The extra that is installed with it.
        is_sdist: Whether the sdist is installed, rather than the wheel.
    """

    python: str
    jax: str = ""
    extra: str = ""
    is_sdist: bool = False


PLAIN = Install("3.12")
INSTALLS = (
    Install("3.11", jax="jax==0.10.2"),
    Install("3.13", jax="jax==0.10.2"),  # the same JAX: golden files must be the same
    PLAIN,
    Install("3.13", extra="lab"),
    Install("3.13", is_sdist=True, extra="mcp"),
)


def main() -> int:
    """Build, look at what was built, and use it in each environment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="PYTHON", help="leave out the other Pythons")
    given = parser.parse_args()
    wheel, sdist = build()
    look_at(wheel)
    goldens: dict[str, str] = {}  # by the JAX that compiled it
    for install in INSTALLS:
        if given.only in (None, install.python):
            golden = use(install, sdist if install.is_sdist else wheel)
            jax = tomllib.loads(golden)["jax"]
            assert goldens.setdefault(jax, golden) == golden, f"Python {install.python} records another golden file"
    for jax, golden in goldens.items():
        different = sum(map(ne, golden.splitlines(), next(iter(goldens.values())).splitlines()))
        print(f"golden file by JAX {jax}: {different} lines are others than by the first")
    return 0


def build() -> tuple[Path, Path]:
    """The wheel and the sdist, in dist/."""
    for old in DIST.glob("*"):
        old.unlink()
    with TemporaryDirectory() as folder:
        python = environment(Path(folder), sys.executable)
        run(python, str(ROOT / "tests" / "pins.py"), "--tools", "build", "hatchling")
        run(python, "-m", "build", "--no-isolation", "--outdir", str(DIST), str(ROOT))
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, sdist


def look_at(wheel: Path) -> None:
    """Its size, and that it has all it needs and nothing of the tests."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0] for name in names} - {wheel.name.rsplit("-", 3)[0] + suffix for suffix in SUFFIXES}
    assert tops == {"explorer", "pytest_explorer"}, tops
    for needed in ("explorer/py.typed", "explorer/hardware/figures.toml"):
        assert needed in names, needed
    assert any(name.startswith("explorer/view/static/viewer") for name in names)
    assert not any("/js/" in name or name.endswith(".ts") for name in names)
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size:,} bytes, {len(names)} files")
    assert size <= LARGEST, f"more than {LARGEST:,} bytes"


SUFFIXES = (".dist-info", ".data")


def use(install: Install, built: Path) -> str:
    """Install it in a fresh environment, run the first use outside of this tree, and return its golden file."""
    interpreter = python_of(install.python)
    if interpreter is None:
        raise SystemExit(f"there is no Python {install.python} on the PATH, nor under pyenv")
    with TemporaryDirectory() as folder:
        python = environment(Path(folder, "environment"), interpreter)
        what = f"{NAME}[{install.extra}] @ {built.as_uri()}" if install.extra else str(built)
        wanted = [install.jax] if install.jax else []
        report = Path(folder, "report.json")
        pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--report", str(report))
        run(python, *pip, what, *wanted)
        if install == PLAIN:
            text = json.dumps(bill_of_materials(json.loads(report.read_text(encoding="utf-8"))), indent=1)
            (DIST / "sbom.cdx.json").write_text(f"{text}\n", encoding="utf-8")
        outside = Path(folder, "outside")
        outside.mkdir()
        (outside / "first_use.py").write_text(FIRST_USE, encoding="utf-8")
        print(f"{built.name} {install.extra and f'[{install.extra}]'}", flush=True)
        run(python, "first_use.py", cwd=outside)
        run(python, "-m", "explorer", "explore", "first_use.py:gelu", "--arg", "f32[8,8]", "-o", "a.html", cwd=outside)
        if install.extra == "lab":
            listed = run(python, "-m", "jupyter", "labextension", "list", cwd=outside, capture_output=True)
            assert "explorer-session" in listed.stdout + listed.stderr, listed.stderr
        if install.extra == "mcp":
            run(python, "-c", "import mcp.server; from explorer.assistants.tools import Tools", cwd=outside)
        return (outside / "gradient.golden").read_text(encoding="utf-8")


def bill_of_materials(report: dict[str, Any]) -> dict[str, Any]:
    """The packages of one of pip's reports, with the hash of each file, as CycloneDX 1.5."""
    components: dict[str, dict[str, Any]] = {}
    for package in report["install"]:
        name, version = package["metadata"]["name"], package["metadata"]["version"]
        reference = f"pkg:pypi/{canonical(name)}@{version}"
        hashes = package["download_info"].get("archive_info", {}).get("hashes", {})
        components[canonical(name)] = {
            "type": "library",
            "bom-ref": reference,
            "name": name,
            "version": version,
            "purl": reference,
            "hashes": [{"alg": "SHA-256", "content": hashes["sha256"]}] if "sha256" in hashes else [],
        }
    own = components.pop(NAME)
    parts = [components[name] for name in sorted(components)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": own},
        "components": parts,
        "dependencies": [{"ref": own["bom-ref"], "dependsOn": [part["bom-ref"] for part in parts]}],
    }


def environment(folder: Path, interpreter: str) -> str:
    """The interpreter of a fresh virtual environment."""
    subprocess.run([interpreter, "-m", "venv", folder], check=True)
    return str(folder / "bin" / "python")


def run(*command: str, cwd: Path | None = None, capture_output: bool = False) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    own |= {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, cwd=cwd, env=own, text=True, capture_output=capture_output, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with status {done.returncode}\n{done.stderr or ''}")
    return done


if __name__ == "__main__":
    sys.exit(main())
