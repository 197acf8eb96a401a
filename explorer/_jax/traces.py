"""Non-public facts of a trace: the whole Python stack of an equation, inner jaxprs, foreign tracers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from hashlib import blake2b
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import jax
from jax.core import Tracer
from jax.sharding import Sharding

from explorer._jax.dispatch import internals
from explorer.model.graph import Frame

try:
    # `jax.extend.core` has these too. But `jax.extend` loads Pallas, whose settings are in the cache keys of JAX 0.12:
    # each function that had compiled would compile once more.
    from jax._src.core import Literal as Literal  # pyright: ignore
    from jax._src.core import Var as Var  # pyright: ignore
    from jax._src.core import get_opaque_trace_state as get_opaque_trace_state  # pyright: ignore
    from jax._src.core import jaxpr_as_fun as jaxpr_as_fun  # pyright: ignore
except ImportError:  # pragma: no cover - another JAX keeps them elsewhere
    from jax.extend.core import Literal as Literal
    from jax.extend.core import Var as Var
    from jax.extend.core import get_opaque_trace_state as get_opaque_trace_state  # pyright: ignore
    from jax.extend.core import jaxpr_as_fun as jaxpr_as_fun

try:
    # Public `source_info_util.summarize` gives one frame as text; the links need the whole stack with columns.
    from jax._src.source_info_util import is_user_filename as _is_users  # pyright: ignore
    from jax._src.source_info_util import raw_frame_to_frame as _read_frame  # pyright: ignore
except ImportError:  # pragma: no cover - degrades to no source links
    _is_users = _read_frame = None

try:
    # `jax.core.get_opaque_trace_state` compares two moments; only this tests if a trace is active now.
    from jax._src.core import trace_state_clean as is_top_level  # pyright: ignore
except ImportError:  # pragma: no cover - is_in_jaxpr_trace then makes an array each time

    def is_top_level() -> bool:
        return False


# Reading a frame takes a microsecond, and a program has the same few thousand in all its equations. By the identity of
# the code, which the entry keeps alive: to hash a code object would take as long.
_frames: dict[tuple[int, int], tuple[Any, Frame | None]] = {}
_MAX_FRAMES = 100_000


def user_stack(traceback: Any) -> tuple[Frame, ...]:
    """Return the user's frames of an equation's traceback, innermost first, without JAX's own; empty if unknown."""
    if _is_users is None or traceback is None:
        return ()
    if len(_frames) > _MAX_FRAMES:
        _frames.clear()
    codes, offsets = traceback.raw_frames()
    stack: list[Frame] = []
    for code, offset in zip(codes, offsets, strict=True):
        entry = _frames.get((id(code), offset))
        if entry is None:
            entry = _frames[id(code), offset] = code, _frame(code, offset)
        if entry[1] is not None:
            stack.append(entry[1])
    return tuple(stack)


def called_through(traceback: Any, *names: str) -> bool:
    """Return True if an equation was traced inside a call of a JAX function whose name is in `names`."""
    if _is_users is None or traceback is None:
        return False
    codes, _ = traceback.raw_frames()
    return any(code.co_name in names and not _is_users(code.co_filename) for code in codes)


def _frame(code: Any, offset: int) -> Frame | None:
    if _is_users is None or _read_frame is None or not _is_users(code.co_filename):
        return None
    f = _read_frame(code, offset)
    return Frame(f.file_name, f.function_name, f.start_line, f.start_column, f.end_line, f.end_column)


def is_in_jaxpr_trace() -> bool:
    """Return True if what runs now becomes part of a jaxpr, which bakes in all values but tracers.

    True within jit, scan and checkpoint, False within an eager grad or vmap.
    """
    # A new array is a tracer in a jaxpr's trace alone; an eager grad or vmap makes a plain one.
    return not is_top_level() and isinstance(jax.lax.full((), 0), Tracer)


def foreign_tracers(traced: Any) -> list[Any]:
    """Return the tracers of other traces that a `jax.stages.Traced` uses; JAX makes arguments of them silently."""
    return [value for value in getattr(traced, "_consts", ()) if isinstance(value, Tracer)]


