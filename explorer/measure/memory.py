"""memory(): the memory that a compiled function needs, and the largest size that fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import jax

from explorer.capture.backends import Backend, HereBackend, backend_of
from explorer.capture.call import Call, takes_call
from explorer.capture.explore import Compilation, CompileRequest, Explored, compile_stages, struct_of
from explorer.errors import ArgumentsError, NotCallableError, OptionError
from explorer.hardware.limits import capacity_of, read_overflow
from explorer.hardware.names import parse_target
from explorer.measure.arguments import abstract_maker, flattened, is_described, ranges_of, sized_maker
from explorer.measure.calls import name_of, refuse_target
from explorer.measure.compiled_subject import error_line
from explorer.measure.grid import Point, PointCall, grid_of
from explorer.measure.machine import default_device, memory_bytes
from explorer.measure.own_process import peak_of_process
from explorer.measure.targets import capacity_note, target_notes
from explorer.model.capture import Capture
from explorer.model.results.memory_use import Largest, MemoryRow, MemoryUse, fitted_size
from explorer.model.target import Target

_TRIES = 20  # compilations to find the largest size that fits
_ABSURD = 1 << 44  # bytes of arguments that are too many even if the limit is unknown
_PATIENCE = 10.0  # seconds of compiling, after which no other size is begun
_FARTHEST = 1 << 40  # sizes beyond are no answer
_WORTH_A_PROCESS = 10_000_000  # bytes: what a process grows by is known to about a tenth of them
_PATIENCE_UNASKED, _PATIENCE_ASKED = 20.0, 600.0  # seconds that a program may run in a process of its own
_OF_EXECUTABLE = "the runtime's own memory is measured for a function: explorer.memory(function, *arguments)"


@takes_call
def memory(
    function: Callable[..., Any] | Call,
    /,
    *given: Any,
    over: Mapping[str, Iterable[Any]] | None = None,
    args: Callable[..., Any] | None = None,
    limit: int | None = None,
    measure: bool | None = None,
    target: str | Target | None = None,
    **named: Any,
) -> MemoryUse:
    """Return how much memory a function needs once compiled, and whether that is available.

    The function is compiled but not run in this process. Shapes are enough, and sizes that don't fit are allowed. If
    the arguments alone exceed the memory, nothing is compiled. The compiler's plan is a lower bound: the runtime and
    its libraries take more, for example to sort or convolve. On a CPU that is measured: the program runs once, on
    ones, in a subprocess, and `row.measured` is its arguments plus the growth of that process, accurate to about 1 MB.

    If one number is varied, the largest size that fits is searched: a curve through known sizes predicts it, and
    compiling verifies it, as memory may grow in steps.

    Args:
        function: Any callable, a `jax.jit` function, or an `Executable`.
        given, named: Its arguments: arrays, `jax.ShapeDtypeStruct`, or `InputInfo`, whose ranges are varied from least
            to largest. For a keyword that is also an option here, see `explorer.Call`.
        over: The values of each name, as for `explorer.sweep`.
        args: Makes the arguments of a point from its values. Arrays that JAX makes there take no memory.
        limit: Available bytes; None reads the device's memory, on a CPU the machine's.
        measure: Run the program in a subprocess, which takes some seconds. None does so for one size on a CPU that
            needs 10 MB or more, with a timeout of 20 s; True for each size, with a timeout of 10 minutes. A program
            that would take more than half of the free memory is not run, and `notes` say so.
        target: Hardware to compile for, present or not, as for `explorer.explore`. A TPU's compiler refuses a program
            that doesn't fit. For a GPU, the limit is what XLA's allocator takes: three quarters of the published
            memory.

    Raises:
        NotCallableError: `function` or `args` can't be called.
        OptionError: A name of `over` is unknown or has no values; `limit` is out of range; or `measure=True` with a
            `target`.
        UnknownTargetError, MissingCompilerError: As for `explore`.
        ArgumentsError: The function can't take these arguments.
        ExploreError: Nothing is varied, and the function can't be compiled.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> use = explorer.memory(lambda x: x @ x, over={"n": [256, 512]}, args=lambda n: jnp.ones((n, n)), limit=10**9)
        >>> [row.uses["argument"] for row in use], use.largest.name, use.fits(use.rows[0])
        ([262144, 1048576], 'n', True)
    """
    __tracebackhide__ = True
    call = Call.of(function, given, named)
    function, given, named = call.function, call.args, call.kwargs
    if not callable(function):
        raise NotCallableError(
            f"memory takes a function and its arguments; it got {type(function).__name__}. "
            "Hint: write memory(f, x), not memory(f(x))."
        )
    meant = None if target is None else parse_target(target)
    use, backend = _empty_use(function, meant, limit), backend_of(meant)
    if meant is not None:
        if measure:
            refuse_target("memory(measure=True)", target, f"memory(f, x, target={str(meant)!r})")
        measure = False
    if over is None:
        if args is not None:
            raise OptionError("args= makes the arguments of each point of over=, which is not given.")
        ranges = ranges_of(given)
        if not ranges:
            return _single_size(use, function, given, named, measure, backend)
        over = {name: sorted({*sizes}) for name, sizes in ranges.items()}
        given, args = (), sized_maker(given)
    maker = args if args is None or not callable(args) else abstract_maker(args)
    points = _Points(function, given, named, maker, use.limit or _ABSURD, bool(measure), backend)
    grid = grid_of(function, given, named, over, maker, "memory")
    rows = [points.row(point.at, grid.values(point), point) for point in grid.points]
    use = replace(use, axes=grid.axes, rows=rows, notes=tuple(dict.fromkeys((*use.notes, *points.notes))))
    return _with_largest(use, points)


def _empty_use(function: Callable[..., Any], target: Target | None, limit: int | None) -> MemoryUse:
    """Return a result without rows, with the available memory as `limit`.

    Its `device` has that memory; it is empty if the caller gave the limit.
    """
    __tracebackhide__ = True
    notes = [*target_notes(target)]
    device, available = check_limit(limit) or ("", 0)
    if target is None and limit is None:
        device, available = here()
    elif target is not None and limit is None:
        device = target.device.name if target.platform == "tpu" else f"XLA's allocator on {target.device.name}"
        available = capacity_of(target).bytes
        notes.append(capacity_note(target))
    return MemoryUse(name_of(function), "", (), (), device, available, notes=notes)


def check_limit(limit: int | None) -> tuple[str, int] | None:
    """Return ("", limit), or None if `limit` is None; raise OptionError unless it is a positive number of bytes."""
    __tracebackhide__ = True
    if limit is not None and (type(limit) is not int or limit <= 0):
        raise OptionError(
            f"limit is {limit!r}; allowed is a number of bytes above 0, or None for the memory of the device."
        )
    return None if limit is None else ("", limit)


def _single_size(
    use: MemoryUse,
    function: Callable[..., Any],
    given: Sequence[Any],
    named: dict[str, Any],
    measure: bool | None,
    backend: Backend,
) -> MemoryUse:
    """Return `use` with one row: the memory for the given arguments."""
    __tracebackhide__ = True
    described: object = function
    if isinstance(described, Explored) and not given and not named and isinstance(backend, HereBackend):
        capture = described.explore()
        row, note = _with_plan(MemoryRow((), {}), capture), _OF_EXECUTABLE if measure else ""
    else:
        compilation = compile_point(function, PointCall(function, tuple(given), named, {}), backend)
        capture = compilation.capture
        row, note = _with_plan(MemoryRow((), {}), capture), ""
        if measure or (measure is None and row.needed >= _WORTH_A_PROCESS):
            row, note = _with_measured(row, compilation.compiled, _PATIENCE_ASKED if measure else _PATIENCE_UNASKED)
    return replace(use, signature=capture.signature, rows=[row], notes=(*use.notes, *filter(None, [note])))


def _with_measured(row: MemoryRow, compiled: Any, patience: float) -> tuple[MemoryRow, str]:
    """Return the row with the bytes that the program took in a subprocess, and a note ("" for none); the row is
    unchanged where that can't be measured.
    """
    if default_device().platform != "cpu":
        return row, "the runtime's own memory is measured on a CPU only"
    if math.isnan(row.needed):
        return row, ""
    peak = peak_of_process(compiled, row.uses.get("argument", 0), int(row.needed), patience)
    return (replace(row, measured=float(peak.bytes)) if peak.bytes else row), peak.note


def compile_point(function: Callable[..., Any], made: PointCall, backend: Backend) -> Compilation:
    """Compile a function for the arguments and options of a point; return the compilation."""
    __tracebackhide__ = True
    shapes = jax.tree.map(struct_of, (made.args, made.kwargs), is_leaf=is_described)
    options = made.options or None
    request = CompileRequest(function, *shapes, target=made.function, options=options, verb="compiled")
    return compile_stages(replace(request, backend=backend))


def _with_plan(row: MemoryRow, capture: Capture) -> MemoryRow:
    """Return the row with the bytes that the compiler planned, or with an error if it reports none."""
    try:
        memory = capture.live_memory
        live = float(memory.peak) if memory.is_scheduled else math.nan
    except Exception:  # a text that runs in no order that can be followed: XLA's own figures are still there
        live = math.nan
    constants = sum(constant.bytes for constant in capture.constants)
    error = "" if capture.memory else "the compiler reports no figure"
    return replace(row, uses=capture.memory, constants=constants, live=live, capture=capture, error=error)


@dataclass
class _Points:
    """Maker of a function's memory rows at different sizes."""

    function: Callable[..., Any]
    given: Sequence[Any]
    named: Mapping[str, Any]
    args: Callable[..., Any] | None
    limit: int
    measure: bool
    backend: Backend
    notes: list[str] = field(default_factory=list[str])

    def row(self, at: tuple[int, ...], values: Mapping[str, float | str], point: Point) -> MemoryRow:
        __tracebackhide__ = True
        row = MemoryRow(at, values)
        try:
            made = point.make()
            leaves = map(struct_of, flattened((made.args, made.kwargs))[0])
            arrays = [leaf for leaf in leaves if hasattr(leaf, "shape") and hasattr(leaf, "dtype")]
            given = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in arrays)
            if given > self.limit:  # XLA may end the process over sizes that overflow its numbers
                return replace(row, uses={"argument": given}, is_least=True)
            compilation = compile_point(self.function, made, self.backend)
            row = _with_plan(row, compilation.capture)
            if self.measure:
                row, note = _with_measured(row, compilation.compiled, _PATIENCE_ASKED)
                self.notes += filter(None, [note])
            return row
        except ArgumentsError:  # it is the same at every point, so the caller should know at once
            raise
        except Exception as error:  # the next size may compile
            overflow = read_overflow(str(error.__cause__ or error))
            if overflow is not None:  # the compiler's verdict counts, even if the figures are below the limit
                return replace(row, uses={"argument": max(overflow.needed, self.limit + 1)}, is_least=True)
            return replace(row, error=error_line(error))

    def at(self, name: str, size: int) -> MemoryRow:
        """Return the row of one further size of the varied `name`, compiled now."""
        grid = grid_of(self.function, self.given, self.named, {name: [size]}, self.args, "memory")
        return self.row((), {name: size}, grid.points[0])


