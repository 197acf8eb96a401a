"""memory(): how much memory a compiled function needs, of how much there is, and the largest size that fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from time import perf_counter
from typing import Any

import jax

from explorer.capture.call import Call, takes_call
from explorer.capture.explore import Compilation, CompileRequest, Described, Explored, compile_stages
from explorer.errors import ArgumentsError, NotCallableError, OptionError
from explorer.measure.abstract import abstract_arguments
from explorer.measure.compiled_subject import error_line
from explorer.measure.device import default_device
from explorer.measure.grid import Point, PointCall, grid_of
from explorer.measure.machine import memory_bytes
from explorer.measure.naming import struct_of
from explorer.measure.own_process import peak_of_process
from explorer.measure.subject import name_of
from explorer.model.capture import Capture
from explorer.model.results.axis import Axis
from explorer.model.results.memory_use import Largest, MemoryRow, MemoryUse, fitted_size

_tree: Any = jax.tree  # whose functions have no types
_TRIES = 20  # compilations to find the largest size that fits
_ABSURD = 1 << 44  # bytes of arguments, where nobody tells the limit
_PATIENCE = 10.0  # seconds of them, after which no other one is begun
_FARTHEST = 1 << 40  # sizes beyond are no answer
_WORTH_A_PROCESS = 10_000_000  # bytes: what a process grows by is known to about a tenth of them
_PATIENCE_UNASKED, _PATIENCE_ASKED = 20.0, 600.0  # seconds that a program may run in a process of its own
_OF_EXECUTABLE = "what the runtime takes besides is measured of a function: explorer.memory(function, *arguments)"


@takes_call
def memory(
    function: Callable[..., Any] | Call,
    /,
    *given: Any,
    over: Mapping[str, Iterable[Any]] | None = None,
    args: Callable[..., Any] | None = None,
    limit: int | None = None,
    measure: bool | None = None,
    **named: Any,
) -> MemoryUse:
    """Tell how much memory a function needs once it is compiled, and whether that is there.

    It is compiled and not run here: shapes are enough, and sizes that don't fit can be asked for. Where the arguments
    alone are more than there is, it isn't compiled either. What the compiler planned is what buffers take: a lower
    bound, as it doesn't know what the runtime and its libraries take besides while they sort or convolve. On a CPU that
    is measured: the compiled program runs once, on ones for its arguments, in a process of its own, and `row.measured`
    is its arguments and what that process grew by, to about 1 MB. Your own process stays as it is.

    Where one number is varied, the largest that fits is looked for: first by what a curve through the sizes before
    says, and then by compiling for it, as memory may take a step anywhere.

    Args:
        function: Any callable, a `jax.jit` function, or an `Executable`.
        given, named: Its arguments: arrays, `jax.ShapeDtypeStruct`, or `InputInfo`, whose ranges are varied from their
            smallest to their largest. A keyword that is a parameter of the function is given to it, whatever stands
            below: see `explorer.Call`.
        over: The values of each name, as for `explorer.sweep`.
        args: Makes the arguments of a point from its values; arrays that JAX makes there take no memory.
        limit: Bytes that there are; what the device tells if None, of a CPU the machine's memory.
        measure: Whether to run it in a process of its own, which takes some seconds more. If None, that is done for one
            size on a CPU, where it needs 10 MB or more, and ended after 20 s; if True for each size, and ended after
            10 minutes. What would take more than half of the memory that is free is not run, and `notes` say so.

    Raises:
        NotCallableError: `function` or `args` can't be called.
        OptionError: A name of `over` is nothing here, or has no values; or `limit` is none.
        ArgumentsError: The function can't take these arguments.
        ExploreError: Nothing is varied, and the function can't be compiled.

    Example:
        >>> import jax.numpy as jnp
        >>> use = memory(lambda x: x @ x, over={"n": [256, 512]}, args=lambda n: jnp.ones((n, n)), limit=10**9)
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
    if limit is not None and (type(limit) is not int or limit <= 0):
        raise OptionError(f"limit is {limit!r}; allowed is a number of bytes above 0, or None for what there is.")
    device, there = _device() if limit is None else ("", limit)
    use = MemoryUse(name_of(function), "", (), (), device, there)
    if over is None:
        if args is not None:
            raise OptionError("args= makes the arguments of each point of over=, which is not given.")
        ranges = _ranges(given, named)
        if ranges is None:
            return _single_size(use, function, given, named, measure)
        over, given, named, args = ranges
    maker = args if args is None or not callable(args) else _abstract_maker(args)
    points = _Points(function, given, named, maker, use.limit or _ABSURD, bool(measure))
    grid = grid_of(function, given, named, over, maker, "memory")
    rows = [points.row(point.at, _values(grid.axes, point.at), point) for point in grid.points]
    use = replace(use, axes=grid.axes, rows=rows, notes=tuple(dict.fromkeys(points.notes)))
    return _with_largest(use, points)


