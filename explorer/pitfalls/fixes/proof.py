"""Whether a rewrite cures what it should: a copy of the user's functions with the rewritten code is traced.

The user's own functions and modules stay as they are, for other threads may use them meanwhile (`copies`). Nothing of
the user's module is run for it but what the trace runs.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from types import CodeType
from typing import Any

import jax

from explorer.capture.sources import parse, read_source
from explorer.model.findings import Finding, Findings
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.fixes.copies import FunctionCopies
from explorer.pitfalls.fixes.unit import RewriteUncertain, Unit
from explorer.pitfalls.lint import LintRecord
from explorer.pitfalls.rule import all_rules

# What the expressions for further arguments are made of; they are Explorer's own, none is the user's.
_MODULES = {name: import_module(name) for name in ("jax", "random", "time", "numpy")}


def prove(
    record: LintRecord,
    finding: Finding,
    unit: Unit,
    text: str,
    verify: Callable[[Evidence, Evidence, Finding, str], None] | None = None,
) -> Finding | None:
    """Trace the function with its file's text rewritten.

    Args:
        record: Of the trace with the text as it is.
        finding: What the rewrite cures.
        unit: The function that was rewritten.
        text: All of its file, rewritten.
        verify: What the rewrite asks of both traces besides: see `Rewrite`.

    Returns:
        None if the function is traced, gives the same types, and has one finding of the rule less: it is proven. Else
        the finding of the same rule in another place that stops the trace now.

    Raises:
        RewriteUncertain: It is none of this.
    """
    evidence, rewritten = record.evidence, f"<rewritten {finding.file}>"
    codes = _paired_codes(finding.file, unit, evidence, text, rewritten)
    copies = FunctionCopies(codes, _imported(unit))
    function, args, kwargs = copies.copy(record.function, tuple(record.args), record.kwargs)
    further = {name: eval(value, dict(_MODULES)) for name, value in unit.new_parameters.items()}
    with _registered_text(rewritten, text):
        later, findings = replace(record, function=function, args=args, kwargs=kwargs | further).retrace(finding.rule)
        if verify is not None:
            verify(evidence, later, finding, rewritten)
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
def _registered_text(file: str, text: str) -> Generator[None]:
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    try:
        yield
    finally:
        linecache.cache.pop(file, None)


def _imported(unit: Unit) -> dict[str, Any]:
    """The names that the rewrite imports."""
    names: dict[str, Any] = {}
    for statement in unit.imports:
        exec(statement, names)
    names.pop("__builtins__", None)
    return names
