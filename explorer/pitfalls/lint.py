"""lint(): trace a function once, under observation, and ask every rule what it thinks."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from types import MethodType
from typing import Any

import jax

from explorer._jax import undecided_equalities
from explorer._jax.jitted import is_jitted
from explorer._jax.uncached_traces import fresh_traces
from explorer.capture.explore import Described
from explorer.capture.filtered import arrays_of, filtered, is_filtered
from explorer.errors import NotCallableError
from explorer.model.events.ledger import Ledger
from explorer.model.findings.finding import SEVERITIES, Finding, Fix
from explorer.model.findings.findings import Findings
from explorer.pitfalls.config import select_rules, severities
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.jits import hash_of
from explorer.pitfalls.reach import reachable
from explorer.pitfalls.recorder import recorded
from explorer.pitfalls.rule import Rule, all_rules
from explorer.pitfalls.safe import is_users_file, is_users_object, kind_of
from explorer.pitfalls.state import snapshot
from explorer.pitfalls.suppress import is_suppressed
from explorer.pitfalls.symbolic_arguments import symbolic_arguments
from explorer.pitfalls.thorough import trace_differences

__all__ = ["LintOptions", "check_rules", "gather", "lint", "reachable", "run_rules", "unwrap"]


def lint(
    function: Callable[..., Any],
    /,
    *args: Any,
    rules: str | Iterable[str] | None = None,
    ignore: str | Iterable[str] = (),
    thorough: bool = False,
    fixes: bool = False,
    ledger: Ledger | None = None,
    **kwargs: Any,
) -> Findings:
    """Find what may go wrong with a function when it is compiled.

    The function's Python runs once, to be traced; nothing is compiled or run. A comment `# explorer: ignore[EX001]`
    silences a rule in a statement, or on a `def` in all of it; `[tool.explorer.lint]` of the nearest pyproject.toml
    says how grave a rule is: `EX012 = "error"`, `"warning"`, `"note"` or `"off"`.

    Args:
        function: Any callable, or a `jax.jit` function: what it knows already is traced anew.
        args, kwargs: As for a call: arrays, `jax.ShapeDtypeStruct`, `InputInfo`, or trees of them. One of a name
            below is given by position. Sizes of an `InputInfo` that vary are traced all at once, as `compile` does;
            where that can't be, once more, at those that it is optimised for.
        rules: The rules to ask, by name or number; all that the configuration leaves on if None.
        ignore: Rules not to ask.
        thorough: Trace a second time, so that the user's Python runs twice, and compare: what differs was baked in.
        fixes: Also rewrite the function for each finding where a rewrite is certain, and prove it by another trace
            each. `Findings.fix(finding)` does so for one.
        ledger: What a watch saw: its compiles of functions made anew are findings too.

    Raises:
        NotCallableError: `function` can't be called.
        OptionError: There is no such rule, or pyproject.toml says of one what can't be.

    Example:
        >>> import jax.numpy as jnp
        >>> def f(x):
        ...     print(x.shape)
        ...     return x * 2
        >>> [finding.rule for finding in lint(f, jnp.ones(3))]
        (3,)
        ['impure-print']
    """
    __tracebackhide__ = True
    asked = LintOptions(rules, ignore, thorough, fixes, ledger)
    return run_rules(function, args, kwargs, asked)


@dataclass(frozen=True)
class LintOptions:
    """What lint() is asked, apart from the function and its arguments; `lint` says what each means."""

    rules: str | Iterable[str] | None = None
    ignore: str | Iterable[str] = ()
    thorough: bool = False
    fixes: bool = False
    ledger: Ledger | None = None


def run_rules(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], asked: LintOptions
) -> Findings:
    """lint(), for arguments of any name."""
    __tracebackhide__ = True
    if not callable(function):
        raise NotCallableError(
            f"lint takes a function and its arguments; it got {type(function).__name__}. "
            "Hint: write lint(f, x), not lint(f(x))."
        )
    users = unwrap(function)
    levels = severities(getattr(getattr(users, "__code__", None), "co_filename", ""))
    rules = select_rules(asked.rules, asked.ignore, levels)
    plainly = jax.tree.map(_struct, (args, kwargs), is_leaf=lambda leaf: issubclass(type(leaf), Described))
    args, kwargs = symbolic_arguments(args, kwargs) or plainly
    evidence = gather(function, args, kwargs)
    if evidence.error is not None and args is not plainly[0] and check_rules(evidence).failure:
        # Not for all sizes at once, then: as compile(), which says so.
        args, kwargs = plainly
        evidence = gather(function, args, kwargs)
    evidence.events = () if asked.ledger is None else asked.ledger.events
    found = check_rules(evidence, rules, levels)
    if asked.thorough:
        again = gather(function, args, kwargs, record=False)
        found = found.changed([*found, *trace_differences(evidence, again, found)])
    fixer = partial(_fixed, evidence, function, args, kwargs)
    cured = [replace(one, fix=fixer(one)) for one in found] if asked.fixes else found
    return found.changed(cured, fixer, partial(_stale, evidence))


def _stale(evidence: Evidence) -> Findings:
    from explorer.pitfalls.stale import recheck

    return recheck(evidence)


def _fixed(
    evidence: Evidence, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], finding: Finding
) -> Fix:
    from explorer.pitfalls.fixes import fixed  # libcst takes a while to be imported, and most findings are only read

    def again(rule: str, further: dict[str, Any]) -> tuple[Evidence, Findings]:
        later = gather(function, args, kwargs | further)
        return later, check_rules(later, select_rules([rule]))

    return fixed(evidence, again, finding)


def gather(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], record: bool = True) -> Evidence:
    """Trace a function once and keep all that rules look at."""
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
    heard: list[tuple[str, str, int]] = []
    watched = recorded(users) if record else nullcontext()
    with _heard(heard), fresh_traces(), undecided_equalities() as evidence.undecided, watched as recording:
        try:
            target = target if hasattr(target, "trace") else jax.jit(_hashable(target))  # which refuses some callables
            traced = target.trace(*args, **kwargs)
            evidence.traced = traced if hasattr(traced, "jaxpr") else traced.traced  # flax.nnx.jit wraps JAX's
        except Exception as error:  # the rules say why
            evidence.error = error
    evidence.recording = recording
    evidence.after = snapshot(reachable(users))
    evidence.warnings = heard
    return evidence


def check_rules(
    evidence: Evidence, rules: Sequence[Rule] | None = None, levels: Mapping[str, str] | None = None
) -> Findings:
    """What the rules find, as grave as `levels` say by a rule's number.

    One that fails costs its own findings, and is named in `Findings.faults`.
    """
    found: list[Finding] = []
    faults: list[str] = []
    rules = all_rules() if rules is None else rules
    rules = [rule for rule in rules if rule.passive or evidence.recording is not None]
    for rule in rules:
        try:
            told = [finding for finding in rule.check(evidence) if not is_suppressed(finding)]
            level = (levels or {}).get(rule.code)
            found += [replace(one, severity=level) for one in told] if level in SEVERITIES else told
        except Exception as error:
            faults.append(f"{rule.name}: {type(error).__name__}: {error}")
    explained = any(one.severity == "error" for one in found)
    failure = "" if evidence.error is None or explained else _told(evidence.error)
    asked = [rule.name for rule in rules]
    return Findings(found, function=evidence.name, faults=faults, failure=failure, asked=asked)


def _told(error: BaseException) -> str:
    """An error in a line, without asking objects of the user's what they are."""
    plain_text = all(type(argument) is str for argument in error.args)
    line = str(error.args[0]).strip().partition("\n")[0] if error.args and plain_text else ""
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def _hashable(function: Any) -> Any:
    """jax.jit asks for a function's hash, and a model that is called may have arrays to hash."""
    by_value = hash_of(kind_of(function)) is not object.__hash__
    return partial(function) if by_value and is_users_object(function) else function


