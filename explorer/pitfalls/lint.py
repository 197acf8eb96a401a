"""Lint a function: trace it once under observation, then run the rules on the evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from explorer._jax.traces import inner_jaxprs, user_stack
from explorer.capture.backends import HereBackend, TargetBackend
from explorer.capture.call import Call, takes_call
from explorer.capture.sources import Span
from explorer.errors import NotCallableError, OptionError
from explorer.hardware.names import parse_target
from explorer.model.capture import Capture
from explorer.model.events.ledger import Ledger
from explorer.model.findings import READ, SEVERITIES, Finding, Findings
from explorer.model.target import Target
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import span_location
from explorer.pitfalls.rule import Rule, all_rules, is_suppressed, select_rules, severities
from explorer.pitfalls.rule_sharding import SHARDED, compile_for, compile_if_sharded
from explorer.pitfalls.sharding_trials import FixTrials
from explorer.pitfalls.tracing import file_of, gather, plain_arguments, symbolic_arguments, unwrap


@takes_call
def lint(
    function: Callable[..., Any] | Call,
    /,
    *args: Any,
    rules: str | Iterable[str] | None = None,
    ignore: str | Iterable[str] = (),
    thorough: bool = False,
    fixes: bool = False,
    ledger: Ledger | None = None,
    target: str | Target | None = None,
    **kwargs: Any,
) -> Findings:
    """Find pitfalls of a function that is compiled with `jax.jit`.

    The function's Python runs once, while it is traced. The traced program is run on the arguments, if they are arrays
    and half a second is enough: that shows NaN, infinity and integers that wrap around. A program for several devices
    is compiled, and again with up to four fixes, so that each finding reports what its fix gains. A plain function that
    reads results of jitted functions, such as a training loop, is read, not traced.
    A comment `# explorer: ignore[EX001]` silences a rule for a statement, or for a whole function if it follows the
    `def`. `[tool.explorer.lint]` in the nearest pyproject.toml sets severities: `EX012 = "error"`, `"warning"`,
    `"note"` or `"off"`.

    Args:
        function: Any callable, or a `jax.jit` function. Existing traces are not reused.
        args, kwargs: Arguments as for a call: arrays, `jax.ShapeDtypeStruct`, `InputInfo`, or trees of them. A keyword
            that is a parameter of the function is passed to the function: see `explorer.Call`. Sizes of an `InputInfo`
            that vary are traced as symbolic dimensions, as in `compile`. If that fails, the function is traced at
            their optimal sizes.
        rules: Names or numbers of the rules to run. None runs all rules that the configuration leaves on.
        ignore: Rules not to run.
        thorough: Trace twice and compare: values that differ were baked in. The user's Python runs twice.
        fixes: Also rewrite the function for each finding where a rewrite can be proven, with one more trace each.
            `Findings.fix(finding)` does this for one finding.
        ledger: Ledger of a watch. Recompiles of functions that are created again and again become findings.
        target: Hardware to compile for, as in `explorer.explore`. The hardware need not be present.

    Returns:
        The findings, most severe first.

    Raises:
        NotCallableError: `function` can't be called.
        OptionError: A rule or severity in the arguments or in pyproject.toml doesn't exist.
        UnknownTargetError, MissingCompilerError, ExploreError: With a `target`, as for `explore`.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> def f(x):
        ...     print(x.shape)
        ...     return x * 2
        >>> [finding.rule for finding in explorer.lint(f, jnp.ones(3))]
        (3,)
        ['impure-print']
    """
    __tracebackhide__ = True
    call = Call.of(function, args, kwargs)
    return run_rules(call.function, call.args, call.kwargs, LintOptions(rules, ignore, thorough, fixes, ledger, target))


@dataclass(frozen=True)
class LintOptions:
    """Options of `lint()`, without the function and its arguments."""

    rules: str | Iterable[str] | None = None
    ignore: str | Iterable[str] = ()
    thorough: bool = False
    fixes: bool = False
    ledger: Ledger | None = None
    target: str | Target | None = None


@dataclass(frozen=True, repr=False)
class LintRecord:
    """Evidence and call that `Findings.fix` and `Findings.recheck` work on."""

    evidence: Evidence  # of the trace that was checked
    function: Callable[..., Any]  # as the user passed it
    args: Sequence[Any]  # args, kwargs: what it was traced with
    kwargs: dict[str, Any] = field(default_factory=dict[str, Any])

    def retrace(self, rule: str) -> tuple[Evidence, Findings]:
        evidence = gather(self.function, self.args, self.kwargs)
        return evidence, check_rules(evidence, select_rules([rule]))


@dataclass
class Observation:
    """Evidence about a function, with the rules to run on it."""

    evidence: Evidence  # of the trace
    plain: tuple[Sequence[Any], dict[str, Any]]  # the arguments at one size, where the trace is of all sizes at once
    # what the rules of compiled programs let compile it; None for what is here, and if it is sharded only
    backend: TargetBackend | None
    rules: Sequence[Rule]  # those to run
    levels: Mapping[str, str]  # the severity of a rule's findings, by its number, where the project configures it

    def compile(self) -> None:
        """Compile the program into `evidence.capture` if a selected rule needs the compiled program.

        Raises:
            ExploreError: The target's compiler refused the program.
        """
        __tracebackhide__ = True
        if self.backend is not None:
            self.evidence.capture = compile_for(self.evidence, self.plain, self.backend)
        elif any(rule.name in SHARDED for rule in self.rules):
            self.evidence.capture = compile_if_sharded(self.evidence)

    def findings(self, sharded: bool | None = None) -> Findings:
        """Return the findings of all rules, or of those that need (or don't need) the compiled program."""
        rules = [rule for rule in self.rules if sharded is None or sharded == (rule.name in SHARDED)]
        findings = check_rules(self.evidence, rules, self.levels)
        findings.target = "" if self.backend is None else str(self.backend.target)
        return findings

    def findings_of_program(self, capture: Capture | None) -> Findings:
        """Return the findings of the rules that need the compiled program; no fixes are tried.

        Args:
            capture: Capture of the same program, if it was compiled before.
        """
        __tracebackhide__ = True
        if capture is None:
            self.compile()
        elif int(capture.hlo.graph.attributes.get("num_partitions", "1")) > 1:
            self.evidence.capture = capture
        return self.findings(sharded=True)


def observe(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], options: LintOptions
) -> Observation:
    """Return the evidence of a trace of a function, with the rules to run on it. Nothing is compiled."""
    __tracebackhide__ = True
    if not callable(function):
        raise NotCallableError(
            f"lint takes a function and its arguments; it got {type(function).__name__}. "
            "Hint: write lint(f, x), not lint(f(x))."
        )
    backend = None if options.target is None else TargetBackend(parse_target(options.target))
    levels = severities(file_of(unwrap(function)))
    rules = select_rules(options.rules, options.ignore, levels)
    plain = plain_arguments(args, kwargs)
    args, kwargs = symbolic_arguments(args, kwargs) or plain
    evidence = gather(function, args, kwargs)
    if evidence.error is not None and args is not plain[0] and check_rules(evidence).failure:
        # The symbolic trace failed: trace at one size, as compile() does.
        evidence = gather(function, *plain)
    evidence.events = () if options.ledger is None else options.ledger.events
    return Observation(evidence, plain, backend, rules, levels)


