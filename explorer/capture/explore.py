"""explore(): trace, lower and compile a function once, and keep what was seen."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter
from types import MethodType
from typing import Any, Protocol, runtime_checkable

import jax

from explorer.capture.constants import name_constants, refuse_leaks
from explorer.capture.filtered import arrays_of, filtered, is_filtered
from explorer.capture.passes import recorder
from explorer.capture.readers.hlo import read_hlo
from explorer.capture.readers.jaxpr import read_jaxpr
from explorer.capture.readers.stablehlo import read_stablehlo
from explorer.capture.sources import read_source
from explorer.capture.trace_errors import retold
from explorer.errors import ArgumentsError, NotCallableError
from explorer.model.capture import Capture, Durations, Stage
from explorer.model.findings.findings import Findings
from explorer.model.graph import Graph

__all__ = ["Exploration", "environment", "explore"]


def explore(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Capture:
    """Compile a function for these arguments and keep every stage of it.

    The function's Python runs once, to be traced; the compiled program is not run.

    Args:
        function: Any callable, a `jax.jit` function, or an `Executable` (which was compiled already: no arguments).
        args, kwargs: Arrays, `jax.ShapeDtypeStruct`, `InputInfo`, or trees of them, as for a call.

    Raises:
        NotCallableError: `function` can't be called.
        ArgumentsError: The arguments don't fit the function's signature.
        ExploreError: Tracing, lowering or compiling failed. It has the capture of the steps that worked as
            `.capture`, and the error itself as `__cause__`. A `TracedValueError`: it needs the value of something
            that has none while it is traced.

    Example:
        >>> import jax.numpy as jnp
        >>> explore(lambda x: jnp.tanh(x) * 2, jnp.ones(8))
        Capture(<lambda>: jaxpr → stablehlo → hlo)
    """
    __tracebackhide__ = True
    if not callable(function):
        raise NotCallableError(
            f"explore takes a function and its arguments; it got {type(function).__name__}. "
            "Hint: write explore(f, x), not explore(f(x))."
        )
    known: object = function
    if isinstance(known, Explored) and not args and not kwargs:
        return known.explore()
    args, kwargs = jax.tree.map(_struct, (args, kwargs), is_leaf=lambda leaf: isinstance(leaf, Described))
    return Exploration(function, args, kwargs).run()


@runtime_checkable
class Explored(Protocol):
    """What was compiled already and kept its capture, as an `Executable` does."""

    def explore(self) -> Capture: ...


@runtime_checkable
class Described(Protocol):
    """What stands for an array that is not there yet, as an `InputInfo` does."""

    def to_struct(self) -> jax.ShapeDtypeStruct: ...


def _struct(leaf: Any) -> Any:
    return leaf.to_struct() if isinstance(leaf, Described) else leaf


class Exploration:
    """One run of trace, lower and compile: the steps, and what is known so far.

    Args:
        function: What the user calls; its name and place stand in the capture.
        args, kwargs: For `target`.
        target: What is compiled, where that is another callable than `function`.
        options: XLA's compiler options.
        verb: What an error says could not be done.
        given: Values that the function has by name beside its own: the constants among its arguments.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        target: Callable[..., Any] | None = None,
        options: dict[str, Any] | None = None,
        verb: str = "explored",
        given: Mapping[str, Any] | None = None,
    ) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.target: Any = function if target is None else target
        self.options = options
        self.verb = verb
        self.given = given
        self.compiled: Any = None
        self.plain = _plain(function)
        self.name: str = getattr(self.plain, "__name__", type(self.plain).__name__)
        self.known: dict[str, Any] = {}
        self.stages: list[Stage] = []
        self.seconds: dict[str, float] = {}

    def run(self) -> Capture:
        __tracebackhide__ = True
        self.check_arguments()
        traced = self.step("trace", self.trace)
        self.known["findings"] = self.looked(traced)
        self.stages.append(Stage("jaxpr", lambda: read_jaxpr(traced.jaxpr)))
        self.known["signature"] = _signature(traced.jaxpr)
        self.known["constants"] = name_constants(traced.jaxpr, self.plain, self.given)
        lowered = self.step("lower", traced.lower)
        self.stages.append(Stage("stablehlo", lambda: _read_text(lowered.as_text(debug_info=True), read_stablehlo)))
        self.compiled = compiled = self.step("compile", lowered.compile, compiler_options=self.options)
        self.stages.append(Stage("hlo", lambda: _read_text(compiled.as_text(), read_hlo)))
        self.known["cost"] = _cost(compiled)
        self.known["memory"] = _memory(compiled)
        self.known["record_passes"] = recorder(lowered, self.options)
        return self.capture()

    def trace(self) -> Any:
        __tracebackhide__ = True
        target, args, kwargs = self.target, self.args, self.kwargs
        if is_filtered(target):
            target = filtered(target, args, kwargs)
            args, kwargs = arrays_of((args, kwargs))
        if isinstance(target, MethodType) and hasattr(target.__func__, "trace"):  # whose `trace` knows no self
            target, args = target.__func__, (target.__self__, *args)
        # jax.jit itself refuses some callables, such as generators.
        jitted: Any = target if hasattr(target, "trace") else jax.jit(target)
        traced: Any = jitted.trace(*args, **kwargs)
        traced = traced if hasattr(traced, "jaxpr") else traced.traced  # flax.nnx.jit wraps JAX's
        refuse_leaks(traced, self.plain, self.given)
        return traced

    def check_arguments(self) -> None:
        __tracebackhide__ = True
        try:
            signature = inspect.signature(self.target)
        except (TypeError, ValueError):  # a builtin has none; JAX will say what it thinks of the arguments
            return
        try:
            signature.bind(*self.args, **self.kwargs)
        except TypeError as error:
            raise ArgumentsError(
                f"{self.name}{signature} can't take these arguments: {error}.\n"
                f"  given: {len(self.args)} by position"
                + (f", and {', '.join(self.kwargs)} by name" if self.kwargs else "")
                + ".\n  Hint: pass them as in a call: explore(f, x, y=1)."
            ) from None

    def step(self, what: str, run: Callable[..., Any], **options: Any) -> Any:
        __tracebackhide__ = True
        start = perf_counter()
        try:
            return run(**options)
        except Exception as error:
            self.seconds[what] = perf_counter() - start
            if what == "trace":
                self.known["findings"] = self.looked(None, error)
            failure = f"{what} failed: {type(error).__name__}"
            kind, message = retold(error, self.name, self.verb, what)
            message += "\n  Hint: the stages before it are in this error's `.capture`." if self.stages else ""
            raise kind(message, self.capture(failure)) from error
        finally:
            self.seconds[what] = perf_counter() - start

    def looked(self, traced: Any, error: Exception | None = None) -> Findings:
        """What the rules say of the trace; whatever becomes of them, the user's call goes on."""
        if Capture.linter is None:
            return Findings((), self.name)
        try:
            return Capture.linter(self.function, self.args, self.kwargs, traced, error)
        except Exception as fault:
            return Findings((), self.name, [f"{type(fault).__name__}: {fault}"])

    def capture(self, failure: str = "") -> Capture:
        code = getattr(self.plain, "__code__", None) or getattr(type(self.plain).__call__, "__code__", None)
        return Capture(
            function=self.name,
            file=code.co_filename if code else "",
            line=code.co_firstlineno if code else 0,
            stages=tuple(self.stages),
            durations=Durations(**self.seconds),
            environment=environment(),
            failure=failure,
            read_source=read_source,
            **self.known,
        )


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function below partial() and decorators that say what they wrap: its name and place are the user's."""
    while isinstance(function, partial) or hasattr(function, "__wrapped__"):
        function = function.func if isinstance(function, partial) else inspect.unwrap(function)
    return function