def _with_largest(use: MemoryUse, points: _Points) -> MemoryUse:
    """Return `use` with the largest size that fits; unchanged unless one size is varied and memory depends on it."""
    axis, limit = use.axes[0], use.limit
    needed = _needed_by_size(use) if limit else {}
    if not needed or len({*needed.values()}) == 1 < len(needed):
        return use
    predicted = fitted_size(list(needed), list(needed.values()), limit)
    tried, note = _compile_towards(needed, limit, lambda size: points.at(axis.name, size), axis.name)
    size = max((size for size, bytes_ in needed.items() if bytes_ <= limit), default=0)
    too_large = min((other for other in needed if other > size), default=None)
    largest = Largest(axis.name, size, needed.get(size, math.nan), predicted, too_large)
    notes = [*use.notes, *filter(None, [note])]
    if tried and not largest.is_exact:
        near = f"the step is between {size:,} and {too_large:,}" if too_large else "nothing larger was tried"
        notes.append(f"the largest {axis.name} was looked for with {tried} compilations: {near}")
    return replace(use, largest=largest, notes=tuple(notes))


def _needed_by_size(use: MemoryUse) -> dict[int, float]:
    """Return the known bytes by size if only one size (a whole number above 0) is varied; else an empty dict."""
    axis = use.axes[0]
    if len(use.axes) != 1 or axis.unit or axis.numbers is None:
        return {}
    if not all(number.is_integer() and number > 0 for number in axis.numbers):
        return {}
    rows = zip(axis.numbers, use.rows, strict=True)
    return {int(number): row.needed for number, row in rows if not math.isnan(row.needed)}


