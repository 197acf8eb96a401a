"""Functions of public libraries, by name and the arguments to call them with: what lint says of code that works.

`python -m tests.corpus_pitfalls.libraries [library …]` lints those of the libraries that are installed. Of one that is
installed to be edited (`pip install -e`), or lies in a folder of one's own (`PYTHONPATH=copies`), the code is the
user's, as it is for its authors; the first lines of what is printed say which are.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from explorer.model.findings import Findings
from explorer.model.stage import is_library_file
from explorer.pitfalls.lint import lint

# What the expressions below name besides their libraries.
_NAMES: dict[str, Any] = {
    "jax": jax,
    "jnp": jnp,
    "np": np,
    "A": jnp.linspace(0.1, 0.9, 12).reshape(3, 4),
    "B": jnp.linspace(0.2, 0.7, 12).reshape(3, 4),
    "V": jnp.linspace(0.1, 0.9, 4),
    "W": jnp.linspace(0.2, 0.7, 4),
    "L": jnp.array([0, 1, 2]),
    "P": {"w": jnp.ones((4, 3)), "b": jnp.zeros(3)},
    "K": jax.random.key(0),
    "R": jax.random.PRNGKey(0),
    "IMAGE": jnp.ones((1, 8, 8, 3)),
    "PIXELS": jnp.ones((3, 8, 8)),
    "SEQUENCE": jnp.ones((2, 5, 8)),
}
# Library | function, with {} for each name | its arguments | the names.
_CALLS = Path(__file__).parent / "library_calls.txt"


def library_calls(folder: Path, *libraries: str) -> Iterator[tuple[str, Any, Any]]:
    """Each function with its arguments; only those of some libraries, if any are named, and of what is installed.

    Args:
        folder: Where the calls are written to, a file for each: whoever calls a library does so from a file of theirs.
    """
    for line in _CALLS.read_text().splitlines()[1:]:
        library, function, arguments, names = (part.strip() for part in f"{line} | ".split(" | ")[:4])
        if libraries and library not in libraries:
            continue
        for name in names.split() or [""]:
            text = function.format(*[name] * 9)
            try:
                scope = _NAMES | {library: importlib.import_module(library)}
                file = folder / f"{library}_{len(list(folder.iterdir()))}.py"
                file.write_text(text + "\n")
                code = compile(text, str(file), "eval")
                yield text, eval(code, scope), eval(arguments.format(*[name] * 9), scope)
            except Exception as error:  # the library is not installed, or this version of it has another signature
                print(f"not linted: {text[:100]}: {type(error).__name__}: {str(error)[:80]}", file=sys.stderr)


def findings_of(function: Any, arguments: Any) -> Findings:
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        return lint(function, *arguments)


_MODULES = ("haiku.nets", "flax.nnx", "flax.linen", "numpyro.distributions.transforms", "numpyro.infer.util")


def main(*libraries: str) -> None:
    for name in _MODULES:
        with suppress(ImportError):
            importlib.import_module(name)
    for name in libraries or dict.fromkeys(line.split()[0] for line in _CALLS.read_text().splitlines()[1:]):
        with suppress(ImportError):
            file = importlib.import_module(name).__file__ or ""
            print(f"{name}: {'a library' if is_library_file(file) else 'the code of the user'}")
    with tempfile.TemporaryDirectory() as folder:
        _lint_all(library_calls(Path(folder), *libraries))


def _lint_all(calls: Iterator[tuple[str, Any, Any]]) -> None:
    linted = 0
    places: dict[tuple[str, str, int], str] = {}
    alarmed: set[str] = set()
    for text, function, arguments in calls:
        findings = findings_of(function, arguments)
        linted += 1
        for finding in findings:
            if finding.severity != "note":
                alarmed.add(text)
            place = "/".join(finding.file.split("/")[-3:])
            shown = f"{finding.severity} {finding.rule} {place}:{finding.line}  {finding.text}\n    {finding.message}"
            places.setdefault((finding.rule, finding.file, finding.line), f"{shown}\n    in {text}")
        for problem in (*findings.faults, findings.failure):
            if problem:
                print(f"not linted whole: {text}: {problem.splitlines()[0][:100]}")
    for _, shown in sorted(places.items()):
        print(shown)
    notes = sum(shown.startswith("note") for shown in places.values())
    print(f"{linted} functions: {len(alarmed)} with a warning or error, at {len(places) - notes} places; {notes} notes")


if __name__ == "__main__":
    main(*sys.argv[1:])
