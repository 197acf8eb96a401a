"""Prove and return the rewrite for a finding: `Findings.fix`.

A rewrite edits the text, and keeps comments and blanks. To prove it, copies of the user's functions with the rewritten
code are traced, and the rule must not find the pitfall again. The user's functions and modules stay as they are
(`copies`), and only what the trace runs is run.
"""

from __future__ import annotations

import ast
import difflib
import linecache
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from types import CodeType
from typing import Any

import jax

from explorer.capture.sources import parse, read_source
from explorer.errors import NotRecordedError
from explorer.model.findings import Finding, Findings, Fix
from explorer.model.stage import Source
from explorer.pitfalls import fix_loops, fix_prints, fix_values
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.fix_copies import FunctionCopies
from explorer.pitfalls.fix_unit import RewriteUncertain, Unit, unit_at
from explorer.pitfalls.function_source import Edit
from explorer.pitfalls.lint import LintRecord
from explorer.pitfalls.rule import rule_named

_MAX_PLACES = 12  # places of one function that have to be rewritten together for it to be traced
# Modules in the expressions for new arguments. Explorer writes these expressions, not the user.
_MODULES = {name: import_module(name) for name in ("jax", "random", "time", "numpy")}


@dataclass(frozen=True)
class Rewrite:
    """One way to fix the findings of a rule."""

    rule: str  # the rule's name
    text: str  # what it does, in a sentence
    # gives the edits for one finding; raises `RewriteUncertain` where it can't be sure
    make: Callable[[Unit, Finding], Sequence[Edit]]
    # compares the traces of the text as it was and as it is, the latter by the name of its file, beyond what each
    # rewrite has to hold; raises `RewriteUncertain` if they don't do the same
    verify: Callable[[Evidence, Evidence, Finding, str], None] | None = None


_ARGUMENT = "the value made for each call becomes an argument"
_FILLED_IN = "jax.debug.print fills in the values while the program runs"
_STAYS = "the value stays traced"
_ARRAY = "a new array with the change; inside jax.jit it is made in place"
_FORI = "jax.lax.fori_loop traces its body once"
_SAFE = "where the result isn't used, the operand is replaced by one with a finite derivative"
# Those for one rule in the order in which they are tried.
REWRITES = (
    *(Rewrite(rule, _ARGUMENT, fix_loops.new_argument) for rule in ("impure-time", "impure-random", "key-reuse")),
    Rewrite("key-reuse", "each draw has a key of its own", fix_loops.split_key),
    Rewrite("truncation", "the dtype that JAX uses anyway", fix_values.narrow_dtype),
    Rewrite("unhashable-static", "a tuple has a hash", fix_values.tuple_of_list),
    Rewrite("impure-print", "jax.debug.breakpoint() stops while the program runs", fix_values.debug_breakpoint),
    Rewrite("rejit-in-loop", "jax.jit once, above the loop", fix_loops.hoisted_jit),
    Rewrite("unrolled-loop", _FORI, fix_loops.fori_loop),
    Rewrite("unrolled-loop", _FORI, fix_loops.fori_loop_of_body),
    Rewrite(
        "boolean-mask",
        "the reduction skips the masked elements, and the shape stays fixed",
        fix_values.masked_reduction,
    ),
    Rewrite("impure-print", "jax.debug.print prints while the program runs", fix_prints.rewrite_print),
    Rewrite("impure-print", "jax.debug.callback logs while the program runs", fix_prints.rewrite_log),
    Rewrite("concretization", _FILLED_IN, fix_prints.rewrite_print),
    Rewrite("formatted-tracer", _FILLED_IN, fix_prints.rewrite_print),
    Rewrite("formatted-tracer", _FILLED_IN, fix_prints.rewrite_format),
    Rewrite("nan-gradient", _SAFE, fix_values.guard, fix_values.verify_guard),
    Rewrite("argument-mutation", _ARRAY, fix_values.item_set),
    Rewrite("concretization", _ARRAY, fix_values.item_set),
    Rewrite("concretization", "jax.numpy has the same function, and traces it", fix_values.numpy_function),
    Rewrite("concretization", _STAYS, fix_values.number),
    Rewrite("host-transfer", _STAYS, fix_values.number),
    Rewrite("concretization", "jnp.where chooses while the program runs, and computes both", fix_values.choice),
)
_RULES = {rewrite.rule for rewrite in REWRITES}