def _compile_towards(
    needed: dict[int, float], limit: float, row_of: Callable[[int], MemoryRow], name: str
) -> tuple[int, str]:
    """Compile further sizes until the largest that fits is known or time is up; add them to `needed`.

    Each guess comes from a curve through the known sizes. Memory may grow in steps that no curve predicts: after a
    guess that didn't halve the gap, the middle is tried, so that the search ends like a bisection.

    Returns:
        The number of sizes compiled, and a note if one can't be compiled.
    """
    gap, began = math.inf, perf_counter()
    for tried in range(_TRIES):
        before, gap = gap, _gap(needed, limit)
        size = _next(needed, limit, halve=tried > 1 and gap > before / 2)
        if size is None or perf_counter() - began >= _PATIENCE:
            return tried, ""
        row = row_of(size)
        if math.isnan(row.needed):
            return tried + 1, f"{name} = {size:,}, which might fit, can't be compiled: {row.error}"
        needed[size] = row.needed
    return _TRIES, ""


def _gap(needed: Mapping[int, float], limit: float) -> float:
    """Return the distance from the largest size that fits, or 0, to the next larger size compiled, or 2**40."""
    below = max((size for size, bytes_ in needed.items() if bytes_ <= limit), default=0)
    return min((size for size in needed if size > below), default=_FARTHEST) - below