def _read_text(text: str, read: Callable[[str], Graph]) -> tuple[str, Graph]:
    return text, read(text)


def _signature(jaxpr: Any) -> str:
    """`(params: 18 arrays, x: f32[8,128])`: the arguments by name, a tree by its number of arrays."""
    names = tuple(jaxpr.debug_info.arg_names or ())
    leaves: dict[str, list[str]] = {}
    for i, aval in enumerate(jaxpr.in_avals):
        path = str(names[i]) if i < len(names) and names[i] else f"arg{i}"
        root = path.partition("[")[0].partition(".")[0]
        leaves.setdefault(root, []).append(aval.str_short(short_dtypes=True))
    parts = (f"{name}: {types[0] if len(types) == 1 else f'{len(types)} arrays'}" for name, types in leaves.items())
    return f"({', '.join(parts)})"


def _cost(compiled: Any) -> dict[str, float]:
    """XLA's estimate of the whole program; a backend may have none."""
    try:
        analysis: dict[str, Any] = compiled.cost_analysis() or {}
    except Exception:  # a backend without it raises whatever it likes, and a view can do without
        return {}
    wanted = ("flops", "transcendentals", "bytes accessed")
    return {key: float(analysis[key]) for key in wanted if float(analysis.get(key, -1)) >= 0}


def _memory(compiled: Any) -> dict[str, int]:
    """Bytes by use; a backend may not tell."""
    try:
        stats = compiled.memory_analysis()
    except Exception:  # as above
        return {}
    uses = ("argument", "output", "temp", "alias", "generated_code")
    return {
        use.replace("_", " "): size
        for use in uses
        if (size := getattr(stats, f"{use}_size_in_bytes", None)) is not None
    }


def environment() -> dict[str, str]:
    return {"jax": jax.__version__, "backend": jax.default_backend(), "device": jax.devices()[0].device_kind}
