"""Programs for hardware that isn't here: what is known of them, what can't be measured, and compare_targets()."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from explorer.analysis.kernel_costs import running_nodes
from explorer.analysis.least_time import copies_beside, least_times
from explorer.capture.call import Call, takes_call
from explorer.capture.explore import explore
from explorer.errors import ExploreError, MissingCompilerError, OptionError
from explorer.executors import Item, distribution
from explorer.hardware.limits import capacity_of
from explorer.hardware.names import parse_target, peaks_of
from explorer.measure.calls import refuse_target
from explorer.model.capture import Capture
from explorer.model.live_memory import needed_bytes
from explorer.model.results.targets import TargetComparison, TargetResult
from explorer.model.target import Target
from explorer.model.units import bytes_text
from explorer.view.progress_bar import progress_bar


def check_time(verb: str, time: bool | None, target: Target | None) -> bool:
    """Return True if the compiled program is to be run: `time`, or if None, if there is no target.

    Raises:
        OptionError: `time` is True with a target.
    """
    __tracebackhide__ = True
    if time and target is not None:
        refuse_target(f"{verb}(time=True)", target, f"{verb}(…, target={str(target)!r}) without it")
    return target is None if time is None else time


def least_seconds(capture: Capture, target: Target) -> tuple[float, bool]:
    """Return (least seconds by published figures, True if those of every kernel and link are known).

    The seconds are NaN if none are known.
    """
    if not target.device.bandwidth:  # a CPU's figures are those of its machine
        return math.nan, False
    graph = capture.hlo.graph
    times = least_times(graph, peaks_of(target.device))
    copies = copies_beside(graph)
    rows = capture.collectives
    links = [row.seconds * row.runs for row in rows if row.seconds is not None]
    is_complete = len(links) == len(rows) and not bool(np.isnan(times).any())
    kernels, beside = float(np.nansum(times[~copies])), float(np.nansum(times[copies]))
    # Copies run at the same time as kernels.
    total = max(kernels, beside) + math.fsum(links)
    return (total if total > 0 or is_complete else math.nan), is_complete


def target_notes(target: Target | None) -> Sequence[str]:
    """Return the note that a result was compiled for other hardware; empty without a target."""
    if target is None:
        return ()
    caveat = f"; {target.caveat}" if target.caveat else ""
    return (f"compiled for {target.device.name} ({target}) by its own compiler, without the hardware here{caveat}",)


def capacity_note(target: Target) -> str:
    """Return a note on what decides whether a program fits into a target's memory: its compiler, or a figure."""
    capacity = capacity_of(target)
    if not capacity.bytes or capacity.is_compilers:
        return f"whether it fits: {capacity.basis}"
    return f"this compiler doesn't check whether it fits: {bytes_text(capacity.bytes)} is {capacity.basis}"


@takes_call
def compare_targets(
    function: Callable[..., Any] | Call,
    /,
    *args: Any,
    targets: Sequence[str | Target],
    executor: Any = None,
    **kwargs: Any,
) -> TargetComparison:
    """Compile a function for several kinds of hardware, present or not, and compare the results.

    Times are estimates: the compiler's own model of the kernels if it has one, and by published figures the least time
    of kernels and links, which no run reaches. Memory is each compiler's figure.

    Args:
        function: As for `explore`.
        args, kwargs: Its arguments.
        targets: Names of hardware, as `["h100", "v5e:2x2"]`; see `explorer.targets()`.
        executor: Workers that compile for the targets in parallel, as for `explorer.sweep`.

    Raises:
        OptionError: `targets` is empty or no list.
        UnknownTargetError: A target is unknown.
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
        rows = tuple(_result((call, meant), ("target", at)) for at in range(len(meant)))
    else:
        with (
            progress_bar(f"compiling for {len(meant)} targets", None) as notify,
            distribution(executor, _result, (call, meant), "compare_targets", notify) as work,
        ):
            outcomes = work.run([("target", at) for at in range(len(meant))], "compiled")
        rows = tuple(
            outcome.value or TargetResult(str(target), target.device.name, None, outcome.failure)
            for target, outcome in zip(meant, outcomes, strict=True)
        )
    name = next((row.capture.function for row in rows if row.capture is not None), "")
    return TargetComparison(name, rows)


def _result(shared: tuple[Call, Sequence[Target]], item: Item) -> TargetResult:
    __tracebackhide__ = True
    call, target = shared[0], shared[1][item[1]]
    name, capacity = target.device.name, capacity_of(target).bytes
    try:
        capture = explore(call, target=target)
    except MissingCompilerError as error:
        hint = " ".join(map(str.strip, str(error).splitlines()))  # a line, with the command that installs it
        return TargetResult(str(target), name, None, hint, capacity=capacity)
    except ExploreError as error:
        if not error.capture.stages:  # it can't be traced, for this target as for any
            raise
        cause = str(error.__cause__ or error).strip().partition("\n")[0]  # without the compiler's hints
        return TargetResult(str(target), name, error.capture, cause, capacity=capacity)
    seconds, is_complete = least_seconds(capture, target)
    lines, needed = capture.lines(), needed_bytes(capture.memory)
    return TargetResult(
        target=str(target),
        device=name,
        capture=capture,
        memory=0 if math.isnan(needed) else int(needed),
        capacity=capacity,
        kernels=len(running_nodes(capture.hlo.graph)),
        flops=lines.flops,
        bytes=lines.bytes,
        wire=capture.collectives.wire,
        seconds=seconds,
        is_complete=is_complete,
    )