def run_rules(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], options: LintOptions
) -> Findings:
    """Return the findings of `lint` for a function whose arguments may have the names of its options."""
    __tracebackhide__ = True
    observation = observe(function, args, kwargs, options)
    observation.compile()
    evidence = observation.evidence
    if evidence.capture is not None:  # findings about the compiled program try their fixes: a compile for each
        evidence.try_fix = FixTrials(observation.backend or HereBackend()).outcome
    findings = observation.findings()
    args, kwargs = evidence.args, evidence.kwargs
    if options.thorough:
        second = gather(function, args, kwargs, record=False)
        findings = findings.changed([*findings, *trace_differences(evidence, second, findings)])
    findings = findings.changed(findings, LintRecord(evidence, function, args, kwargs))
    if not options.fixes:
        return findings
    return findings.changed(replace(finding, fix=findings.fix(finding)) for finding in findings)


def check_rules(
    evidence: Evidence, rules: Sequence[Rule] | None = None, levels: Mapping[str, str] | None = None
) -> Findings:
    """Run rules, all of them by default, and return their findings.

    A rule that raises loses its own findings only, and is named in `Findings.faults`.

    Args:
        evidence: Evidence of one trace. Without a recording only passive rules run.
        rules: Rules to run.
        levels: Severity by rule number, from the project's configuration.
    """
    applicable = [rule for rule in (all_rules() if rules is None else rules) if _applies(rule, evidence)]
    findings, faults = _checked(evidence, applicable, levels or {})
    explained = any(finding.severity == "error" for finding in findings)
    failure = "" if evidence.error is None or explained else _summarize_error(evidence.error)
    name = evidence.name + (READ if evidence.is_driver else "")
    return Findings(findings, name, faults, failure, [rule.name for rule in applicable])


def _checked(evidence: Evidence, rules: Sequence[Rule], levels: Mapping[str, str]) -> tuple[list[Finding], list[str]]:
    """Return the findings of rules, and the faults of the evidence and of rules that raised."""
    findings: list[Finding] = []
    faults = list(evidence.faults)
    for rule in rules:
        try:
            if own := list(rule.check(evidence)):
                findings += _unsuppressed(own, levels.get(rule.code))
        except Exception as error:
            faults.append(f"{rule.name}: {type(error).__name__}: {error}")
    return findings, faults


def _applies(rule: Rule, evidence: Evidence) -> bool:
    return rule.drivers if evidence.is_driver else rule.passive or evidence.recording is not None