def _next(needed: Mapping[int, float], limit: float, halve: bool = False) -> int | None:
    """Return the next size to compile, by a curve or the middle of the gap (`halve`); None if the answer is exact, or
    if no known size is too large and the curve has no end.
    """
    below = max((size for size, bytes_ in needed.items() if bytes_ <= limit), default=0)
    above = below + int(_gap(needed, limit))
    if above - below <= 1:
        return None
    # Only near sizes, because farther away memory may grow in another way.
    near = sorted(needed, key=lambda size: abs(needed[size] - limit))[:3]
    guess = fitted_size(near, [needed[size] for size in near], limit)
    if math.isnan(guess) or guess >= _FARTHEST:
        return None if above == _FARTHEST else (below + above) // 2
    if halve and above < _FARTHEST:
        return (below + above) // 2
    # If the guess fits, the next size shows whether it is the largest.
    return below + 1 if guess < below + 1 else min(math.floor(guess), above - 1)


def here() -> tuple[str, int]:
    """Return the name of the default device and the bytes that a program may use there; 0 if unknown."""
    device = default_device()
    if device.platform == "cpu":
        return "this machine", memory_bytes()
    try:
        return str(device.device_kind), int(device.memory_stats()["bytes_limit"])
    except Exception:  # a backend without it raises whatever it likes
        return str(device.device_kind), 0
