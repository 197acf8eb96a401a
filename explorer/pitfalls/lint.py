"""lint(): trace a function once, under observation, and run every rule on what was seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from explorer._jax import inner_jaxprs, user_stack
from explorer.capture.backends import HereBackend, TargetBackend
from explorer.capture.call import Call, takes_call
from explorer.capture.sources import Span
from explorer.errors import NotCallableError, OptionError
from explorer.hardware.names import parse_target
from explorer.model.capture import Capture
from explorer.model.events.ledger import Ledger
from explorer.model.findings import SEVERITIES, Finding, Findings
from explorer.model.target import Target
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import span_location
from explorer.pitfalls.rule import Rule, all_rules, is_suppressed, select_rules, severities
from explorer.pitfalls.rules.sharding import SHARDED, compile_for, compile_if_sharded
from explorer.pitfalls.sharding_cures import CureTrials
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
    """Find what may go wrong with a function when it is compiled.

    The function's Python runs once, to be traced. Its program isn't compiled, unless it is one for several devices: of
    these, rules look at what each device has, and cures are tried: the program is compiled with up to four of them, and
    the finding says what each brings. Pieces of it are compiled, and run, where a gradient may be NaN.
    A comment `# explorer: ignore[EX001]` silences a rule in a statement, or on a `def` in all of it;
    `[tool.explorer.lint]` of the nearest pyproject.toml says how grave a rule is: `EX012 = "error"`, `"warning"`,
    `"note"` or `"off"`.

    Args:
        function: Any callable, or a `jax.jit` function: what it knows already is traced anew.
        args, kwargs: As for a call: arrays, `jax.ShapeDtypeStruct`, `InputInfo`, or trees of them. A keyword
            that is a parameter of the function is given to it, whatever stands below: see `explorer.Call`. Sizes of an
            `InputInfo` that vary are traced all at once, as `compile` does; where that can't be, once more, at those
            that it is optimised for.
        rules: The rules to run, by name or number; all that the configuration leaves on if None.
        ignore: Rules not to run.
        thorough: Trace a second time, so that the user's Python runs twice, and compare: what differs was baked in.
        fixes: Also rewrite the function for each finding where a rewrite is certain, and prove it by another trace
            each. `Findings.fix(finding)` does so for one.
        ledger: What a watch saw: its compiles of functions made anew are findings too.
        target: Hardware that need not be here, as for `explorer.explore`: its compiler compiles the program, and the
            rules that look at a compiled program look at that one. What it refuses is an ExploreError, as of `explore`.

    Raises:
        NotCallableError: `function` can't be called.
        OptionError: There is no such rule, or pyproject.toml says of one what can't be.
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
    """The arguments of lint() apart from the function and its own; `lint` says what each means."""

    rules: str | Iterable[str] | None = None
    ignore: str | Iterable[str] = ()
    thorough: bool = False
    fixes: bool = False
    ledger: Ledger | None = None
    target: str | Target | None = None


@dataclass(frozen=True, repr=False)
class LintRecord:
    """What `Findings.fix` and `Findings.recheck` start from.

    Args:
        evidence: Of the trace that was checked.
        function: As the user passed it.
        args, kwargs: What it was traced with.
    """

    evidence: Evidence
    function: Callable[..., Any]
    args: Sequence[Any]
    kwargs: dict[str, Any] = field(default_factory=dict[str, Any])

    def retrace(self, rule: str) -> tuple[Evidence, Findings]:
        """Trace the function once more, and run one rule."""
        evidence = gather(self.function, self.args, self.kwargs)
        return evidence, check_rules(evidence, select_rules([rule]))


@dataclass
class Observation:
    """A function's trace as lint looks at it: `findings` is what the rules say of it.

    Args:
        evidence: Of the trace.
        plain: The arguments at one size, where the trace is of all sizes at once.
        backend: What the rules of compiled programs let compile it; None for what is here, and if it is sharded only.
        rules: Those to run.
        levels: The severity of a rule's findings, by its number, where the project configures it.
    """

    evidence: Evidence
    plain: tuple[Sequence[Any], dict[str, Any]]
    backend: TargetBackend | None
    rules: Sequence[Rule]
    levels: Mapping[str, str]

    def compile(self) -> None:
        """Compile what the rules of compiled programs look at.

        Raises:
            ExploreError: A target's compiler refused it.
        """
        __tracebackhide__ = True
        if self.backend is not None:
            self.evidence.capture = compile_for(self.evidence, self.plain, self.backend)
        elif any(rule.name in SHARDED for rule in self.rules):
            self.evidence.capture = compile_if_sharded(self.evidence)

    def try_cures(self) -> None:
        """Let the findings of a compiled program say what their cures bring: each trial is a compile."""
        if self.evidence.capture is not None:
            self.evidence.try_cure = CureTrials(self.backend or HereBackend()).outcome

    def findings(self) -> Findings:
        """What the rules say."""
        findings = check_rules(self.evidence, self.rules, self.levels)
        findings.target = "" if self.backend is None else str(self.backend.target)
        return findings

    def findings_of_trace(self) -> Findings:
        """What the rules say that look at no compiled program; the rest is what `findings_of_program` gives."""
        return replace(self, rules=[rule for rule in self.rules if rule.name not in SHARDED]).findings()

    def findings_of_program(self, capture: Capture | None) -> Findings:
        """What the others say, and no cure is tried.

        Args:
            capture: Of the same program, where it was compiled already.
        """
        __tracebackhide__ = True
        if capture is None:
            self.compile()
        elif int(capture.hlo.graph.attributes.get("num_partitions", "1")) > 1:
            self.evidence.capture = capture
        return replace(self, rules=[rule for rule in self.rules if rule.name in SHARDED]).findings()


