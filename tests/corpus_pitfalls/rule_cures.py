"""The judge of every rule's cures: each is written in to the letter, as told and as rewritten, and run.

What a program computes is held against the same Python without jax.jit, or against NumPy. The judge knows nothing of
how a rule sees a pitfall or proves a cure. `python -m tests.corpus_pitfalls.rule_cures [rule …]` prints the figures.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np

import explorer as ex
from tests.corpus_pitfalls import (
    cures_arguments,
    cures_calls,
    cures_captured,
    cures_dropped,
    cures_keys,
    cures_loops,
    cures_masks,
    cures_numbers,
    cures_output,
    cures_outside,
    cures_state,
    cures_tracing,
)
from tests.corpus_pitfalls.cure_case import CureCase

_MODULES = (
    cures_arguments,
    cures_calls,
    cures_captured,
    cures_dropped,
    cures_keys,
    cures_loops,
    cures_masks,
    cures_numbers,
    cures_outside,
    cures_output,
    cures_state,
    cures_tracing,
)
CASES: tuple[CureCase, ...] = tuple(case for module in _MODULES for case in module.CASES)
_numbers = count()


@dataclass
class Judgement:
    """What became of one case.

    Args:
        case: The program.
        shows: What is wrong with the case itself: a pitfall that isn't found or shows nothing, another sentence.
        told, written: `right`, what is wrong, or empty where nothing is written.
    """

    case: CureCase
    shows: str = ""
    told: str = ""
    written: str = ""


def judgements(cases: Iterable[CureCase] = CASES) -> Iterator[Judgement]:
    """One for each case."""
    for case in cases:
        judgement = Judgement(case)
        with _modules() as load:
            try:
                _judge(case, judgement, load)
            except Exception as error:
                judgement.shows = judgement.shows or f"{type(error).__name__}: {error}"
        yield judgement


def _judge(case: CureCase, judgement: Judgement, load: Callable[[str], ModuleType]) -> None:
    found = _lint(load(case.before), case.call)
    own = found.of(case.rule)
    if not len(own):
        judgement.shows = f"not found: {[(one.rule, one.line) for one in found]} {found.failure} {found.faults}"
        return
    finding = own[0]
    told = _line(finding.fix.text)
    for piece in filter(None, (*case.told.splitlines(), case.words)):
        if re.sub("[⟨⟩]", "", _line(piece)) not in told:
            judgement.shows = f"another sentence: {told!r} for {piece!r}"
            return
    for piece in case.told.splitlines():
        if not re.search(_pattern(piece), _line(case.after)):
            judgement.shows = f"its cured text hasn't {piece!r}"
            return
    expected = _expected(case, load)
    plain = _attempt(load(case.before), jax.jit)
    cost = _cost(load(case.before))
    if _same(plain, expected) and cost is None:
        judgement.shows = "compiled, it does what it should"
    judgement.told = _wrong(case, load, case.after, case.cured or case.call, expected, cost) or "right"
    fix = own.fix(finding) if len(own) else None
    if fix is not None and fix.code:
        text = case.rewritten_by(patched(case.before, fix.diff))
        more = re.search(r"call \w+\(…, (\w+=)", _line(fix.text))
        if more and more[1] not in text.partition("# ---")[2]:
            judgement.written = f"called without {more[1]}"
            return
        judgement.written = _wrong(case, load, text, case.rewritten or case.call, expected, cost) or "right"


def _wrong(case: CureCase, load: Any, text: str, call: str, expected: Any, cost: float | None) -> str:
    """What is wrong with a cured text; empty if nothing is."""
    found = _lint(load(text), call)
    if found.failure or found.errors or len(found.of(case.rule)):
        return f"found again, or worse: {[(one.rule, one.line, one.message) for one in found]} {found.failure}"
    got = _attempt(load(text), jax.jit)
    if not _same(got, expected):
        return f"gives {got}, not {expected}"
    after = _cost(load(text))
    if cost is not None and (after is None or after >= cost):
        return f"costs {after}, and {cost} before"
    return ""


def _expected(case: CureCase, load: Any) -> Any:
    module = load(case.before)
    if hasattr(module, "expected"):
        printed = StringIO()
        with redirect_stdout(printed):
            result = module.expected()
        return result, printed.getvalue()
    with jax.disable_jit():
        return _attempt(module, lambda function, **_: function)


def _attempt(module: ModuleType, jit: Any) -> Any:
    """What a program gives and prints, or the error that it ends with."""
    printed = StringIO()
    with redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            result = jax.block_until_ready(module.run(jit))
        except Exception as error:
            result = error
        jax.effects_barrier()
        jax.config.update("jax_enable_x64", False)
    return result, printed.getvalue()


def _cost(module: ModuleType) -> float | None:
    try:
        return module.cost() if hasattr(module, "cost") else None
    finally:
        jax.config.update("jax_enable_x64", False)


def _same(one: Any, other: Any) -> bool:
    """Whether two results are equal, up to rounding, and the same was printed."""
    leaves, structure = jax.tree.flatten(one)
    others, other_structure = jax.tree.flatten(other)
    return structure == other_structure and all(map(_equal, leaves, others))


def _equal(one: Any, other: Any) -> bool:
    if any(isinstance(value, (str, Exception)) for value in (one, other)):
        return isinstance(one, str) and one == other
    one, other = np.asarray(one), np.asarray(other)
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True))


def _lint(module: ModuleType, call: str) -> Any:
    with redirect_stdout(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return eval(f"_lint({call})", {**vars(module), "_lint": ex.lint})
        finally:
            jax.config.update("jax_enable_x64", False)  # that a cure set for its program


def _line(text: str) -> str:
    return " ".join(text.split())


def _pattern(piece: str) -> str:
    """What a piece of told code may look like in a program: anything for the parts that a reader fills in."""
    parts = re.split("(⟨[^⟩]*⟩|, …|…, |…)", _line(piece))
    return "".join(".{1,90}?" if part[:1] == "⟨" else ".{0,90}?" if "…" in part else re.escape(part) for part in parts)


def patched(text: str, diff: str) -> str:
    """A text with a unified diff applied."""
    lines, result, at = text.splitlines(keepends=True), [], 0
    for line in diff.splitlines(keepends=True)[2:]:
        if line.startswith("@@"):
            start = int(re.match(r"@@ -(\d+)", line)[1]) - 1
            result += lines[at:start]
            at = start
        elif line[0] == "+":
            result.append(line[1:])
        else:
            assert lines[at] == line[1:], "the diff isn't of this text"
            result += [] if line[0] == "-" else [line[1:]]
            at += 1
    return "".join([*result, *lines[at:]])


@contextmanager
def _modules() -> Iterator[Callable[[str], ModuleType]]:
    """A function that makes a module of a text, each time another one."""
    names: list[str] = []
    with tempfile.TemporaryDirectory() as folder:

        def load(text: str) -> ModuleType:
            path = Path(folder, f"users_{next(_numbers)}.py")
            path.write_text(text)
            spec = importlib.util.spec_from_file_location(path.stem, path)
            module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
            names.append(path.stem)
            spec.loader.exec_module(module)
            return module

        try:
            yield load
        finally:
            for name in names:
                del sys.modules[name]


def table(results: list[Judgement]) -> str:
    """A row for each case that isn't right, one for each rule, and the sums."""
    rows: list[str] = []
    by_rule: dict[str, list[Judgement]] = defaultdict(list)
    for one in results:
        by_rule[one.case.rule].append(one)
        where = f"{one.case.rule} ({one.case.source or 'simple'}; {one.case.told or one.case.words})"
        wrong = (("the case", one.shows), ("told", one.told), ("written", one.written))
        rows += [f"  {where}: {how}: {what[:400]}" for how, what in wrong if what not in ("", "right")]
    rows.append(f"  {'rule':<20}{'cases':>6}{'told':>6}{'right':>6}{'written':>9}{'right':>6}")
    for rule, of_rule in (*sorted(by_rule.items()), ("all", results)):
        told, written = [[getattr(one, how) for one in of_rule if getattr(one, how)] for how in ("told", "written")]
        figures = len(told), told.count("right"), len(written), written.count("right")
        rows.append("  {:<20}{:>6}{:>6}{:>6}{:>9}{:>6}".format(rule, len(of_rule), *figures))
    return "\n".join(rows)


if __name__ == "__main__":
    chosen = [case for case in CASES if not sys.argv[1:] or case.rule in sys.argv[1:]]
    print(table(list(judgements(chosen))))
