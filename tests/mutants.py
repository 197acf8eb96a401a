"""How much of a wrong line the tests notice: random one-line mutants, each run against the fast tests that cover it.

    python -m tests.mutants [--count 60] [--seed 0] [--jobs 2]

First the unit tests run once with coverage by test; then each mutant is made in a copy of the tree (one operator,
constant or condition is another), and the tests that run its line go until one fails. Coverage names only the test that
ran a line first, where a fixture or a cached property keeps what the line gave and others look at it: so, when none of
these fails, their whole files go, and those that mirror the mutant's file. A mutant that all of them pass has survived.
Each is printed as it ends, with the test that failed, so that a test which fails for its own reasons is seen to; one
whose tests don't end in time or can't be run proves nothing, and is counted apart.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import os
import py_compile
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = "explorer"
MOST_TESTS = 150  # of a line's own room, and as many of others'
# They look at most of what a line gives, and take a second: first.
KEPT = tuple(
    f"tests/unit/{name}.py"
    for name in (
        "analysis/test_answers",
        "analysis/recompiles/test_kept_reasons",
        "view/test_saved_looks",
        "pitfalls/test_kept_findings",
    )
)
MOST_FILES = 20
SECONDS = 900
QUICKLY = {"XLA_FLAGS": "--xla_backend_optimization_level=0"}  # as the Makefile's unit

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One changed piece of one line."""

    file: str
    line: int
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before}  →  {self.after}"


def replacement(node: ast.AST) -> ast.AST | None:
    """The node with one thing wrong in it, or None for what isn't changed."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        return ast.Compare(node.left, [COMPARISONS[type(node.ops[0])]()], node.comparators)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
    if isinstance(node, ast.BoolOp):
        return ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        return node.operand
    if isinstance(node, ast.IfExp):
        return ast.IfExp(node.test, node.orelse, node.body)
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return ast.Constant(node.value + 1)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return ast.Constant(not node.value)
    return None


def annotations(tree: ast.Module) -> Iterator[ast.AST]:
    """The types of parameters, results and variables, which nothing evaluates."""
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            if getattr(node, name, None) is not None:
                yield getattr(node, name)


def mutants_of(file: Path) -> Iterator[Mutant]:
    """Every one-line change that can be made to a file's functions."""
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    tree = ast.parse(text)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    types = {id(inner) for annotation in annotations(tree) for inner in ast.walk(annotation)}
    seen: set[tuple[int, int, int]] = set()
    for function in functions:
        for node in (inner for statement in function.body for inner in ast.walk(statement)):
            new = replacement(node) if id(node) not in types else None
            if new is None or node.lineno != node.end_lineno:
                continue
            place = (node.lineno, node.col_offset, node.end_col_offset)
            before = lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()
            after = f"({ast.unparse(ast.fix_missing_locations(new))})"
            if place not in seen and "f'" not in before and 'f"' not in before:
                seen.add(place)
                yield Mutant(str(file.relative_to(ROOT)), *place, before, after)


def coverage(folder: Path, known: Path | None = None) -> dict[str, dict[int, set[str]]]:
    """By file and line, the fast tests that run it."""
    data = known or folder / "coverage"
    settings = folder / "coveragerc"
    settings.write_text(f"[run]\nsource = {ROOT / PACKAGE}\ndata_file = {data}\n")
    options = ["--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report=", "-n", "auto", "-q"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "not slow", "tests/unit", *options]
    if not data.exists():
        subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.DEVNULL, env={**os.environ, **QUICKLY})
    from coverage import CoverageData

    measured = CoverageData(str(data))
    measured.read()
    return {
        str(Path(file).relative_to(ROOT)): {
            line: {context.rpartition("|")[0] for context in contexts if context}
            for line, contexts in measured.contexts_by_lineno(file).items()
        }
        for file in measured.measured_files()
    }