def _unsuppressed(findings: Sequence[Finding], level: str | None) -> list[Finding]:
    findings = [finding for finding in findings if not is_suppressed(finding)]
    return [replace(finding, severity=level) for finding in findings] if level in SEVERITIES else findings


def _summarize_error(error: BaseException) -> str:
    """Return an error in one line, without formatting objects of the user, which would run their code."""
    plain_text = all(type(argument) is str for argument in error.args)
    line = str(error.args[0]).strip().partition("\n")[0] if error.args and plain_text else ""
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def check(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    traced: Any,
    error: BaseException | None,
    capture: Capture | None = None,
) -> Findings:
    """Return the findings of the passive rules on a function that was just traced, or whose trace failed.

    They are those of rules that compile nothing, or with a `capture` those about a sharded program.
    """
    users = unwrap(function)
    levels: Mapping[str, str] = {}
    faults: tuple[str, ...] = ()
    try:
        levels = severities(file_of(users))
    except OptionError as refused:  # lint() raises this; a compile must not fail because of it
        faults = (str(refused),)
    passive = [rule for rule in select_rules(config=levels) if rule.passive]
    evidence = Evidence(users, function, args, kwargs, traced=traced, error=error, capture=capture).collect()
    chosen = (rule for rule in passive if (not rule.compiles if capture is None else rule.name in SHARDED))
    rules = [rule for rule in chosen if _applies(rule, evidence)]
    # Its cycles would keep the constants until Python collects them.
    with closing(evidence.program):
        findings, more = _checked(evidence, rules, levels)
    # Without the failure: captures report it themselves.
    name = evidence.name + (READ if evidence.is_driver else "")
    return Findings(findings, name, (*faults, *more), rules=[rule.name for rule in rules])


_RANDOM = "impure-random"
_MAX_DIFFERENCES = 20  # findings: an entirely different program differs everywhere


def trace_differences(first: Evidence, second: Evidence, findings: Iterable[Finding]) -> list[Finding]:
    """Return a finding for each line, at most 20, that differs between two traces and has no finding yet.

    Empty if one of them failed.
    """
    if first.jaxpr is None or second.jaxpr is None:
        return []
    rule = next(rule for rule in all_rules() if rule.name == _RANDOM)
    places = {(finding.file, finding.line) for finding in findings}
    differences: dict[tuple[str, int], Finding] = {}
    for equation, how in _differences(first.jaxpr, second.jaxpr):
        stack = user_stack(getattr(getattr(equation, "source_info", None), "traceback", None))
        finding = rule.finding(
            f"{first.name} traced twice with the same arguments gives two programs: something made while tracing is "
            "baked in here",
            evidence=how,
            fix="make it outside, and pass it as an argument",
            severity="warning",
            **(span_location(stack[0].file, Span(stack[0].line, 0, 0, 0)) if stack else {}),
        )
        if (finding.file, finding.line) not in places:
            differences.setdefault((finding.file, finding.line), finding)
        if len(differences) == _MAX_DIFFERENCES:
            break
    return list(differences.values())


def _differences(one: Any, other: Any) -> Iterator[tuple[Any, str]]:
    inner, outer = getattr(one, "jaxpr", one), getattr(other, "jaxpr", other)
    values = _constants(one), _constants(other)
    for a, b in zip(inner.eqns, outer.eqns, strict=False):
        if a.primitive.name != b.primitive.name:
            yield a, f"{a.primitive.name} in the first trace, {b.primitive.name} in the second"
            return  # all that follows is shifted
        for left, right in zip(a.invars, b.invars, strict=False):
            was, now = _operand(left, values[0]), _operand(right, values[1])
            if was is not None and now is not None and not _same(was, now):
                yield a, f"{_short(was)} in the first trace, {_short(now)} in the second"
        pairs = zip(inner_jaxprs(a.params), inner_jaxprs(b.params), strict=False)
        for (_, left), (_, right) in pairs:
            yield from _differences(left, right)
    if len(inner.eqns) != len(outer.eqns):
        more = max(inner, outer, key=lambda program: len(program.eqns))
        yield more.eqns[min(len(inner.eqns), len(outer.eqns))], f"{len(inner.eqns)} equations, then {len(outer.eqns)}"


def _operand(operand: Any, constants: dict[Any, Any]) -> Any:
    return operand.val if hasattr(operand, "val") else constants.get(operand)


def _constants(program: Any) -> dict[Any, Any]:
    variables = getattr(getattr(program, "jaxpr", program), "constvars", ())
    return dict(zip(variables, getattr(program, "consts", ()), strict=False))


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    left, right = np.asarray(one), np.asarray(other)
    if left.dtype == object or right.dtype == object:
        return True  # keys and similar, which can't be compared
    return left.shape == right.shape and left.dtype == right.dtype and left.tobytes() == right.tobytes()


def _short(value: Any) -> str:
    array = np.asarray(value)
    return f"{array.item()!r}" if array.ndim == 0 else f"{array.dtype}{list(array.shape)} starting {array.ravel()[:3]}"
