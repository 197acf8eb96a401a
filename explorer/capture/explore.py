"""explore(): trace, number, lower and compile a function once, and keep the capture of every stage."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache, partial
from time import perf_counter
from types import MethodType
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import jax

from explorer._jax.calls import steps_done, suppress_recording
from explorer._jax.numbering import with_argument_names
from explorer._jax.settings import local_settings, with_settings
from explorer.analysis.cost import cost
from explorer.analysis.graphs import SLICES, device_count
from explorer.analysis.pallas_costs import kernel_costs
from explorer.capture.backends import Backend, CompiledProgram, HereBackend, backend_of
from explorer.capture.call import Call, takes_call
from explorer.capture.equation_paths import without_numbers
from explorer.capture.filtered import arrays_of, filtered, flatten, inner_trace, is_filtered
from explorer.capture.kernel_code import code_writer
from explorer.capture.origins import keep_origin, name_constants, origin_of, refuse_leaks
from explorer.capture.readers.jaxpr import read_jaxpr
from explorer.capture.recording import RecordedProgram, UnnumberedProgram, numbered_program
from explorer.capture.sources import read_source
from explorer.capture.trace_errors import explain_trace_error
from explorer.errors import ArgumentsError, ExploreError, NotCallableError
from explorer.model.capture import Capture
from explorer.model.findings import Findings
from explorer.model.graph import Graph
from explorer.model.links import EquationSets
from explorer.model.stage import Durations, Source, Stage
from explorer.model.target import Target
from explorer.model.text import signature_text
from explorer.view.progress_bar import step_progress

_UNRECORDED = "links are inferred from names and places: record=False leaves the equations without numbers"
_UNNUMBERED = "links are inferred from names and places: the equations of this JAX can't be numbered"


@takes_call
def explore(
    function: Callable[..., Any] | Call,
    /,
    *args: Any,
    target: str | Target | None = None,
    record: bool = True,
    **kwargs: Any,
) -> Capture:
    """Compile a function for these arguments and keep every stage of the compilation.

    The function's Python runs once, to be traced. The compiled program doesn't run. If the function is a `jax.jit`
    function, its next call runs this program and compiles nothing.

    Args:
        function: Any callable, a `jax.jit` function, or an `Executable` (already compiled: no arguments).
        args, kwargs: Arrays, `jax.ShapeDtypeStruct`, `InputInfo`, or trees of them, as for a call.
        target: Hardware to compile for, which need not be here: one of `explorer.targets()`, such as `"h100"`,
            `"8xh100"`, `"v5e:4x4"`, `"2xv5e:4x4"`. The target's own compiler runs in a subprocess. Default: the devices
            that are here.
        record: Number the equations, so that links are exact, and keep the module after each pass. The program is the
            same; a trace in XProf shows the numbers as scopes `~eq12`. False leaves the program as JAX makes it.

    Raises:
        NotCallableError: `function` can't be called.
        ArgumentsError: The arguments don't fit the function's signature.
        ExploreError: Tracing, lowering or compiling failed. `.capture` has the steps that worked, `__cause__` the
            original error. A `TracedValueError` means that the function needs the value of a traced array.
        UnknownTargetError: `target` names no known hardware.
        MissingCompilerError: The compiler for `target` is not installed; the message says how to install it.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> explorer.explore(lambda x: jnp.tanh(x) * 2, jnp.ones(8))
        Capture(<lambda>: jaxpr → stablehlo → hlo)
    """
    __tracebackhide__ = True
    return explore_call(Call.of(function, args, kwargs), target, record=record)


def explore_call(
    call: Call, target: str | Target | None = None, meanwhile: Meanwhile | None = None, *, record: bool = True
) -> Capture:
    """Return the capture of a call, and run `meanwhile` on this thread while the compiler works on another one.

    `meanwhile` is not called where nothing is compiled, or for a target: this thread waits for a target's compiler, so
    that an interrupt ends it.
    """
    __tracebackhide__ = True
    function, args, kwargs = call.function, call.args, call.kwargs
    if not callable(function):
        raise NotCallableError(
            f"explore takes a function and its arguments; it got {type(function).__name__}. "
            "Hint: write explore(f, x), not explore(f(x))."
        )
    subject: object = function
    if isinstance(subject, Explored) and not args and not kwargs and target is None:
        return subject.explore()
    backend = backend_of(target)
    leaves, rebuild = flatten((args, kwargs))
    args, kwargs = rebuild([leaf.to_struct() if isinstance(leaf, Described) else leaf for leaf in leaves])
    meanwhile = meanwhile if target is None else None
    request = CompileRequest(function, args, kwargs, backend=backend, meanwhile=meanwhile, record=record)
    capture = compile_with_findings(request).capture
    keep_origin(capture, function, args, kwargs)
    return capture


def compiled_for(capture: Capture, target: str | Target | None) -> Capture:
    """Return a capture of the same function and argument types, compiled for `target`: see `Capture.compiled_for`."""
    __tracebackhide__ = True
    function, args, kwargs = origin_of(capture)
    return explore(Call(function, *args, **kwargs), target=target)


Meanwhile = Callable[[Capture], object]


@runtime_checkable
class Explored(Protocol):
    def explore(self) -> Capture: ...


@runtime_checkable
class Described(Protocol):
    """A description of an array that is not there yet, such as an `InputInfo`."""

    def to_struct(self) -> jax.ShapeDtypeStruct: ...


def struct_of(leaf: Any) -> Any:
    """Return the `jax.ShapeDtypeStruct` of a description of an array; other leaves unchanged."""
    return leaf.to_struct() if isinstance(leaf, Described) else leaf


def keys_like(aval: Any) -> jax.Array:
    """Return random keys of this shape and dtype."""
    kinds = ("threefry2x32", "rbg", "unsafe_rbg")
    key = next(key for kind in kinds if (key := jax.random.key(0, impl=kind)).dtype == aval.dtype)
    return jax.random.split(key, aval.shape)


class HoldsState:
    """A function that reads and writes state outside its arguments: each call gives JAX a new function."""

    @property
    def captured(self) -> tuple[Any, ...]:
        """Return the containers that hold the function's state."""
        raise NotImplementedError