def tests_for(mutant: Mutant, covered: dict[str, dict[int, set[str]]]) -> list[str]:
    """The tests that run a mutant's line: those that keep much to the letter, then its own room's, then others.

    Of a room first those that run the fewest lines of the file; they alone won't do, as they look least at what it
    gives.
    """
    of_file = covered.get(mutant.file, {})
    tests = of_file.get(mutant.line, set())
    breadth = {test: sum(test in others for others in of_file.values()) for test in tests}
    room = "tests/unit/" + "/".join(Path(mutant.file).parts[1:-1])
    kept = sorted(test for test in tests if test.startswith(KEPT))
    own = sorted((test for test in tests - set(kept) if test.startswith(room)), key=lambda t: (breadth[t], t))
    particular = sorted(tests - set(kept) - set(own), key=lambda test: (breadth[test], test))
    return kept + own[:MOST_TESTS] + particular[:MOST_TESTS]


def files_of(mutant: Mutant, tests: list[str]) -> list[str]:
    """The whole files of these tests, and those of the mutant's own room; the room's first."""
    room = Path("tests/unit", *Path(mutant.file).parts[1:-1])
    own = [str(file.relative_to(ROOT)) for file in sorted((ROOT / room).glob("test_*.py"))]
    return [*own, *dict.fromkeys(file for test in tests if (file := test.partition("::")[0]) not in own)][:MOST_FILES]


def outcome(mutant: Mutant, runs: Iterable[list[str]], tree: Path) -> tuple[str, ...]:
    """What these runs of tests do in a copy of the tree with the mutant in it, and which test failed first."""
    file = tree / mutant.file
    original = file.read_bytes()
    lines = original.split(b"\n")
    line = lines[mutant.line - 1]
    lines[mutant.line - 1] = line[: mutant.start] + mutant.after.encode() + line[mutant.end :]
    try:
        file.write_bytes(b"\n".join(lines))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
        environment = {**os.environ, **QUICKLY, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
        for tests in runs:
            chosen = [*command, "-m", "not slow", *tests]
            done = subprocess.run(
                chosen, cwd=tree, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
            )
            failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
            if done.returncode == pytest.ExitCode.USAGE_ERROR:  # a test of this name isn't there
                return "not run", *failed[:1]
            if done.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                return "killed", *failed[:1]
        return ("survived",)
    except subprocess.TimeoutExpired:
        return ("too slow",)
    finally:
        file.write_bytes(original)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--coverage", type=Path, help="a file that keeps the coverage from one run to the next")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        covered = coverage(Path(scratch), arguments.coverage)
        sites = [
            mutant
            for file in sorted((ROOT / PACKAGE).rglob("*.py"))
            for mutant in mutants_of(file)
            if covered.get(str(file.relative_to(ROOT)), {}).get(mutant.line)
        ]
        chosen = random.Random(arguments.seed).sample(sites, min(arguments.count, len(sites)))
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(arguments.jobs):
            tree = Path(scratch) / f"tree{number}"
            left_out = shutil.ignore_patterns(".git", ".venv*", "node_modules", "__pycache__")
            shutil.copytree(ROOT, tree, ignore=left_out)
            # Compiled once, and held against the source, so that only the mutant's file is compiled anew.
            checked = py_compile.PycInvalidationMode.CHECKED_HASH
            compileall.compile_dir(str(tree / PACKAGE), quiet=2, invalidation_mode=checked)
            trees.put(tree)

        def run(mutant: Mutant) -> str:
            tree = trees.get()
            try:
                tests = tests_for(mutant, covered)
                word, *failed = outcome(mutant, (tests, files_of(mutant, tests)), tree)
            finally:
                trees.put(tree)
            print(word, mutant, *(f"\n    {line:.200}" for line in failed), flush=True)
            return word

        with ThreadPoolExecutor(arguments.jobs) as pool:
            words = Counter(pool.map(run, chosen))
    judged = words["killed"] + words["survived"]
    print(f"{len(sites):,} places; {words['killed']} of {judged} mutants killed, {dict(words)}")


if __name__ == "__main__":
    main()
