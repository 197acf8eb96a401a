"""Whether a rewrite cures what it should: the rewritten code runs once in the place of the user's, and is traced.

Function objects are what decorators, closures and other modules hold, so they stay; for as long as the trace takes,
they have the rewritten code. Nothing of the user's module is run for it but what the trace runs.
"""

from __future__ import annotations

import ast
import gc
import linecache
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

import jax

from explorer.capture.sources import read_source
from explorer.model.findings.finding import Finding
from explorer.model.findings.findings import Findings
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.fixes.unit import RewriteUncertain, Unit
from explorer.pitfalls.rule import all_rules
from explorer.pitfalls.syntax_trees import parse

__all__ = ["Trial"]


# What the expressions for further arguments are made of; they are Explorer's own, none is the user's.
_MODULES = {name: import_module(name) for name in ("jax", "random", "time", "numpy")}


@dataclass(frozen=True)
class Trial:
    """What a rewrite has to pass.

    Args:
        evidence: What the finding was made from.
        again: Traces the function once more, with further arguments by name, and asks a rule.
        finding: What to cure.
    """

    evidence: Evidence
    again: Callable[[str, dict[str, Any]], tuple[Evidence, Findings]]
    finding: Finding

    def next(self, unit: Unit, text: str) -> Finding | None:
        """None if the function, with its file's text like this, is traced, gives the same types, and has one less.

        Else the finding of the same rule in another place that stops the trace now.

        Raises:
            RewriteUncertain: It is none of this.
        """
        origin, rewritten = self.finding.file, f"<rewritten {self.finding.file}>"
        codes = _paired(origin, unit, self.evidence, text, rewritten)
        with _text_of(rewritten, text), _in_place(codes), _imported(unit, self.evidence):
            further = {name: eval(text, dict(_MODULES)) for name, text in unit.new_parameters.items()}
            later, found = self.again(self.finding.rule, further)
        if later.error is not None or later.traced is None or found.faults:
            stopped = [one for one in found.errors if one.file == rewritten]
            if not stopped or self.evidence.error is None:
                raise RewriteUncertain("it can't be traced")
            return stopped[0]
        rule = next(rule for rule in all_rules() if rule.name == self.finding.rule)
        same_types = self.evidence.jaxpr is None or _types(self.evidence) == _types(later)
        if not same_types or len(found) >= sum(1 for _ in rule.check(self.evidence)):
            raise RewriteUncertain("it gives something else, or is found again")
        return None


def _types(evidence: Evidence) -> Any:
    outputs: list[Any] = jax.tree.leaves(evidence.traced.out_info)
    return jax.tree.structure(evidence.traced.out_info), [(one.shape, one.dtype) for one in outputs]


def _compiled(text: str, file: str) -> CodeType:
    tree = parse(text)
    if tree is None:
        raise RewriteUncertain("what was rewritten can't be parsed")
    return compile(tree, file, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def _paired(origin: str, unit: Unit, evidence: Evidence, text: str, file: str) -> dict[CodeType, CodeType]:
    """The functions of the rewritten piece that ran, each with its code as it is now: by name, in the text's order."""
    source = read_source(origin)
    before = _by_name(_compiled("" if source is None else source.text, origin))
    after = _by_name(_compiled(text, file))
    paired: dict[CodeType, CodeType] = {}
    for code in () if evidence.recording is None else evidence.recording.ran:
        if code.co_filename != origin:
            continue
        old, new = before.get(code.co_qualname, []), after.get(code.co_qualname, [])
        place = next((i for i, one in enumerate(old) if one.co_firstlineno == code.co_firstlineno), None)
        if place is not None and len(old) == len(new) and old[place] != new[place]:
            paired[code] = new[place]
    if not paired:
        raise RewriteUncertain("the function didn't run")
    return paired


def _by_name(module: CodeType) -> dict[str, list[CodeType]]:
    found: dict[str, list[CodeType]] = {}
    waiting = [module]
    while waiting:
        code = waiting.pop()
        inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        waiting += reversed(inner)
        for one in inner:
            found.setdefault(one.co_qualname, []).append(one)
    return {name: sorted(codes, key=lambda one: one.co_firstlineno) for name, codes in found.items()}


@contextmanager
def _in_place(codes: dict[CodeType, CodeType]) -> Generator[None]:
    """The functions that have the codes have others within."""
    changed: list[tuple[FunctionType, CodeType]] = []
    try:
        for old, new in codes.items():
            # Compares identities alone: no code of the user's runs.
            for function in gc.get_referrers(old):
                if type(function) is FunctionType and function.__code__ is old:
                    if function.__code__.co_freevars != new.co_freevars:
                        raise RewriteUncertain("it would need other variables of the functions around it")
                    changed.append((function, old))
                    function.__code__ = new
        yield
    finally:
        for function, old in changed:
            function.__code__ = old


@contextmanager
def _text_of(file: str, text: str) -> Generator[None]:
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    try:
        yield
    finally:
        linecache.cache.pop(file, None)


@contextmanager
def _imported(unit: Unit, evidence: Evidence) -> Generator[None]:
    """The names that the rewrite imports, in the user's module for as long as the trace takes; none is replaced."""
    needed: dict[str, Any] = {}
    for statement in unit.imports:
        exec(statement, needed)
    needed.pop("__builtins__", None)
    spaces = {id(function.ran.globals): function.ran.globals for function in evidence.functions}
    added: list[tuple[dict[str, Any], str]] = []
    try:
        for space in spaces.values():
            for name, value in needed.items():
                if name not in space:
                    space[name] = value
                    added.append((space, name))
        yield
    finally:
        for space, name in added:
            space.pop(name, None)