def _single_size(
    use: MemoryUse, function: Callable[..., Any], given: Sequence[Any], named: dict[str, Any], measure: bool | None
) -> MemoryUse:
    """The memory for the arguments as they are."""
    __tracebackhide__ = True
    described: object = function
    if isinstance(described, Explored) and not given and not named:
        capture = described.explore()
        row, note = _with_plan(MemoryRow((), {}), capture), _OF_EXECUTABLE if measure else ""
    else:
        compilation = _compiled(function, PointCall(function, tuple(given), named, {}))
        capture = compilation.capture
        row, note = _with_plan(MemoryRow((), {}), capture), ""
        if measure or (measure is None and row.needed >= _WORTH_A_PROCESS):
            row, note = _with_measured(row, compilation.compiled, _PATIENCE_ASKED if measure else _PATIENCE_UNASKED)
    return replace(use, signature=capture.signature, rows=[row], notes=(note,) if note else ())


def _with_measured(row: MemoryRow, compiled: Any, patience: float) -> tuple[MemoryRow, str]:
    """The row with what a process of its own took, and what there is to say of that."""
    if default_device().platform != "cpu":
        return row, "what the runtime takes besides is measured on a CPU alone"
    if math.isnan(row.needed):
        return row, ""
    peak = peak_of_process(compiled, row.uses.get("argument", 0), int(row.needed), patience)
    return (replace(row, measured=float(peak.bytes)) if peak.bytes else row), peak.note


def _compiled(function: Callable[..., Any], made: PointCall) -> Compilation:
    __tracebackhide__ = True
    shapes = jax.tree.map(struct_of, (made.args, made.kwargs), is_leaf=_is_described)
    options = made.options or None
    request = CompileRequest(function, *shapes, target=made.function, options=options, verb="compiled")
    return compile_stages(request)


def _with_plan(row: MemoryRow, capture: Capture) -> MemoryRow:
    """The row with the bytes that the compiler planned."""
    try:
        memory = capture.live_memory
        live = float(memory.peak) if memory.is_scheduled else math.nan
    except Exception:  # a text that runs in no order that can be followed: XLA's own figures are still there
        live = math.nan
    constants = sum(constant.bytes for constant in capture.constants)
    error = "" if capture.memory else "the compiler doesn't tell"
    return replace(row, uses=capture.memory, constants=constants, live=live, capture=capture, error=error)


def _values(axes: Sequence[Axis], at: Sequence[int]) -> dict[str, float | str]:
    values: dict[str, float | str] = {}
    for axis, i in zip(axes, at, strict=True):
        number = axis.numbers[i] if axis.numbers is not None and not axis.unit else math.nan
        values[axis.name] = axis.labels[i] if math.isnan(number) else int(number) if number.is_integer() else number
    return values


class _Points:
    """A function at one size or another."""

    def __init__(
        self,
        function: Callable[..., Any],
        given: Sequence[Any],
        named: Mapping[str, Any],
        args: Callable[..., Any] | None,
        limit: int,
        measure: bool,
    ) -> None:
        self.function, self.given, self.named, self.args, self.limit = function, given, named, args, limit
        self.measure = measure
        self.notes: list[str] = []

    def row(self, at: tuple[int, ...], values: Mapping[str, float | str], point: Point) -> MemoryRow:
        __tracebackhide__ = True
        row = MemoryRow(at, values)
        try:
            made = point.make()
            given = _bytes_of((made.args, made.kwargs))
            if given > self.limit:  # XLA may end the process over sizes that overflow its numbers
                return replace(row, uses={"argument": given}, is_least=True)
            compilation = _compiled(self.function, made)
            row = _with_plan(row, compilation.capture)
            if self.measure:
                row, note = _with_measured(row, compilation.compiled, _PATIENCE_ASKED)
                self.notes += filter(None, [note])
            return row
        except ArgumentsError:  # the same at every point, and the caller's to know at once
            raise
        except Exception as error:  # what can't be compiled at this size may be at the next
            return replace(row, error=error_line(error))

    def at(self, name: str, size: int) -> MemoryRow:
        """The row of a size that was not asked for."""
        grid = grid_of(self.function, self.given, self.named, {name: [size]}, self.args, "memory")
        return self.row((), {name: size}, grid.points[0])