def calls_compiled(jaxpr: Any) -> dict[str, list[Any]]:
    """Return the jaxprs of the user's jitted functions that a jaxpr's own equations call, by function name.

    The debug info of a call has the function's place: `f at /path/to.py:12`.
    """
    calls: dict[str, list[Any]] = {}
    for equation in jaxpr.eqns:
        if equation.primitive.name not in ("jit", "pjit"):  # from one version to another
            continue
        for _, inner in inner_jaxprs(equation.params):
            info: Any = getattr(inner, "debug_info", None)
            if is_of_users(info):
                calls.setdefault(info.func_src_info.partition(" at ")[0], []).append(inner)
    return calls


def is_of_users(debug_info: Any) -> bool:
    """Return True if debug info is of a function of the user's, not JAX's own."""
    _, _, place = str(getattr(debug_info, "func_src_info", None) or "").partition(" at ")
    return bool(place) and _is_users is not None and _is_users(place.rpartition(":")[0])


def inner_jaxprs(params: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the jaxprs inside an equation's parameters, as `(parameter, open jaxpr)`.

    Up to 0.10 a ClosedJaxpr wraps a Jaxpr in `.jaxpr`; from 0.11 there is one class whose `.jaxpr` is itself.
    """
    inner_ones: list[tuple[str, Any]] = []
    for key, value in params.items():
        several = isinstance(value, (tuple, list))
        items = cast(Sequence[Any], value) if several else (value,)
        inner_ones += [
            (f"{key}[{i}]" if several else key, getattr(item, "jaxpr", item))
            for i, item in enumerate(items)
            if is_jaxpr(item)
        ]
    return inner_ones


def read_equations(jaxpr: Any) -> tuple[dict[int, list[tuple[str, Any]]], dict[Any, tuple[Frame, ...]]]:
    """Return the inner jaxprs of each equation that has any, by its id, and the user's frames of each traceback.

    Both cover the equations of the inner jaxprs too.
    """
    inner: dict[int, list[tuple[str, Any]]] = {}
    stacks: dict[Any, tuple[Frame, ...]] = {}
    todo, seen = [jaxpr], {id(jaxpr)}
    for body in todo:  # grows during iteration
        for equation in body.eqns:
            if (traceback := equation.source_info.traceback) not in stacks:
                stacks[traceback] = user_stack(traceback)
            if several := inner_jaxprs(equation.params):
                inner[id(equation)] = several
            for _, each in several:
                if id(each) not in seen:
                    seen.add(id(each))
                    todo.append(each)
    return inner, stacks


def is_jaxpr(value: Any) -> bool:
    inner = getattr(value, "jaxpr", value)
    return hasattr(inner, "eqns") and hasattr(inner, "invars")


def replaced(jaxpr: Any, **changes: Any) -> Any:
    """Return an open jaxpr with these changes and its constants, which `replace` would drop from 0.11 on."""
    return jaxpr.replace(**({"consts": list(jaxpr.consts)} if hasattr(jaxpr, "consts") else {}), **changes)


def change_jaxprs(params: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return an equation's parameters with each jaxpr, also in a list or tuple, replaced by what `change` returns."""

    def changed(value: Any) -> Any:
        if is_jaxpr(value):
            return change(value)
        items = cast("Sequence[Any]", value) if isinstance(value, (tuple, list)) else ()
        if not any(map(is_jaxpr, items)):
            return cast("Any", value)
        make: Any = getattr(items, "_make", type(items))  # a named tuple's own
        return make([change(item) if is_jaxpr(item) else item for item in items])

    return {name: changed(value) for name, value in params.items()}


def scan_inputs(params: dict[str, Any]) -> tuple[int, int]:
    """Return the numbers of a scan's constant and carried inputs, (0, 0) if unknown; the others are slices.

    From 0.12 the parameters have trees instead of counts.
    """
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    try:
        same, carried, _ = map(len, params["ft_in"].unpack())
    except (KeyError, AttributeError, TypeError, ValueError):  # pragma: no cover - what comes out of a loop isn't known
        return 0, 0
    return same, carried


def bind_equation(equation: Any, operands: Sequence[Any]) -> list[Any]:
    """Bind one equation of a jaxpr to operands and return its results; public is only to run a whole jaxpr."""
    return bind_with(equation, equation.params, operands)


def bind_with(equation: Any, params: Mapping[str, Any], operands: Sequence[Any]) -> list[Any]:
    """Bind an equation's primitive with other parameters to operands; return the results."""
    primitive = equation.primitive
    results = primitive.bind(*operands, **primitive.get_bind_params(dict(params)))
    return list(results) if primitive.multiple_results else [results]


_CALL_CAPACITY = 4096  # what JAX keeps of calls by default

try:
    # Experimental. It is part of every trace's cache key, also of inner jits, and changes nothing else.
    from jax.experimental.xla_metadata import set_xla_metadata as _metadata  # pyright: ignore[reportUnknownVariableType]
except ImportError:  # pragma: no cover - degrades to what JAX remembers of earlier traces
    _metadata: Any = None

try:
    # Part of every key too, and not visible in equations: JAX uses it as the cache of calls of functions jitted within.
    from jax._src.config import jax_jit_cpp_cache_obj as _cache_of_calls  # pyright: ignore
except ImportError:  # pragma: no cover - as above
    _cache_of_calls: Any = None

try:
    # The traces of jitted functions, including `jnp.add`: kept without bound as long as the functions live; and
    # their call signatures, which hold the same.
    from jax._src.interpreters.partial_eval import trace_to_jaxpr as _inner_traces  # pyright: ignore
    from jax._src.pjit import _infer_params_cached as _inner_calls  # pyright: ignore
except ImportError:  # pragma: no cover - what is traced here stays where JAX keeps it
    _inner_traces: Any = None
    _inner_calls: Any = None

_MAX_KEPT = 512  # inner programs of such traces, some 5 kB each, that JAX may keep without use
_number = count(1)
_added = [0]


@contextmanager
def _let_go() -> Generator[None]:
    """Drop JAX's cache of inner traces after this context, once more than `_MAX_KEPT` were added in such ones.

    Single entries can't be removed. Compiled programs stay; the next trace of a new shape repeats some work.
    """
    before = _inner_count()
    try:
        yield
    finally:
        _added[0] += max(_inner_count() - before, 0)
        if _added[0] > _MAX_KEPT:
            _added[0] = 0
            for cache in (_inner_traces, _inner_calls):
                getattr(cache, "cache_clear", lambda: None)()


def _inner_count() -> int:
    info = getattr(_inner_traces, "cache_info", None)
    return getattr(info(), "currsize", 0) if info is not None else 0


@contextmanager
def uncached_traces() -> Generator[None]:
    """Hide JAX's cache of earlier traces in this context; later traces don't find those made in it.

    Once they have added many (`_MAX_KEPT`), JAX's whole cache of inner traces is cleared, the user's too. Without
    `set_xla_metadata` in JAX, nothing is hidden.
    """
    # A number that no earlier trace has in its key.
    with _metadata(explorer_trace=str(next(_number))) if _metadata is not None else nullcontext(), _let_go():
        yield


@contextmanager
def uncached_programs() -> Generator[None]:
    """Hide JAX's cache of earlier traces, as `uncached_traces` does, for a trace that will be compiled.

    XLA would see the mark of `uncached_traces`."""
    mark: Any = nullcontext()
    make: Any = _cache_of_calls
    if make is not None and internals is not None:
        mark = make(internals.cache(capacity=_CALL_CAPACITY))
    with mark, _let_go():
        yield


def is_uncached_mark(value: Any) -> bool:
    """Return True if a setting of a trace is the mark of `uncached_programs`."""
    return internals is not None and isinstance(value, type(internals.cache(capacity=1)))


def unchecked_leaks() -> AbstractContextManager[Any]:
    """Return a context without the check for leaked tracers: recording a trace keeps its values alive."""
    # The public function only turns the check on; it is a partial() of the function that does both.
    switch = getattr(jax.checking_leaks, "func", None)
    return nullcontext() if switch is None else switch(False)


_PLAIN = (bool, int, float, str)  # values of parameters that print without addresses
_SHOWN = 6  # operations of a line by name; the others are in its digest


def program_lines(jaxpr: Any) -> str:
    """Return one text line per source line, `12 mul:float32[8] add:float32[8] #5c1f`, equal for equal programs.

    The line has up to six operations and a digest of all. Operations of a loop's body and of inner functions count at
    the line where they are written, at 0 if it is unknown. Literals count; names of variables and addresses don't.
    """
    lines: dict[int, list[str]] = {}
    for equation in _equations(getattr(jaxpr, "jaxpr", jaxpr)):
        stack = user_stack(getattr(equation.source_info, "traceback", None))
        lines.setdefault(stack[0].line if stack else 0, []).append(_operation(equation))
    rows: list[str] = []
    for number, operations in sorted(lines.items()):
        digest = blake2b("\n".join(operations).encode(), digest_size=4).hexdigest()
        rows.append(" ".join([str(number), *(each.partition("|")[0] for each in operations[:_SHOWN]), f"#{digest}"]))
    return "\n".join(rows)


def _operation(equation: Any) -> str:
    types = ",".join(_type(variable.aval) for variable in equation.outvars)
    literals = ",".join(str(variable.val) for variable in equation.invars if isinstance(variable, Literal))
    params = ",".join(f"{name}={value}" for name, value in equation.params.items() if isinstance(value, _PLAIN))
    return f"{equation.primitive.name}:{types}|{literals}|{params}"


def _type(aval: Any) -> str:
    shape = getattr(aval, "shape", None)
    return str(aval) if shape is None else f"{aval.dtype}[{','.join(map(str, shape))}]"


def _equations(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        yield equation
        for _, inner in inner_jaxprs(equation.params):
            yield from _equations(inner)


_lowering: Any  # the functions by which lowering finds a program's devices; not public
try:
    from jax._src.core import jaxpr_const_args as _constants  # pyright: ignore
    from jax._src.dispatch import get_intermediate_shardings as _inner_shardings  # pyright: ignore
    from jax._src.named_sharding import UnspecifiedValue as _Unspecified  # pyright: ignore

    _lowering = SimpleNamespace(constants=_constants, inner_shardings=_inner_shardings, unspecified=_Unspecified)
except ImportError:  # pragma: no cover - then each program is lowered to find out
    _lowering = None


def is_of_one_device(traced: Any) -> bool:
    """Return True if a `jax.stages.Traced` is for one device; False where only lowering shows it."""
    if _lowering is None:
        return False
    try:
        mesh = traced._params["ctx_mesh"]
        is_plain = not getattr(traced.jaxpr, "is_high", False) and (mesh.empty or mesh.size == 1)
        return is_plain and all(map(_is_single, _shardings(traced)))
    except (AttributeError, KeyError, TypeError):  # a JAX that keeps them elsewhere, or what wraps its trace
        return False


def _shardings(traced: Any) -> Iterator[Any]:
    """Yield the shardings that lowering compares, some None: arguments, results, inner ones, and hoisted constants."""
    params = traced._params
    jaxpr = getattr(params["jaxpr"], "jaxpr", params["jaxpr"])  # closed in older versions
    yield from (argument.sharding for argument in traced._meta_tys_flat)
    yield from params["in_shardings"]
    yield from params["out_shardings"]
    yield from (sharding for sharding, _ in _lowering.inner_shardings(jaxpr))
    yield from (getattr(constant, "sharding", None) for constant, _ in _lowering.constants(jaxpr))


def _is_single(sharding: Any) -> bool:
    if sharding is None or isinstance(sharding, _lowering.unspecified):
        return True
    return isinstance(sharding, Sharding) and sharding.num_devices == 1