def observe(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], options: LintOptions
) -> Observation:
    """Trace a function for lint, which compiles nothing yet."""
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
        # It can't be traced for all sizes at once: at one size then, as compile() does, which says so.
        evidence = gather(function, *plain)
    evidence.events = () if options.ledger is None else options.ledger.events
    return Observation(evidence, plain, backend, rules, levels)


def run_rules(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], options: LintOptions
) -> Findings:
    """lint(), for arguments of any name."""
    __tracebackhide__ = True
    observation = observe(function, args, kwargs, options)
    observation.compile()
    observation.try_cures()
    evidence, findings = observation.evidence, observation.findings()
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
    """The findings of some rules, or of all.

    A rule that raises costs its own findings, and is named in `Findings.faults`.

    Args:
        evidence: Of one trace; without a recording only passive rules run.
        rules: Those to run; all of them if None.
        levels: The severity of a rule's findings, by its number, where the project configures it.
    """
    findings: list[Finding] = []
    faults: list[str] = []
    applicable = [rule for rule in (all_rules() if rules is None else rules) if rule.passive or evidence.recording]
    evidence.gather()
    for rule in applicable:
        try:
            if own := list(rule.check(evidence)):  # most rules find nothing in most functions
                findings += _unsuppressed(own, (levels or {}).get(rule.code))
        except Exception as error:
            faults.append(f"{rule.name}: {type(error).__name__}: {error}")
    explained = any(finding.severity == "error" for finding in findings)
    failure = "" if evidence.error is None or explained else _summarize_error(evidence.error)
    return Findings(findings, evidence.name, faults, failure, [rule.name for rule in applicable])


def _unsuppressed(findings: Sequence[Finding], level: str | None) -> list[Finding]:
    findings = [finding for finding in findings if not is_suppressed(finding)]
    return [replace(finding, severity=level) for finding in findings] if level in SEVERITIES else findings


def _summarize_error(error: BaseException) -> str:
    """An error in a line; no object of the user's among its arguments is formatted, which would run their code."""
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
    """The findings of the passive rules about a function that was just traced, or couldn't be; `Findings.of_trace`."""
    users = unwrap(function)
    levels: Mapping[str, str] = {}
    faults: tuple[str, ...] = ()
    try:
        levels = severities(file_of(users))
    except OptionError as refused:  # lint() raises it; here it must not stop who only compiles
        faults = (str(refused),)
    passive = [rule for rule in select_rules(config=levels) if rule.passive]
    rules = [rule for rule in passive if (not rule.compiles if capture is None else rule.name in SHARDED)]
    evidence = Evidence(users, function, args, kwargs, traced=traced, error=error, capture=capture)
    findings = check_rules(evidence, rules, levels)
    evidence.close()
    # Without the failure: a capture has its own.
    return Findings(findings, findings.function, (*faults, *findings.faults), rules=findings.rules)


_RANDOM = "impure-random"
_MOST = 20  # places; a program that is another altogether differs everywhere


def trace_differences(first: Evidence, second: Evidence, findings: Iterable[Finding]) -> list[Finding]:
    """A finding for each line that traced to another program the second time, unless one of `findings` is there."""
    if first.jaxpr is None or second.jaxpr is None:
        return []
    rule = next(rule for rule in all_rules() if rule.name == _RANDOM)
    places = {(finding.file, finding.line) for finding in findings}
    differences: list[Finding] = []
    for equation, how in _differences(first.jaxpr, second.jaxpr):
        finding = _difference(rule, first, equation, how)
        if (finding.file, finding.line) not in places:
            places.add((finding.file, finding.line))
            differences.append(finding)
        if len(differences) == _MOST:
            break
    return differences


def _difference(rule: Rule, evidence: Evidence, equation: Any, how: str) -> Finding:
    stack = user_stack(getattr(getattr(equation, "source_info", None), "traceback", None))
    return rule.finding(
        f"{evidence.name} traced twice with the same arguments gives two programs: something made while tracing is "
        "baked in here",
        evidence=how,
        fix="make it outside, and pass it as an argument",
        severity="warning",
        **(span_location(stack[0].file, Span(stack[0].line, 0, 0, 0)) if stack else {}),
    )


def _differences(one: Any, other: Any) -> Iterator[tuple[Any, str]]:
    """The equations that differ, and how, in the order of the program."""
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


def _constants(program: Any) -> dict[Any, Any]:
    variables = getattr(getattr(program, "jaxpr", program), "constvars", ())
    return dict(zip(variables, getattr(program, "consts", ()), strict=False))


def _operand(operand: Any, constants: dict[Any, Any]) -> Any:
    """What an operand is, if the trace knew."""
    return operand.val if hasattr(operand, "val") else constants.get(operand)


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    left, right = np.asarray(one), np.asarray(other)
    if left.dtype == object or right.dtype == object:
        return True  # keys and the like, which aren't compared
    return left.shape == right.shape and left.dtype == right.dtype and left.tobytes() == right.tobytes()


def _short(value: Any) -> str:
    array = np.asarray(value)
    return f"{array.item()!r}" if array.ndim == 0 else f"{array.dtype}{list(array.shape)} starting {array.ravel()[:3]}"