@contextmanager
def _heard(heard: list[tuple[str, str, int]]) -> Generator[None]:
    """Hear what Python warns of, and let it be shown as ever."""
    # What Python showed once it doesn't show again, until the filters change, or seem to: as they do here.
    with warnings.catch_warnings():
        show = warnings.showwarning

        def listen(message: Any, category: Any, filename: str, lineno: int, *rest: Any, **named: Any) -> None:
            at = (filename, lineno) if is_users_file(filename) else _asked_at(filename, lineno)
            heard.append((str(message), *at))
            show(message, category, filename, lineno, *rest, **named)

        warnings.showwarning = listen
        yield


def _asked_at(file: str, line: int) -> tuple[str, int]:
    """The user's line that is running; many warnings of JAX's name a line of its own."""
    frame = inspect.currentframe()
    while frame is not None and not is_users_file(frame.f_code.co_filename):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else (file, line)


def unwrap(function: Any) -> Any:
    """The user's function below jit, partial() and decorators that say what they wrap."""
    for _ in range(100):
        if isinstance(function, partial):
            function = function.func
        elif type(function) is MethodType and is_jitted(function.__func__):
            function = MethodType(unwrap(function.__func__), function.__self__)
        elif type(function) is not MethodType and "__wrapped__" in getattr(function, "__dict__", {}):
            function = function.__wrapped__
        else:
            break
    return function


def _struct(leaf: Any) -> Any:
    return leaf.to_struct() if issubclass(type(leaf), Described) else leaf