def can_fix(findings: Findings, finding: Finding) -> bool:
    """Return True if a finding has a rewrite, or one may be proven on request."""
    return bool(finding.fix.code) or (findings.record is not None and finding.rule in _RULES)


def fix(findings: Findings, finding: Finding | int) -> Fix:
    """Return the finding's fix: with the rewritten function if one of the rule's rewrites is proven, else as it is.

    Raises:
        NotRecordedError: The findings were loaded from a file, and have no function.
    """
    finding = findings[finding] if isinstance(finding, int) else finding
    record: LintRecord | None = findings.record
    if record is None:
        raise NotRecordedError(
            f"these findings about {findings.function} were loaded, and have no function to rewrite.\n"
            "  Hint: findings of explorer.lint(f, x) can be fixed."
        )
    source = read_source(finding.file) if finding.file and finding.line and not finding.fix.code else None
    if source is None:
        return finding.fix
    whole = _whole_file(record.evidence, source)
    proven = (_proven(rewrite, whole, record, finding) for rewrite in REWRITES if rewrite.rule == finding.rule)
    return next(filter(None, proven), finding.fix)


def _whole_file(evidence: Evidence, source: Source) -> Unit:
    """Return the unit of a whole file, with its module's names and the first line of the linted function."""
    executed = (function.executed for function in evidence.functions if function.file == source.file)
    names = next((function.globals for function in executed), dict[str, Any]())
    code = getattr(evidence.function, "__code__", None)
    main = code.co_firstlineno if code is not None and code.co_filename == source.file else 0
    return Unit(source.file, source.text, 1, 1, names, main, evidence=evidence)


def _proven(rewrite: Rewrite, original: Unit, record: LintRecord, finding: Finding) -> Fix | None:
    """Return the finding's fix with the rewrite if that is proven, else None.

    If the trace then stops at another place with the same mistake, that is rewritten too.
    """
    unit, place = original, finding
    for _ in range(_MAX_PLACES):
        rewritten = _apply(rewrite, unit, place)
        if rewritten is None:
            return None
        text, code, unit = rewritten
        try:
            stopped = _prove(record, finding, unit, text, rewrite)
        except Exception:  # the copy can't be made, or raises
            return None
        if stopped is None:
            needed = f" (it needs: {'; '.join(dict.fromkeys(unit.imports))})" if unit.imports else ""
            call = ", ".join(f"{name}={value}" for name, value in unit.new_parameters.items())
            called = f": call {record.evidence.name}(…, {call})" if call else ""
            called += ", with another key for each call" if "=jax.random." in call else ""
            return replace(finding.fix, text=rewrite.text + called + needed, code=code, diff=_diff(original, text))
        unit, place = replace(unit, file=stopped.file, text=text), stopped
    return None


def _diff(unit: Unit, text: str) -> str:
    name = unit.file if not unit.file.startswith("<") else "cell"
    before, after = unit.text.splitlines(keepends=True), text.splitlines(keepends=True)
    lines = difflib.unified_diff(before, after, name, name, n=2)
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def _apply(rewrite: Rewrite, whole: Unit, finding: Finding) -> tuple[str, str, Unit] | None:
    """Return the texts of the file and of the function after a rewrite, and the unit before it; None if uncertain."""
    # A later place in rewritten text may need another rewrite of the same rule.
    others = [other for other in REWRITES if other.rule == finding.rule and other is not rewrite]
    for candidate in [rewrite, *others] if finding.file.startswith("<rewritten ") else [rewrite]:
        try:
            unit = unit_at(whole, finding.line)
            text = unit.edited(candidate.make(unit, finding))
            if text != whole.text:
                return text, unit.standalone_code(text), unit
        except Exception:  # uncertain, or the text has an unexpected form
            continue
    return None