class Trace(NamedTuple):
    """A traced function: the `jax.stages.Traced` that the user's own call finds in JAX's cache, and the one that is
    shown.

    The shown one has the user's names of the arguments, where a wrapper gave them others.
    """

    plain: Any
    shown: Any


@dataclass(frozen=True)
class CompileRequest:
    """A function and the arguments to compile it for.

    Args:
        function: The user's function; the capture has its name and place.
        args, kwargs: For `target`.
        target: The callable to compile, where it is not `function` itself.
        options: XLA's compiler options.
        verb: The word in an error's "f could not be explored".
        named_arrays: The user's names of arrays that are constants of the trace, in addition to those that `function`
            can reach.
        read_source: Returns the source of a file that frames name, or None.
        notes: Attributes of variables of the traced jaxpr; the trace may fill them in.
        backend: Lowers and compiles.
        traced: The `jax.stages.Traced`, if there is one already: the Python isn't run again.
        record: Number the equations, so that links are exact, and record the passes.
        meanwhile: Called with the stages so far while the compiler works, which then runs on another thread. It must
            not raise, nor touch the lowered program: an MLIR context has no locks.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    _: KW_ONLY
    target: Callable[..., Any] | None = None
    options: dict[str, Any] | None = None
    verb: str = "explored"
    named_arrays: Mapping[str, Any] | None = None
    read_source: Callable[[str], Source | None] = read_source
    notes: Mapping[Any, Mapping[str, str]] = field(default_factory=dict[Any, Mapping[str, str]])
    backend: Backend = field(default_factory=HereBackend)
    traced: Any = None
    record: bool = True
    meanwhile: Meanwhile | None = None

    @property
    def unwrapped(self) -> Callable[..., Any]:
        """Return the user's function without `partial` and decorators that set `__wrapped__`."""
        function = self.function
        while isinstance(function, partial) or hasattr(function, "__wrapped__"):
            function = function.func if isinstance(function, partial) else inspect.unwrap(function)
        return function

    @property
    def name(self) -> str:
        return getattr(self.unwrapped, "__name__", type(self.unwrapped).__name__)

    def check_arguments(self) -> None:
        """Raise ArgumentsError if the arguments don't fit the signature, where there is one."""
        __tracebackhide__ = True
        try:
            signature = inspect.signature(self._target)
        except (TypeError, ValueError):  # a builtin has no signature; JAX reports wrong arguments itself
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

    def trace(self) -> Trace:
        """Return the trace of the target.

        Raises LeakedTracer for a value of another trace, and whatever the function raises.
        """
        __tracebackhide__ = True
        if self.traced is not None:
            return Trace(self.traced, self.traced)
        trace = self._trace()
        refuse_leaks(trace.plain, self.unwrapped, self.named_arrays)
        return trace

    def _trace(self) -> Trace:
        __tracebackhide__ = True
        target: Any = self._target
        args, kwargs = self.args, self.kwargs
        while isinstance(target, partial) and hasattr(target.func, "trace"):  # a call runs the inner function's program
            target, args, kwargs = target.func, (*target.args, *args), {**target.keywords, **kwargs}
        has_static = is_filtered(target)
        inner = inner_trace(target, args, kwargs)
        if inner is not None:
            return Trace(inner[0], with_argument_names(*inner))
        if has_static:
            target = filtered(target, args, kwargs)
            args, kwargs = arrays_of((args, kwargs))
        if isinstance(target, MethodType) and hasattr(target.__func__, "trace"):  # `trace` doesn't bind self
            target, args = target.__func__, (target.__self__, *args)
        # jax.jit itself refuses some callables, such as generators.
        called = cast(Any, target)
        jitted: Any = called if hasattr(called, "trace") else jax.jit(called)
        traced: Any = jitted.trace(*args, **kwargs)
        traced = traced if hasattr(traced, "jaxpr") else traced.traced  # flax.nnx.jit wraps JAX's
        return Trace(traced, traced)

    @property
    def _target(self) -> Any:
        return self.function if self.target is None else self.target

    def lint(self, traced: Any, error: Exception | None = None, capture: Capture | None = None) -> Findings:
        """Return the findings of the passive rules; a rule that fails must not stop the compilation."""
        try:
            return Findings.of_trace(self.function, self.args, self.kwargs, traced, error, capture)
        except Exception as fault:
            return Findings((), self.name, [f"{type(fault).__name__}: {fault}"])

    def empty_capture(self, failure: str = "", **fields: Any) -> Capture:
        """Return a capture with these fields, without stages by default."""
        function = self.unwrapped
        code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
        given: dict[str, Any] = {"stages": (), "durations": Durations(), **fields}
        return Capture(
            function=self.name,
            file=code.co_filename if code else "",
            line=code.co_firstlineno if code else 0,
            environment=self.backend.environment(),
            failure=failure,
            read_source=cache(self.read_source),
            **given,
        )


