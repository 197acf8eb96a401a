"""The judge of cures about gradients: what is told and what is written is run, and compared with NumPy's numbers.

What a program should compute comes from NumPy in float64, and its derivative from differences of that. The judge knows
nothing of how the rule sees a fault or proves a cure.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import jax
import numpy as np

from explorer.pitfalls.lint import lint
from tests.corpus_pitfalls import held_out_gradients
from tests.corpus_pitfalls.public_gradients import CASES, Case

_numbers = count()


@dataclass
class Judgement:
    """What became of one case.

    Args:
        name: Of its function.
        is_gotcha: Whether something should be found.
        shows: Whether its first point shows what it is to show: a NaN gradient of a finite value, or none.
        found: How grave what was found is; empty for nothing.
        told, written: `right`, what is wrong, or empty where only words are told.
    """

    name: str
    is_gotcha: bool
    shows: bool
    found: str
    told: str = ""
    written: str = ""


def judgements(differentiated: bool = True, cases: Sequence[Case] = CASES) -> Iterator[Judgement]:
    """One for each case, linted as `jax.grad(function)` or alone."""
    for case in cases:
        function: Any = case.function
        name = function.__name__
        is_gotcha = not name.startswith("fine_")
        args = (case.points[0].astype(np.float32), *case.others)
        arrays = [jax.numpy.asarray(value) for value in args]  # NumPy warns of what JAX computes in silence
        nan = bool(np.isnan(np.asarray(jax.grad(function)(*args))).any()) and bool(np.isfinite(function(*arrays)))
        findings = lint(jax.grad(function) if differentiated else function, *args, rules="nan-gradient")
        judgement = Judgement(name, is_gotcha, nan == is_gotcha, findings[0].severity if len(findings) else "")
        if len(findings):
            source = textwrap.dedent(inspect.getsource(function))
            edits = [line.split("  # in place of ") for line in findings[0].fix.text.splitlines()]
            if all(len(edit) == 2 for edit in edits):
                judgement.told = judge(case, replace_expressions(source, edits))
            code = findings.fix(0).code
            judgement.written = judge(case, code) if code else ""
        yield judgement


def replace_expressions(source: str, edits: list[list[str]]) -> str:
    """A function's text with expressions replaced by others, wherever they stand."""
    wanted = {ast.dump(ast.parse(before, mode="eval").body): after for after, before in edits}
    tree = ast.parse(source)

    class Replacing(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            after = wanted.get(ast.dump(node)) if isinstance(node, ast.expr) else None
            return ast.parse(after, mode="eval").body if after else super().visit(node)

    return ast.unparse(Replacing().visit(tree))


def judge(case: Case, text: str) -> str:
    """`right`, or what is wrong with a function's text."""
    function: Any = case.function
    try:
        cured = _run(text, function)
        for point in case.points:
            wrong = _wrong_at(case, cured, point)
            if wrong:
                return f"{wrong} at {point.tolist()}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "right"


def _wrong_at(case: Case, cured: Any, point: np.ndarray) -> str:
    oracle: Any = case.oracle
    x = point.astype(np.float32)
    expected = float(oracle(point))
    value, gradient = jax.value_and_grad(cured)(x, *case.others)
    if not np.allclose(value, expected, rtol=1e-4, atol=1e-5):
        return f"value {value}, not {expected}"
    if not np.isfinite(np.asarray(gradient)).all():
        return f"gradient {gradient}"
    slopes = _slopes(oracle, point)
    smooth = np.isfinite(slopes)
    if not np.allclose(np.asarray(gradient)[smooth], slopes[smooth], rtol=2e-2, atol=1e-2):
        return f"gradient {gradient}, not {slopes}"
    return ""


def _slopes(oracle: Any, point: np.ndarray) -> np.ndarray:
    """The derivative by differences in float64; NaN where those of two steps, or of both sides, aren't the same."""
    slopes = np.full(point.shape, np.nan)
    for index in np.ndindex(point.shape):
        sides: list[float] = []
        for step in (1e-4, -1e-4, 1e-5, -1e-5):
            moved = point.astype(float)
            moved[index] += step
            sides.append((float(oracle(moved)) - float(oracle(point))) / step)
        if np.ptp(sides) < 1e-2 * (1 + abs(sides[0])):
            slopes[index] = np.mean(sides)
    return slopes


def _run(text: str, function: Any) -> Any:
    file = f"<judged {next(_numbers)} {function.__name__}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    names = dict(function.__globals__) | {"case": lambda *_, **__: lambda f: f}
    exec(compile(text, file, "exec"), names)
    return names[function.__name__]


def table(results: list[Judgement]) -> str:
    """A row for each case that isn't right, and the figures."""
    rows: list[str] = []
    gotchas = [one for one in results if one.is_gotcha]
    for one in results:
        if not one.shows:
            rows.append(f"  {one.name}: its point shows nothing")
        if one.is_gotcha != bool(one.found):
            rows.append(f"  {one.name}: {'missed' if one.is_gotcha else f'an alarm ({one.found})'}")
        rows += [
            f"  {one.name}: {how} {what}"
            for how, what in (("told", one.told), ("written", one.written))
            if what not in ("", "right")
        ]
        if one.found and not one.told and not one.written:
            rows.append(f"  {one.name}: told in words alone")
    told, written = [one for one in results if one.told], [one for one in results if one.written]
    rows.append(
        f"{len(gotchas)} gotchas, {sum(bool(one.found) for one in gotchas)} found; "
        f"{len(results) - len(gotchas)} fine, {sum(bool(one.found) for one in results if not one.is_gotcha)} alarms; "
        f"told {len(told)}, right {sum(one.told == 'right' for one in told)}; "
        f"written {len(written)}, right {sum(one.written == 'right' for one in written)}"
    )
    return "\n".join(rows)


if __name__ == "__main__":
    for differentiated in (True, False):
        print("differentiated" if differentiated else "alone")
        print(table(list(judgements(differentiated))))
        print("put down before lint saw them")
        print(table(list(judgements(differentiated, held_out_gradients.CASES))))
