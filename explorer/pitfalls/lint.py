"""lint(): trace a function once, under observation, and run every rule on what was seen."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from threading import get_ident
from types import MethodType
from typing import Any

import jax

from explorer._jax import undecided_equalities
from explorer._jax.arguments import is_jitted
from explorer._jax.traces import uncached_traces
from explorer.capture.backends import HereBackend, TargetBackend
from explorer.capture.call import Call, takes_call
from explorer.capture.explore import Described
from explorer.capture.filtered import arrays_of, filtered, is_filtered
from explorer.capture.safe_reading import is_users_object, kind_of
from explorer.errors import NotCallableError
from explorer.hardware.names import parse_target
from explorer.model.capture import Capture
from explorer.model.events.ledger import Ledger
from explorer.model.findings.finding import SEVERITIES, Finding
from explorer.model.findings.findings import Findings
from explorer.model.source import is_library_file
from explorer.model.target import Target
from explorer.pitfalls.config import select_rules, severities
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.jits import hash_of
from explorer.pitfalls.reach import reachable
from explorer.pitfalls.recorder import record_calls
from explorer.pitfalls.rule import Rule, all_rules
from explorer.pitfalls.sharded import SHARDED, compile_for, compile_if_sharded
from explorer.pitfalls.sharding_cures import CureTrials
from explorer.pitfalls.state import snapshot
from explorer.pitfalls.suppress import is_suppressed
from explorer.pitfalls.symbolic_arguments import symbolic_arguments
from explorer.pitfalls.thorough import trace_differences


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
    plain = jax.tree.map(_struct, (args, kwargs), is_leaf=lambda leaf: issubclass(type(leaf), Described))
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


def gather(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], record: bool = True) -> Evidence:
    """Trace a function once and keep everything that rules check; without `record`, not which calls were made."""
    users = unwrap(function)
    target: Any = function
    evidence = Evidence(users, function, args, kwargs)
    if isinstance(target, MethodType) and is_jitted(target.__func__):  # whose `trace` knows no self
        args = (target.__self__, *args)
        target = target.__func__
    if is_filtered(target):
        target = filtered(target, args, kwargs)
        args, kwargs = arrays_of((tuple(args), kwargs))
    evidence.before = snapshot(reachable(users))
    with (
        _recorded_warnings() as evidence.warnings,
        uncached_traces(),
        undecided_equalities() as evidence.undecided,
        record_calls(users) if record else nullcontext() as evidence.recording,
    ):
        try:
            target = target if hasattr(target, "trace") else jax.jit(_hashable(target))  # which refuses some callables
            traced = target.trace(*args, **kwargs)
            evidence.traced = traced if hasattr(traced, "jaxpr") else traced.traced  # flax.nnx.jit wraps JAX's
        except Exception as error:  # the rules say why
            evidence.error = error
    evidence.after = snapshot(reachable(users))
    return evidence


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


def _hashable(function: Any) -> Any:
    """jax.jit asks for a function's hash, and a model that is called may have arrays to hash."""
    by_value = hash_of(kind_of(function)) is not object.__hash__
    return partial(function) if by_value and is_users_object(function) else function


@contextmanager
def _recorded_warnings() -> Generator[list[tuple[str, str, int]]]:
    """The warnings within the block, each with its file and line, whatever the user's filters do with them.

    They are shown as ever, but none is raised: a filter that makes errors of them would end the trace at the first.
    """
    recorded: list[tuple[str, str, int]] = []
    thread = get_ident()
    filters = tuple(warnings.filters)
    with warnings.catch_warnings():
        show = warnings.showwarning

        def listen(message: Any, category: Any, filename: str, lineno: int, *rest: Any, **named: Any) -> None:
            if get_ident() != thread:  # such as the compiler's, beside a trace: the filters are those of all threads
                if _is_shown(filters, str(message), category, filename, lineno):
                    show(message, category, filename, lineno, *rest, **named)
                return
            at = _users_line(filename, lineno) if is_library_file(filename) else (filename, lineno)
            is_new = (str(message), *at) not in recorded
            recorded.append((str(message), *at))
            if is_new and _is_shown(filters, str(message), category, filename, lineno):
                show(message, category, filename, lineno, *rest, **named)

        warnings.simplefilter("always")
        warnings.showwarning = listen
        yield recorded


def _is_shown(filters: Sequence[Any], message: str, category: type[Warning], file: str, line: int) -> bool:
    """Whether Python would show a warning under some filters."""
    name = os.path.splitext(os.path.basename(file))[0]  # Python asks for the module's name, which ends so
    for action, text, kind, module, at in filters:
        if issubclass(category, kind) and at in (0, line) and _matches(text, message) and _matches(module, name):
            return action != "ignore"
    return True


def _matches(pattern: Any, text: str) -> bool:
    """Whether a text is what a filter of warnings asks for: None is any, Python's own filters have plain texts."""
    return pattern is None or (pattern == text if type(pattern) is str else pattern.search(text) is not None)


def _users_line(file: str, line: int) -> tuple[str, int]:
    """The user's line that is running, or the one given; many warnings of JAX's name a line of its own."""
    frame = inspect.currentframe()
    while frame is not None and is_library_file(frame.f_code.co_filename):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else (file, line)


def file_of(function: Any) -> str:
    """The file that a Python function was defined in; empty for other callables."""
    return getattr(getattr(function, "__code__", None), "co_filename", "")


def unwrap(function: Any) -> Any:
    """The user's function below jit, partial() and decorators that name what they wrap in `__wrapped__`."""
    for _ in range(100):  # a decorator may name itself
        if isinstance(function, partial):
            function = function.func
        elif type(function) is MethodType and is_jitted(function.__func__):
            function = MethodType(unwrap(function.__func__), function.__self__)
        elif type(function) is not MethodType and "__wrapped__" in getattr(function, "__dict__", {}):
            if _only_takes_its_name(function):
                break
            function = function.__wrapped__
        else:
            break
    return function


def _only_takes_its_name(function: Any) -> bool:
    """Whether a user's function wraps one of a library's, `@wraps(jnp.sin)`: what it does itself is the user's code."""
    own, wrapped = file_of(function), file_of(unwrap(function.__wrapped__))
    return bool(own) and not is_library_file(own) and (not wrapped or is_library_file(wrapped))


def _struct(leaf: Any) -> Any:
    return leaf.to_struct() if issubclass(type(leaf), Described) else leaf
