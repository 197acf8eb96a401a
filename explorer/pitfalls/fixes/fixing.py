"""fix(): the rewrite for a finding, proven before it is returned; attached to `Findings`.

A rewrite works on the text, and leaves each comment and blank where it is. It is offered only if it is certain: a copy
of the user's functions with the rewritten code is traced, and then the rule must not find it again. The user's own
functions and modules stay as they are, for other threads may use them meanwhile (`copies`). Nothing of the user's
module is run for it but what the trace runs.
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
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.fixes import loops, prints, values
from explorer.pitfalls.fixes.copies import FunctionCopies
from explorer.pitfalls.fixes.unit import RewriteUncertain, Unit, unit_at
from explorer.pitfalls.function_source import Edit
from explorer.pitfalls.lint import LintRecord
from explorer.pitfalls.rule import rule_named

_MOST = 12  # places of one function that have to be rewritten together for it to be traced
# What the expressions for further arguments are made of; they are Explorer's own, none is the user's.
_MODULES = {name: import_module(name) for name in ("jax", "random", "time", "numpy")}


@dataclass(frozen=True)
class Rewrite:
    """One way to cure the findings of a rule.

    Args:
        rule: The rule's name.
        text: What it does, in a sentence.
        make: Gives the edits for one finding; raises `RewriteUncertain` where it can't be sure.
        verify: Compares the traces of the text as it was and as it is, the latter by the name of its file, beyond what
            each rewrite has to hold; raises `RewriteUncertain` if they don't do the same.
    """

    rule: str
    text: str
    make: Callable[[Unit, Finding], Sequence[Edit]]
    verify: Callable[[Evidence, Evidence, Finding, str], None] | None = None


_ARGUMENT = "what is made for each call is an argument"
_FILLED_IN = "jax.debug.print fills in the values while the program runs"
_STAYS = "the value stays traced"
_ARRAY = "a new array with the change; inside jax.jit it is made in place"
_FORI = "jax.lax.fori_loop traces its body once"
_SAFE = "the operand is one with a finite derivative where the result isn't used"
# Those for one rule in the order in which they are tried.
REWRITES = (
    *(Rewrite(rule, _ARGUMENT, loops.new_argument) for rule in ("impure-time", "impure-random", "key-reuse")),
    Rewrite("key-reuse", "each draw has a key of its own", loops.split_key),
    Rewrite("truncation", "the dtype that it is", values.narrow_dtype),
    Rewrite("unhashable-static", "a tuple has a hash", values.tuple_of_list),
    Rewrite("impure-print", "jax.debug.breakpoint() stops while the program runs", values.debug_breakpoint),
    Rewrite("rejit-in-loop", "jax.jit once, above the loop", loops.hoisted_jit),
    Rewrite("unrolled-loop", _FORI, loops.fori_loop),
    Rewrite("unrolled-loop", _FORI, loops.fori_loop_of_body),
    Rewrite(
        "boolean-mask", "the reduction leaves out what the mask does, and the shape stays", values.masked_reduction
    ),
    Rewrite("impure-print", "jax.debug.print prints while the program runs", prints.rewrite_print),
    Rewrite("impure-print", "jax.debug.callback logs while the program runs", prints.rewrite_log),
    Rewrite("concretization", _FILLED_IN, prints.rewrite_print),
    Rewrite("formatted-tracer", _FILLED_IN, prints.rewrite_print),
    Rewrite("formatted-tracer", _FILLED_IN, prints.rewrite_format),
    Rewrite("nan-gradient", _SAFE, values.guard, values.verify_guard),
    Rewrite("argument-mutation", _ARRAY, values.item_set),
    Rewrite("concretization", _ARRAY, values.item_set),
    Rewrite("concretization", "jax.numpy has the same function, and traces it", values.numpy_function),
    Rewrite("concretization", _STAYS, values.number),
    Rewrite("host-transfer", _STAYS, values.number),
    Rewrite("concretization", "jnp.where chooses while the program runs, and computes both", values.choice),
)
_RULES = {rewrite.rule for rewrite in REWRITES}


def can_fix(findings: Findings, finding: Finding) -> bool:
    """Return True if there is a rewrite of the finding, or may be one that is proven when it is asked for."""
    return bool(finding.fix.code) or (findings.record is not None and finding.rule in _RULES)


def fix(findings: Findings, finding: Finding | int) -> Fix:
    """The finding's cure; with the function rewritten, if one of the rewrites for its rule is certain and is proven."""
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
    """A file as `unit_at` takes it: with the names of its module, and where the linted function starts in it."""
    executed = (function.executed for function in evidence.functions if function.file == source.file)
    names = next((function.globals for function in executed), dict[str, Any]())
    code = getattr(evidence.function, "__code__", None)
    main = code.co_firstlineno if code is not None and code.co_filename == source.file else 0
    return Unit(source.file, source.text, 1, 1, names, main, evidence=evidence)