def _with_largest(use: MemoryUse, points: _Points) -> MemoryUse:
    """With the largest size that fits, where one number is varied and what is needed depends on it."""
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
    """Bytes by size, where one number is varied that is a size: whole and above 0."""
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
    """Compile for further sizes until the largest that fits is known, or time is up; `needed` is added to.

    Each guess comes from a curve through the sizes before. Memory may take a step anywhere, where no curve comes near:
    so a guess that didn't halve the gap is followed by the middle of it, and the search ends like a bisection.

    Returns:
        How many sizes were compiled for, and a note where one can't be.
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
    """How far the largest size that fits and the smallest one that doesn't are apart."""
    below = max((size for size, bytes_ in needed.items() if bytes_ <= limit), default=0)
    return min((size for size in needed if size > below), default=_FARTHEST) - below


def _next(needed: Mapping[int, float], limit: float, halve: bool = False) -> int | None:
    """The size to compile for next: where a curve through the sizes before meets the limit; None if that is exact.

    Args:
        needed: Bytes, by size.
        limit: The bytes that there are.
        halve: Whether to try the middle instead, as where the curve has a step that no guess comes near.
    """
    below = max((size for size, bytes_ in needed.items() if bytes_ <= limit), default=0)
    above = below + int(_gap(needed, limit))
    if above - below <= 1:
        return None
    near = sorted(needed, key=lambda size: abs(needed[size] - limit))[:3]
    guess = fitted_size(near, [needed[size] for size in near], limit)
    if math.isnan(guess) or guess >= _FARTHEST:
        return None if above == _FARTHEST else (below + above) // 2
    if halve and above < _FARTHEST:
        return (below + above) // 2
    # Where the guess fits already, the next one says whether it is the largest.
    return below + 1 if guess < below + 1 else min(math.floor(guess), above - 1)


def _abstract_maker(args: Callable[..., Any]) -> Callable[..., Any]:
    """The same callable, whose arrays are shapes: sizes that don't fit can be asked for."""

    @wraps(args)
    def shapes(**values: Any) -> Any:
        return abstract_arguments(args, values)

    return shapes


def _ranges(
    given: Sequence[Any], named: dict[str, Any]
) -> tuple[dict[str, list[int]], tuple[()], dict[str, Any], Callable[..., Any]] | None:
    """What varies in `InputInfo`s, from the smallest size to the largest; None where nothing does."""
    leaves: list[Any]
    leaves, tree = _flattened(tuple(given))
    ranges: dict[str, tuple[int, int, int]] = {}
    for number, leaf in enumerate(leaves):
        for axis, size in enumerate(_shape(leaf)):
            if not isinstance(size, int):
                low, opt, high = (size.min, size.opt, size.max)
                if high > low:
                    ranges[_size_name(size, number, axis)] = (max(low, 1), opt, high)
    if not ranges:
        return None
    varied = {name: sorted({low, max(opt, low), high}) for name, (low, opt, high) in ranges.items()}
    return varied, (), named, partial(_sized, leaves, tree)


def _flattened(arguments: Any) -> tuple[list[Any], Any]:
    return _tree.flatten(arguments, is_leaf=_is_described)


def _bytes_of(arguments: Any) -> int:
    """Of all arrays."""
    sizes = [
        (getattr(leaf, "shape", None), getattr(leaf, "dtype", None))
        for leaf in map(struct_of, _flattened(arguments)[0])
    ]
    return sum(math.prod(shape) * dtype.itemsize for shape, dtype in sizes if shape is not None and dtype is not None)


def _is_described(leaf: object) -> bool:
    return isinstance(leaf, Described)


def _shape(leaf: Any) -> Sequence[Any]:
    """Of what describes an array, its sizes: numbers, and ranges of them."""
    return getattr(leaf, "shape", ()) if isinstance(leaf, Described) else ()


def _sized(leaves: Sequence[Any], tree: Any, **sizes: int) -> Any:
    """The arguments at these sizes."""
    return jax.tree.unflatten(tree, [_leaf_sized(leaf, number, sizes) for number, leaf in enumerate(leaves)])


def _leaf_sized(leaf: Any, number: int, sizes: Mapping[str, int]) -> Any:
    if not isinstance(leaf, Described):
        return leaf
    struct = leaf.to_struct()
    sized = [
        size if isinstance(size, int) else sizes.get(_size_name(size, number, axis), size.opt)
        for axis, size in enumerate(_shape(leaf))
    ]
    return jax.ShapeDtypeStruct(tuple(sized), struct.dtype, sharding=struct.sharding)


def _size_name(size: Any, number: int, axis: int) -> str:
    """`batch`, or of a range without a name `arg0.shape[1]`."""
    return getattr(size, "name", f"arg{number}.shape[{axis}]")


def _device() -> tuple[str, int]:
    """Where a program would run, and how many bytes it may use there; 0 where nobody tells."""
    device = default_device()
    if device.platform == "cpu":
        return "this machine", memory_bytes()
    try:
        return str(device.device_kind), int(device.memory_stats()["bytes_limit"])
    except Exception:  # a backend without it raises whatever it likes
        return str(device.device_kind), 0