_STEPS = 3  # trace, lower, compile


class Compilation(NamedTuple):
    """JAX's objects of each step, and the capture; `compiled` is missing where no device is here to load it."""

    traced: Any
    lowered: Any
    compiled: Any
    capture: Capture


def compile_with_findings(request: CompileRequest) -> Compilation:
    """Return the result of `compile_stages`, with the findings about shardings for a program of several devices."""
    __tracebackhide__ = True
    compilation = compile_stages(request)
    if partitions_of(compilation.lowered) < 2:
        return compilation
    capture, of_trace = compilation.capture, compilation.capture.findings
    # These rules read the compiled program, so they can't run with the others after the trace.
    more = request.lint(compilation.traced, None, capture)
    findings = Findings(
        [*of_trace, *more], of_trace.function, [*of_trace.faults, *more.faults], rules=[*of_trace.rules, *more.rules]
    )
    return compilation._replace(capture=replace(capture, findings=findings))


def compile_stages(request: CompileRequest) -> Compilation:
    """Trace, lower and compile; return each step's object and the capture; raise ArgumentsError or ExploreError."""
    __tracebackhide__ = True
    request.check_arguments()
    backend, options = request.backend, request.options
    title, began = f"{request.name} is compiled", dict[str, float]()
    with steps_done() as events, step_progress(title, began, _STEPS) as show_partial:
        steps = CompileSteps(request, events, began)
        with backend.tracing():
            trace = steps.run("trace", request.trace)
        # Not of the request: a stage that held it would keep what was compiled alive.
        jaxpr, notes = trace.shown.jaxpr, request.notes
        steps.add_stage("jaxpr", partial(read_jaxpr, jaxpr, notes))
        names = tuple(map(str, jaxpr.debug_info.arg_names or ()))
        types = [aval.str_short(short_dtypes=True) for aval in jaxpr.in_avals]
        steps.fields |= {
            "findings": request.lint(trace.shown),
            "signature": signature_text(names, types),
            "constants": name_constants(jaxpr, request.unwrapped, request.named_arrays),
        }

        lowered = steps.run("lower", partial(backend.lower, trace.plain))
        # A numbered copy is compiled in place of the program: the traced jaxpr itself stays without numbers.
        numbered = numbered_program(trace.shown, lowered, backend, options) if request.record else None
        if numbered is not None:
            program = RecordedProgram(numbered, lowered)
        else:
            program = UnnumberedProgram(lowered, backend, options, _UNNUMBERED if request.record else _UNRECORDED)
        steps.add_stage("stablehlo", program.read_stablehlo)

        if show_partial is not None:
            # Before the compiler takes the module: an MLIR context has no locks. 0.1 % of the compile.
            _ = program.stablehlo_text
            show_partial(steps.capture())
        compile_program = program.compile
        if request.meanwhile is not None:
            compile_program = partial(_compile_beside, compile_program, partial(request.meanwhile, steps.capture()))
        compiled = steps.run("compile", compile_program)

        # Read at the first access.
        fields, count = program.capture_fields(), partitions_of(lowered)
        hlo = steps.add_stage("hlo", partial(_read_program, program.read_hlo, steps.stages[0], fields, count))
        capture = steps.capture(
            cost=compiled.cost,
            memory=compiled.memory,
            write_code=code_writer(lowered, hlo, backend, options),
            **fields,
        )
        return Compilation(trace.shown, lowered, compiled.compiled, capture)


