"""compare_targets(): one program, compiled for several kinds of hardware, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan
from typing import Any

from explorer.analysis.cost.kernels import running_nodes
from explorer.capture.call import Call, takes_call
from explorer.capture.explore import explore
from explorer.errors import ExploreError, MissingCompilerError, OptionError
from explorer.executors import Item, distribution
from explorer.hardware.limits import capacity_of
from explorer.hardware.names import parse_target
from explorer.measure.for_target import least_seconds
from explorer.model.capture import Capture
from explorer.model.live_memory import needed_bytes
from explorer.model.results.targets import TargetComparison, TargetResult
from explorer.model.target import Target
from explorer.view.progress_bar import progress_bar


@takes_call
def compare_targets(
    function: Callable[..., Any] | Call,
    /,
    *args: Any,
    targets: Sequence[str | Target],
    executor: Any = None,
    **kwargs: Any,
) -> TargetComparison:
    """Compile a function for several kinds of hardware, none of which need be here, and put them side by side.

    Times are estimates: what the compiler's own model expects of the kernels where it says it, and by published
    figures the least that kernels and links can need, which no run reaches. Memory is what each compiler says.

    Args:
        function: As for `explore`.
        args, kwargs: Its arguments.
        targets: What for: `["h100", "v5e:2x2"]`, of `explorer.targets()`.
        executor: Whose workers compile for the targets beside one another, as for `explorer.sweep`.

    Raises:
        OptionError: `targets` is empty or no list.
        UnknownTargetError: One of them names no hardware that is known.
        ExploreError: The function can't be traced.
        ArgumentsError: The function can't be sent to another process.
        WorkerError: No worker of `executor` can do it.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> compared = explorer.compare_targets(jnp.sin, jnp.ones(8), targets=["h100"])  # doctest: +SKIP
        >>> compared["h100"].fits  # doctest: +SKIP
        True
    """
    __tracebackhide__ = True
    if isinstance(targets, str) or not targets:
        raise OptionError(f"targets is {targets!r}; allowed is a list of them.\n  Hint: targets=['h100', 'v5e:2x2'].")
    call = Call.of(function, args, kwargs)
    meant = [*map(parse_target, targets)]
    if executor is None:
        rows = tuple(_result(call, target) for target in meant)
    else:
        with (
            progress_bar(f"compiling for {len(meant)} targets", None) as notify,
            distribution(executor, _do, (call, meant), "compare_targets", notify) as work,
        ):
            outcomes = work.run([("target", at) for at in range(len(meant))], "compiled")
        rows = tuple(
            outcome.value or TargetResult(str(target), target.device.name, None, outcome.failure)
            for target, outcome in zip(meant, outcomes, strict=True)
        )
    name = next((row.capture.function for row in rows if row.capture is not None), "")
    return TargetComparison(name, rows)


def _do(shared: tuple[Call, Sequence[Target]], item: Item) -> TargetResult:
    """A worker's part."""
    call, targets = shared
    return _result(call, targets[item[1]])


def _result(call: Call, target: Target) -> TargetResult:
    __tracebackhide__ = True
    device = target.device
    try:
        capture = explore(call, target=target)
    except MissingCompilerError as error:
        hint = " ".join(map(str.strip, str(error).splitlines()))  # a line, with the command that installs it
        return TargetResult(str(target), device.name, None, hint, capacity=capacity_of(target).bytes)
    except ExploreError as error:
        if not error.capture.stages:  # it can't be traced, for this target as for any
            raise
        cause = _sentence(error.__cause__ or error)
        return TargetResult(str(target), device.name, error.capture, cause, capacity=capacity_of(target).bytes)
    return _row(capture, target)


def _row(capture: Capture, target: Target) -> TargetResult:
    graph, device = capture.hlo.graph, target.device
    seconds, is_complete = least_seconds(capture, target)
    lines, needed = capture.lines(), needed_bytes(capture.memory)
    return TargetResult(
        target=str(target),
        device=device.name,
        capture=capture,
        memory=0 if isnan(needed) else int(needed),
        capacity=capacity_of(target).bytes,
        kernels=len(running_nodes(graph)),
        flops=lines.flops,
        bytes=lines.bytes,
        wire=capture.collectives.wire,
        seconds=seconds,
        is_complete=is_complete,
    )


def _sentence(error: BaseException) -> str:
    """The first line of what a compiler says, without the hints behind it."""
    return str(error).strip().partition("\n")[0]