def _prove(record: LintRecord, finding: Finding, unit: Unit, text: str, rewrite: Rewrite) -> Finding | None:
    """Trace the function with its file's text rewritten to `text`.

    Returns:
        None if the rewrite is proven: the function is traced, outputs have the same types, and the rule finds less.
        Otherwise the finding of the same rule that stops the trace at another place.

    Raises:
        RewriteUncertain: Neither holds.
    """
    evidence, rewritten = record.evidence, f"<rewritten {finding.file}>"
    names: dict[str, Any] = {}
    for statement in unit.imports:
        exec(statement, names)
    # `exec` adds these.
    names.pop("__builtins__", None)
    copies = FunctionCopies(_paired_codes(finding.file, evidence, text, rewritten), names)
    function, args, kwargs = copies.copy(record.function, tuple(record.args), record.kwargs)
    further = {name: eval(value, dict(_MODULES)) for name, value in unit.new_parameters.items()}
    with _registered_text(rewritten, text):
        later, findings = replace(record, function=function, args=args, kwargs=kwargs | further).retrace(finding.rule)
        if rewrite.verify is not None:
            rewrite.verify(evidence, later, finding, rewritten)
    if later.traced is None or findings.faults:
        # That another place stopped the trace before as well is no reason to give up.
        stopped = next((error for error in findings.errors if error.file == rewritten), None)
        if stopped is None or evidence.error is None:
            raise RewriteUncertain("it can't be traced")
        return stopped
    if evidence.jaxpr is not None and _types(evidence) != _types(later):
        raise RewriteUncertain("the rewrite returns something else")
    # One finding less is enough: the others of the rule have rewrites of their own.
    rule = rule_named(finding.rule)
    if rule is None or len(findings) >= sum(1 for _ in rule.check(evidence)):
        raise RewriteUncertain("the rewritten code has the same pitfall")
    return None


def _types(evidence: Evidence) -> Any:
    outputs: list[Any] = jax.tree.leaves(evidence.traced.out_info)
    return jax.tree.structure(evidence.traced.out_info), [(output.shape, output.dtype) for output in outputs]


def _paired_codes(origin: str, evidence: Evidence, text: str, file: str) -> dict[CodeType, CodeType]:
    """Return the rewritten code object of each that ran and was changed, paired by name and order in the text.

    Raises:
        RewriteUncertain: No changed function ran.
    """
    source = read_source(origin)
    before, after = _codes_by_name("" if source is None else source.text, origin), _codes_by_name(text, file)
    same_count = (name for name, codes in before.items() if len(codes) == len(after.get(name, ())))
    pairs = [pair for name in same_count for pair in zip(before[name], after[name], strict=True) if pair[0] != pair[1]]
    changed = {(was.co_qualname, was.co_firstlineno): now for was, now in reversed(pairs)}
    ran = () if evidence.recording is None else evidence.recording.executed
    paired = {code: changed.get((code.co_qualname, code.co_firstlineno)) for code in ran if code.co_filename == origin}
    if not any(paired.values()):
        raise RewriteUncertain("the function didn't run")
    return {code: now for code, now in paired.items() if now is not None}


def _codes_by_name(text: str, file: str) -> dict[str, list[CodeType]]:
    tree = parse(text)
    if tree is None:
        raise RewriteUncertain("the rewritten code can't be parsed")
    codes: dict[str, list[CodeType]] = {}
    waiting = [compile(tree, file, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)]
    while waiting:
        code = waiting.pop()
        inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        waiting += reversed(inner)
        for function in inner:
            codes.setdefault(function.co_qualname, []).append(function)
    return {name: sorted(same, key=lambda code: code.co_firstlineno) for name, same in codes.items()}


@contextmanager
def _registered_text(file: str, text: str) -> Generator[None]:
    # `read_source`, and with it the rules, finds the text here: the file isn't on disk.
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    try:
        yield
    finally:
        linecache.cache.pop(file, None)