def _read_program(
    read: Callable[[], tuple[str, Graph]], jaxpr: Stage, fields: Mapping[str, Any], partitions: int
) -> tuple[str, Graph]:
    """Return the text and the graph of the optimized program; Pallas kernels cost what their jaxprs say.

    `partitions` is the number of devices that the program was lowered for.
    """
    text, graph = read()
    if (slices := partitions // device_count(graph)) > 1:
        graph = graph.changed(attributes={**graph.attributes, SLICES: str(slices)})
    sets: Mapping[str, EquationSets] = fields.get("exact_sets", {})
    if "custom-call" not in graph.ops or "hlo" not in sets:
        return text, graph
    return text, graph.changed(measure=partial(cost, custom=kernel_costs(jaxpr.graph, graph, sets["hlo"])))


def _compile_beside(compile_program: Callable[[], CompiledProgram], meanwhile: Callable[[], object]) -> CompiledProgram:
    """Return the program, compiled on another thread while `meanwhile` runs on this one.

    XLA releases the GIL, and its passes take one core. The user's Python stays on the calling thread, because settings,
    meshes and tracers are thread-local; the compiler's thread gets the settings.
    """
    settings = local_settings()

    def compile_there() -> CompiledProgram:
        with with_settings(settings), suppress_recording():
            return compile_program()

    with ThreadPoolExecutor(1, "explorer-compiler") as pool:
        program = pool.submit(compile_there)
        meanwhile()
        return program.result()


class CompileSteps:
    """The steps of a compilation; an error in a step carries the capture of the steps before it.

    The set `events` is the one that `steps_done` yields. The dict `began` gets the time at which each step starts.
    """

    def __init__(self, request: CompileRequest, events: set[str], began: dict[str, float] | None = None) -> None:
        self._request, self._events, self._began = request, events, {} if began is None else began
        self.durations = Durations()
        self.stages: list[Stage] = []
        self.fields: dict[str, Any] = {}

    def add_stage(self, name: str, read: Callable[[], Any]) -> Stage:
        self.stages.append(Stage(name, read))
        return self.stages[-1]

    def capture(self, failure: str = "", **fields: Any) -> Capture:
        stages = tuple(self.stages)
        return self._request.empty_capture(
            failure, **{"stages": stages, "durations": self.durations, **self.fields, **fields}
        )

    def run(self, name: str, run: Callable[[], Any]) -> Any:
        """Run `trace`, `lower` or `compile`, note its seconds, return its result; raise ExploreError if it fails."""
        __tracebackhide__ = True
        # Only a step's own events show if JAX did it, or had the result in a cache.
        self._events.clear()
        self._began["XLA" if name == "compile" else name] = start = perf_counter()
        try:
            result = run()
        except KeyboardInterrupt as interrupt:
            capture = self.capture()
            kept = ", ".join(stage.name for stage in capture.stages) or "no stage"
            note = f"{self._request.name}: interrupted in {name}; `sys.last_value.capture` has: {kept}"
            interrupt.add_note(note)
            # Python and IPython keep an exception that ended a cell: the stages stay in reach.
            interrupt.capture = capture  # pyright: ignore[reportAttributeAccessIssue]
            raise
        except Exception as error:
            self.durations = replace(self.durations, **{name: perf_counter() - start})
            raise self._explained(name, error) from error
        # The persistent cache reports a compile too.
        is_done = name in self._events and not (name == "compile" and "saved" in self._events)
        reused = () if is_done or not self._request.backend.is_here else (name,)
        seconds: dict[str, Any] = {name: perf_counter() - start}
        self.durations = replace(self.durations, **seconds, reused=(*self.durations.reused, *reused))
        return result

    def _explained(self, name: str, error: Exception) -> ExploreError:
        request = self._request
        if name == "trace":
            self.fields["findings"] = request.lint(None, error)
        capture = self.capture(f"{name} failed: {type(error).__name__}")
        kind, message = explain_trace_error(error, request.name, request.verb, name)
        message = without_numbers(message)
        return kind(
            message + ("\n  Hint: the stages before it are in this error's `.capture`." if capture.stages else ""),
            capture,
        )


def partitions_of(lowered: Any) -> int:
    """Return the number of devices that a lowered program is for; 1 if unknown."""
    try:
        return int(lowered.compiler_ir("stablehlo").operation.attributes["mhlo.num_partitions"].value)
    except (KeyError, AttributeError, ValueError):
        return 1