def _proven(rewrite: Rewrite, original: Unit, record: LintRecord, finding: Finding) -> Fix | None:
    """The rewrite, if it is proven; of both places, where the trace then stops at another one with the same mistake."""
    unit, place = original, finding
    for _ in range(_MOST):
        rewritten = _apply(rewrite, unit, place)
        if rewritten is None:
            return None
        text, code, unit = rewritten
        try:
            stopped = _prove(record, finding, unit, text, rewrite)
        except Exception:  # it can't be put in the place of what ran, or what it runs raises
            return None
        if stopped is None:
            needed = f" (it needs: {'; '.join(dict.fromkeys(unit.imports))})" if unit.imports else ""
            call = ", ".join(f"{name}={value}" for name, value in unit.new_parameters.items())
            called = f": call {record.evidence.name}(…, {call})" if call else ""
            called += ", with another key for each call" if "=jax.random." in call else ""
            return replace(finding.fix, text=rewrite.text + called + needed, code=code, diff=_diff(original, text))
        unit, place = replace(unit, file=stopped.file, text=text), stopped
    return None


def _apply(rewrite: Rewrite, whole: Unit, finding: Finding) -> tuple[str, str, Unit] | None:
    """The file's text and the function's own after a rewrite; None if it isn't certain."""
    # At a place further on, in a text that is rewritten already, another rewrite for the same rule may be the one.
    others = [other for other in REWRITES if other.rule == finding.rule and other is not rewrite]
    for candidate in [rewrite, *others] if finding.file.startswith("<rewritten ") else [rewrite]:
        try:
            unit = unit_at(whole, finding.line)
            text = unit.edited(candidate.make(unit, finding))
            if text != whole.text:
                return text, unit.standalone_code(text), unit
        except Exception:  # it isn't certain, or an odd text is nothing that a rewrite takes: there is none then
            continue
    return None


def _diff(unit: Unit, text: str) -> str:
    name = unit.file if not unit.file.startswith("<") else "cell"
    before, after = unit.text.splitlines(keepends=True), text.splitlines(keepends=True)
    lines = difflib.unified_diff(before, after, name, name, n=2)
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def _prove(record: LintRecord, finding: Finding, unit: Unit, text: str, rewrite: Rewrite) -> Finding | None:
    """Trace the function with its file's text rewritten.

    Args:
        record: Of the trace with the text as it is.
        finding: What the rewrite cures.
        unit: The function that was rewritten.
        text: All of its file, rewritten.
        rewrite: What was done, and what it asks of both traces besides.

    Returns:
        None if the function is traced, gives the same types, and has one finding of the rule less: it is proven. Else
        the finding of the same rule in another place that stops the trace now.

    Raises:
        RewriteUncertain: It is none of this.
    """
    evidence, rewritten = record.evidence, f"<rewritten {finding.file}>"
    copies = FunctionCopies(_paired_codes(finding.file, evidence, text, rewritten), _imported(unit))
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
        raise RewriteUncertain("it gives something else")
    # One finding less is enough: the others of the rule have rewrites of their own.
    rule = rule_named(finding.rule)
    if rule is None or len(findings) >= sum(1 for _ in rule.check(evidence)):
        raise RewriteUncertain("it is found again")
    return None


def _types(evidence: Evidence) -> Any:
    outputs: list[Any] = jax.tree.leaves(evidence.traced.out_info)
    return jax.tree.structure(evidence.traced.out_info), [(output.shape, output.dtype) for output in outputs]


def _compiled(text: str, file: str) -> CodeType:
    tree = parse(text)
    if tree is None:
        raise RewriteUncertain("what was rewritten can't be parsed")
    return compile(tree, file, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def _paired_codes(origin: str, evidence: Evidence, text: str, file: str) -> dict[CodeType, CodeType]:
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
