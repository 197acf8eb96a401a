"""Whether a rewrite cures what it should: the rewritten code runs once in the place of the user's, and is traced.

Function objects are what decorators, closures and other modules hold, so they stay; for as long as the trace takes,
they have the rewritten code. Nothing of the user's module is run for it but what the trace runs.
"""

from __future__ import annotations

import ast
import gc
import linecache
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

import jax

from explorer.capture.sources import read_source
from explorer.model.findings.finding import Finding
from explorer.model.findings.findings import Findings
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.fixes.unit import RewriteUncertain, Unit
from explorer.pitfalls.lint import LintRecord
from explorer.pitfalls.rule import all_rules
from explorer.pitfalls.syntax_trees import parse

# What the expressions for further arguments are made of; they are Explorer's own, none is the user's.
_MODULES = {name: import_module(name) for name in ("jax", "random", "time", "numpy")}


def prove(record: LintRecord, finding: Finding, unit: Unit, text: str) -> Finding | None:
    """Trace the function with its file's text rewritten.

    Args:
        record: Of the trace with the text as it is.
        finding: What the rewrite cures.
        unit: The function that was rewritten.
        text: All of its file, rewritten.

    Returns:
        None if the function is traced, gives the same types, and has one finding of the rule less: it is proven. Else
        the finding of the same rule in another place that stops the trace now.

    Raises:
        RewriteUncertain: It is none of this.
    """
    evidence, rewritten = record.evidence, f"<rewritten {finding.file}>"
    codes = _paired_codes(finding.file, unit, evidence, text, rewritten)
    with _registered_text(rewritten, text), _replaced_codes(codes), _imported(unit, evidence):
        further = {name: eval(value, dict(_MODULES)) for name, value in unit.new_parameters.items()}
        later, findings = record.retrace(finding.rule, further)
    if later.traced is None or findings.faults:
        return _stopped(findings, rewritten, evidence)
    if evidence.jaxpr is not None and _types(evidence) != _types(later):
        raise RewriteUncertain("it gives something else")
    # One finding less is enough: the others of the rule have rewrites of their own.
    rule = next(rule for rule in all_rules() if rule.name == finding.rule)
    if len(findings) >= sum(1 for _ in rule.check(evidence)):
        raise RewriteUncertain("it is found again")
    return None


def _stopped(findings: Findings, rewritten: str, evidence: Evidence) -> Finding:
    """The finding that stops the trace of rewritten text; that another place did before is no reason to give up."""
    stopped = next((error for error in findings.errors if error.file == rewritten), None)
    if stopped is None or evidence.error is None:
        raise RewriteUncertain("it can't be traced")
    return stopped


def _types(evidence: Evidence) -> Any:
    outputs: list[Any] = jax.tree.leaves(evidence.traced.out_info)
    return jax.tree.structure(evidence.traced.out_info), [(output.shape, output.dtype) for output in outputs]


def _compiled(text: str, file: str) -> CodeType:
    tree = parse(text)
    if tree is None:
        raise RewriteUncertain("what was rewritten can't be parsed")
    return compile(tree, file, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def _paired_codes(origin: str, unit: Unit, evidence: Evidence, text: str, file: str) -> dict[CodeType, CodeType]:
    """The functions of the rewritten piece that ran, each with its code as it is now: by name, in the text's order."""
    source = read_source(origin)
    before = _by_name(_compiled("" if source is None else source.text, origin))
    after = _by_name(_compiled(text, file))
    same_count = (name for name, codes in before.items() if len(codes) == len(after.get(name, ())))
    pairs = [pair for name in same_count for pair in zip(before[name], after[name], strict=True) if pair[0] != pair[1]]
    changed = {(was.co_qualname, was.co_firstlineno): now for was, now in reversed(pairs)}
    ran = () if evidence.recording is None else evidence.recording.executed
    paired = {code: changed.get((code.co_qualname, code.co_firstlineno)) for code in ran if code.co_filename == origin}
    if not any(paired.values()):
        raise RewriteUncertain("the function didn't run")
    return {code: now for code, now in paired.items() if now is not None}


def _by_name(module: CodeType) -> dict[str, list[CodeType]]:
    codes: dict[str, list[CodeType]] = {}
    waiting = [module]
    while waiting:
        code = waiting.pop()
        inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        waiting += reversed(inner)
        for function in inner:
            codes.setdefault(function.co_qualname, []).append(function)
    return {name: sorted(same, key=lambda code: code.co_firstlineno) for name, same in codes.items()}


@contextmanager
def _replaced_codes(codes: dict[CodeType, CodeType]) -> Generator[None]:
    """Within the block the functions that have the codes `codes` maps from have those that it maps to."""
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
def _registered_text(file: str, text: str) -> Generator[None]:
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
    spaces = {id(function.executed.globals): function.executed.globals for function in evidence.functions}
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
