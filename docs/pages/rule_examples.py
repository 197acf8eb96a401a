"""For each rule a program with the pitfall and one without, and what lint says of both.

They are the simplest of the programs by which the corpus judges each rule's cures, and written here where that has
none. `python -m docs.pages.rule_examples` runs all, in a process of its own: only a new one has eight devices.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import jax

from docs.pages.rule_programs import PROGRAMS
from explorer.pitfalls.rule import all_rules
from tests.corpus_pitfalls.cure_case import HEAD, CureCase
from tests.corpus_pitfalls.rule_cures import CASES

_HEAD = ("import explorer as ex", *HEAD.splitlines())


@dataclass(frozen=True)
class Example:
    """The two programs; each ends with the call of lint."""

    rule: str
    bad: str
    good: str


@dataclass(frozen=True)
class Outcome:
    """What lint says of an example.

    Args:
        rules: Those that find something in the bad program, and in the good one.
        text: The rule's finding in the bad one.
        faults: What went wrong with running them.
    """

    rules: tuple[tuple[str, ...], tuple[str, ...]]
    text: str
    faults: tuple[str, ...]


def examples() -> tuple[Example, ...]:
    """One for each rule, in the order of their numbers."""
    own = {rule: Example(rule, *map(_with_head, programs)) for rule, programs in PROGRAMS.items()}
    cases = {case.rule: _of_case(case) for case in sorted(CASES, key=_difficulty, reverse=True)}
    by_rule = cases | own
    return tuple(by_rule[rule.name] for rule in all_rules() if rule.name in by_rule)


def _difficulty(case: CureCase) -> tuple[bool, int]:
    """The last to be taken: those that somebody met in the wild, and long ones."""
    return bool(case.source), len(case.text)


def _of_case(case: CureCase) -> Example:
    bad, good = (text.removeprefix(HEAD).partition("# ---")[0].strip("\n") for text in (case.before, case.after))
    return Example(
        case.rule,
        _with_head(f"{bad}\n\nex.lint({case.call})"),
        _with_head(f"{good}\n\nex.lint({case.cured or case.call})"),
    )


def _with_head(program: str) -> str:
    """A program below the lines of the common head that it needs."""
    words = {node.id for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Name)}
    needed = [line for line in _HEAD if line and words & _names(line)]
    for line in _HEAD:  # X and KEY need what they are made of
        if line in needed and "=" in line:
            needed = [other for other in _HEAD if other in needed or _names(other) & set(_words(line))]
    imports = sorted((line for line in needed if "import" in line), key=lambda line: line.startswith("from"))
    values = [line for line in needed if "import" not in line]
    head = [*imports, "", *values] if values else imports
    lines = program.strip("\n").split("\n")
    return "\n".join([*head, *([] if lines[0].startswith("from") else [""]), *lines]) + "\n"


def _names(line: str) -> set[str]:
    """What a line of the head defines."""
    if " = " in line:
        return {line.partition(" = ")[0]}
    names = line.partition("import ")[2]
    return {names.partition(" as ")[2] or names.partition(".")[0]}


def _words(line: str) -> list[str]:
    return [node.id for node in ast.walk(ast.parse(line)) if isinstance(node, ast.Name)]


@functools.cache
def outcomes() -> dict[str, Outcome]:
    """By rule, what lint says of its example; all are run at the first call."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    root = Path(__file__).parents[2]
    ended = subprocess.run(
        [sys.executable, "-m", "docs.pages.rule_examples"], env=environment, cwd=root, capture_output=True, text=True
    )
    if ended.returncode:
        raise RuntimeError(ended.stderr)
    return {
        rule: Outcome((tuple(bad), tuple(good)), text, tuple(faults))
        for rule, (bad, good, text, faults) in json.loads(ended.stdout).items()
    }


def _main() -> None:
    reports: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        for example in examples():
            bad = _run(example.bad, Path(folder, example.rule, "bad.py"))
            good = _run(example.good, Path(folder, example.rule, "good.py"))
            own = bad.of(example.rule)
            faults = [str(fault) for findings in (bad, good) for fault in (findings.failure, *findings.faults) if fault]
            text = own[0].to_text() if len(own) else ""
            reports[example.rule] = [[found.rule for found in bad], [found.rule for found in good], text, faults]
    print(json.dumps(reports))


def _run(program: str, file: Path) -> Any:
    """Run a program from a file of its own; returns what its last line gives."""
    file.parent.mkdir(exist_ok=True)
    lines = program.rstrip("\n").split("\n")
    file.write_text("\n".join([*lines[:-1], f"RESULT = {lines[-1]}", ""]))
    spec = importlib.util.spec_from_file_location(f"{file.parent.name}_{file.stem}", file)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            spec.loader.exec_module(module)
            return module.RESULT
        finally:
            jax.config.update("jax_enable_x64", False)


if __name__ == "__main__":
    _main()
