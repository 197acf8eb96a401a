"""explore_all(): many functions, each with its arguments, explored here or by workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from explorer.capture.call import Call
from explorer.capture.explore import explore
from explorer.errors import ArgumentsError, ExploreError, OptionError
from explorer.executors import Item, distribution
from explorer.hardware.names import parse_target
from explorer.model.capture import Capture
from explorer.model.stage import Durations
from explorer.model.target import Target
from explorer.view.progress_bar import progress_bar

_Shared = tuple[tuple[Call, ...], Target | None, bool]


def explore_all(
    calls: Mapping[str, Call],
    /,
    *,
    record: bool = False,
    target: str | Target | None = None,
    executor: Any = None,
    progress: bool | None = None,
) -> dict[str, Capture]:
    """Explore many functions, to save their captures or to compare them with others.

    Args:
        calls: By name, each function with its arguments: `{"loss": ex.Call(loss, params, batch)}`.
        record: Read each one's passes, however large the program is.
        target: Hardware to compile for, as for `explorer.explore`.
        executor: An executor whose workers explore in parallel, as for `explorer.sweep`.
        progress: Show a bar after a second; None shows it where a person can see it.

    Returns:
        The capture of each. One that failed has the stages before the failure, and the reason in `failure`.

    Raises:
        ArgumentsError: `calls` is no dict of `explorer.Call`, or a call can't be sent to another process.
        OptionError: `calls` is empty, or `executor` is no executor.
        UnknownTargetError: `target` names no known hardware.
        WorkerError: No worker of `executor` can do it.

    Example:
        >>> import explorer as ex, jax.numpy as jnp
        >>> ex.explore_all({"sin": ex.Call(jnp.sin, jnp.ones(8)), "cos": ex.Call(jnp.cos, jnp.ones(8))})
        {'sin': Capture(sin: jaxpr → stablehlo → hlo), 'cos': Capture(cos: jaxpr → stablehlo → hlo)}
    """
    __tracebackhide__ = True
    given: Any = calls
    if not isinstance(given, Mapping) or not all(isinstance(call, Call) for call in cast("Any", given).values()):
        raise ArgumentsError(
            "explore_all takes a dict of functions, each with its arguments.\n"
            "  Hint: explore_all({'f': explorer.Call(f, x)})."
        )
    if not calls:
        raise OptionError("explore_all got an empty dict.\n  Hint: explore_all({'f': explorer.Call(f, x)}).")
    shared: _Shared = (*calls.values(),), None if target is None else parse_target(target), record
    items: list[Item] = [("explore", at) for at in range(len(calls))]
    with progress_bar(f"exploring {len(calls):,} functions", progress) as notify:
        if executor is None:
            captures: list[Capture] = []
            for name, item in zip(calls, items, strict=True):
                notify(item[1] / len(items), name)
                captures.append(_explore(shared, item))
            return dict(zip(calls, captures, strict=True))
        with distribution(executor, _explore, shared, "explore_all", notify) as work:
            outcomes = work.run(items, "explored")
    return {
        name: outcome.value or Capture(name, "", (), Durations(), failure=outcome.failure)
        for name, outcome in zip(calls, outcomes, strict=True)
    }


def _explore(shared: _Shared, item: Item) -> Capture:
    calls, target, record = shared
    try:
        capture = explore(calls[item[1]], target=target)
    except ExploreError as error:
        cause = str(error.__cause__ or error).strip().partition("\n")[0]
        return replace(error.capture, failure=f"{error.capture.failure}: {cause}")
    if record and (capture.read_passes or capture.record) is not None:
        _ = capture.passes
    return capture
