"""explore(): trace, lower and compile a function once, and keep what was seen."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache, partial
from time import perf_counter
from types import MethodType
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import jax

from explorer._jax.calls import steps_done
from explorer._jax.numbering import with_argument_names
from explorer.capture.backends import Backend, CompiledProgram, HereBackend, backend_of
from explorer.capture.call import Call, takes_call
from explorer.capture.compile_thread import compile_beside
from explorer.capture.constants import name_constants, refuse_leaks
from explorer.capture.equation_paths import rename_numbered, without_numbers
from explorer.capture.filtered import arrays_of, filtered, flatten, inner_trace, is_filtered
from explorer.capture.machine.kernel_code import code_writer
from explorer.capture.origins import keep_origin
from explorer.capture.readers.hlo import read_hlo
from explorer.capture.readers.jaxpr import read_jaxpr
from explorer.capture.readers.stablehlo import read_stablehlo
from explorer.capture.recording import RecordedProgram, numbered_program
from explorer.capture.sources import read_source
from explorer.capture.trace_errors import explain_trace_error
from explorer.errors import ArgumentsError, NotCallableError
from explorer.model.capture import Capture
from explorer.model.declared import cached_property
from explorer.model.findings import Findings
from explorer.model.graph import Graph
from explorer.model.stage import Durations, Source, Stage
from explorer.model.target import Target
from explorer.view.progress_bar import StepCallback, step_progress

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
    """Compile a function for these arguments and keep every stage of it.

    The function's Python runs once, to be traced; the compiled program is not run. Where the function is a `jax.jit`
    function, its next call runs this program, and compiles nothing.

    Args:
        function: Any callable, a `jax.jit` function, or an `Executable` (which was compiled already: no arguments).
        args, kwargs: Arrays, `jax.ShapeDtypeStruct`, `InputInfo`, or trees of them, as for a call.
        target: Hardware to compile for that need not be here, one of `explorer.targets()`: `"h100"`, `"8xh100"`,
            `"v5e:4x4"`. Its own compiler does it, in a process of its own; the devices that are here, if not given.
        record: Number the equations, so that links are exact, and keep the module after each pass. The program is the
            same; a trace in XProf shows the numbers as scopes `~eq12`. False leaves the program as JAX makes it.

    Raises:
        NotCallableError: `function` can't be called.
        ArgumentsError: The arguments don't fit the function's signature.
        ExploreError: Tracing, lowering or compiling failed. It has the capture of the steps that worked as
            `.capture`, and the error itself as `__cause__`. A `TracedValueError`: it needs the value of something
            that has none while it is traced.
        UnknownTargetError: `target` names no hardware that is known.
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
    """explore(), and what else there is to do while the compiler works.

    Args:
        call: The function and its arguments.
        target, record: As for `explore`.
        meanwhile: As for `CompileRequest`; not called where nothing is compiled, or for a target, whose compiler is
            waited for in this thread so that an interrupt ends it.
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


Meanwhile = Callable[[Capture], object]


@runtime_checkable
class Explored(Protocol):
    """What was compiled already and kept its capture, as an `Executable` does."""

    def explore(self) -> Capture: ...


@runtime_checkable
class Described(Protocol):
    """What stands for an array that is not there yet, as an `InputInfo` does."""

    def to_struct(self) -> jax.ShapeDtypeStruct: ...


class Trace(NamedTuple):
    """A traced function.

    Attributes:
        plain: The `jax.stages.Traced` that the user's own call finds.
        shown: The same with the user's names of its arguments, where a wrapper gave them others.
    """

    plain: Any
    shown: Any


@dataclass(frozen=True)
class CompileRequest:
    """A function and the arguments to compile it for.

    Args:
        function: What the user calls; its name and place stand in the capture.
        args, kwargs: For `target`.
        target: What is compiled, where that is another callable than `function`.
        options: XLA's compiler options.
        verb: What an error says could not be done.
        named_arrays: Arrays by the names that the user has for them, beside those that `function` can reach: the
            constants among its arguments.
        read_source: Gives the source of a file that frames name, or None.
        notes: What is known of variables of the traced jaxpr, as attributes; the trace may fill it.
        backend: What lowers and compiles it.
        traced: The `jax.stages.Traced` of it, where there is one already: its Python isn't run again.
        record: Whether its equations are numbered, so that links are exact, and its passes recorded.
        meanwhile: Called with the stages so far while the compiler works, which does so in another thread then. It
            raises nothing, and leaves the lowered program alone: that one's context has no locks.
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

    @cached_property
    def unwrapped(self) -> Callable[..., Any]:
        """The function below partial() and decorators that say what they wrap: its name and place are the user's."""
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

    def trace(self) -> Trace:
        """Trace the target for these arguments.

        Raises:
            LeakedTracer: It uses a value that another trace left behind; and whatever the user's function raises.
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
        while isinstance(target, partial) and hasattr(target.func, "trace"):  # a call runs the program of what is in it
            target, args, kwargs = target.func, (*target.args, *args), {**target.keywords, **kwargs}
        inner = inner_trace(target, args, kwargs)
        if inner is not None:
            return Trace(inner[0], with_argument_names(*inner))
        if is_filtered(target):
            target = filtered(target, args, kwargs)
            args, kwargs = arrays_of((args, kwargs))
        if isinstance(target, MethodType) and hasattr(target.__func__, "trace"):  # whose `trace` knows no self
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

    def lint(self, traced: Any, error: Exception | None = None) -> Findings:
        """What the passive rules say of the trace; whatever becomes of them, the user's call goes on."""
        try:
            return Findings.of_trace(self.function, self.args, self.kwargs, traced, error)
        except Exception as fault:
            return Findings((), self.name, [f"{type(fault).__name__}: {fault}"])

    def lint_program(self, traced: Any, capture: Capture) -> Capture:
        """The capture of a program for several devices, with what its rules say of how values lie on them."""
        try:
            of_program = Findings.of_trace(self.function, self.args, self.kwargs, traced, None, capture)
        except Exception as fault:
            of_program = Findings((), self.name, [f"{type(fault).__name__}: {fault}"])
        of_trace = capture.findings
        rules = [*of_trace.rules, *of_program.rules]
        findings = Findings(
            [*of_trace, *of_program], of_trace.function, [*of_trace.faults, *of_program.faults], rules=rules
        )
        return replace(capture, findings=findings)

    def empty_capture(self, failure: str = "") -> Capture:
        """A capture without stages, which each step that works adds to."""
        function = self.unwrapped
        code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
        return Capture(
            function=self.name,
            file=code.co_filename if code else "",
            line=code.co_firstlineno if code else 0,
            stages=(),
            durations=Durations(),
            environment=self.backend.environment(),
            failure=failure,
            read_source=cache(self.read_source),
        )


class Compilation(NamedTuple):
    """JAX's objects for each step, and the capture of all of them.

    Attributes:
        traced, lowered, compiled: Those of `jax.stages`; `compiled` is None where no device is here to load it.
    """

    traced: Any
    lowered: Any
    compiled: Any
    capture: Capture


def compile_stages(request: CompileRequest) -> Compilation:
    """Trace, lower and compile what is requested; what each step gives is added to the capture.

    Raises:
        ArgumentsError: The arguments don't fit the function's signature.
        ExploreError: A step failed; `.capture` has those before it.
    """
    __tracebackhide__ = True
    request.check_arguments()
    with step_progress(f"{request.name} is compiled", ("trace", "lower", "XLA")) as begin:
        return _compile_stages(request, begin)


def compile_with_findings(request: CompileRequest) -> Compilation:
    """The same; a program for several devices also has what its rules say of how values lie on them.

    Raises:
        ArgumentsError, ExploreError: As `compile_stages`.
    """
    __tracebackhide__ = True
    compilation = compile_stages(request)
    traced, lowered, _, capture = compilation
    is_sharded = partitions_of(lowered) > 1
    return compilation._replace(capture=request.lint_program(traced, capture)) if is_sharded else compilation


def _compile_stages(request: CompileRequest, begin: StepCallback) -> Compilation:
    __tracebackhide__ = True
    begin("trace")
    trace, capture = run_step("trace", request.trace, request, request.empty_capture())
    traced = trace.shown
    notes = request.notes  # the stage reads them later; of the request it would hold all that was compiled
    capture = replace(
        capture,
        stages=(Stage("jaxpr", lambda: read_jaxpr(traced.jaxpr, notes)),),
        findings=request.lint(traced),
        signature=_signature(traced.jaxpr),
        constants=name_constants(traced.jaxpr, request.unwrapped, request.named_arrays),
    )
    begin("lower")
    lowered, capture = run_step("lower", partial(request.backend.lower, trace.plain), request, capture)
    numbered = numbered_program(traced, lowered, request.backend, request.options) if request.record else None
    if numbered is None:
        compilation = _compile_plain(request, lowered, capture, begin)
    else:
        compilation = _compile_numbered(request, RecordedProgram(numbered), lowered, capture, begin)
    program, capture = compilation
    write_code = code_writer(lowered, capture.stages[-1], request.backend, request.options)
    capture = replace(capture, cost=program.cost, memory=program.memory, write_code=write_code)
    return Compilation(traced, lowered, program.compiled, capture)


def _compile_numbered(
    request: CompileRequest, recorded: RecordedProgram, lowered: Any, capture: Capture, begin: StepCallback
) -> tuple[CompiledProgram, Capture]:
    """Compile a program whose equations are numbered: its links are exact, and its passes are there."""
    __tracebackhide__ = True
    stablehlo = Stage("stablehlo", lambda: (recorded.stablehlo.text, recorded.stablehlo.graph))
    capture = replace(capture, stages=(*capture.stages, stablehlo))
    compile_program = partial(recorded.compile, lowered)
    program, capture = _compile(request, compile_program, capture, begin, lambda: recorded.stablehlo_text)
    seconds = recorded.reading_passes
    capture = replace(
        capture,
        stages=(*capture.stages, Stage("hlo", lambda: (recorded.hlo.text, recorded.hlo.graph))),
        exact_sets=recorded.equation_sets,
        read_passes=None if seconds is None else recorded.read_passes,
        reading_passes=seconds or 0.0,
        record=recorded.read_passes if seconds is None else None,
    )
    return program, capture


def _compile_plain(
    request: CompileRequest, lowered: Any, capture: Capture, begin: StepCallback
) -> tuple[CompiledProgram, Capture]:
    """Compile a program as it is."""
    __tracebackhide__ = True
    lowered_text = cache(partial(lowered.as_text, debug_info=True))
    stablehlo = Stage("stablehlo", lambda: _read_text(lowered_text(), read_stablehlo))
    capture = replace(capture, stages=(*capture.stages, stablehlo))
    compile_program = partial(request.backend.compile, lowered, request.options)
    program, capture = _compile(request, compile_program, capture, begin, lowered_text)
    # JAX gives the numbered program where it was explored before.
    hlo = Stage("hlo", lambda: _read_text(without_numbers(rename_numbered(program.text())[0]), read_hlo))
    why = _UNNUMBERED if request.record else _UNRECORDED
    return program, replace(capture, stages=(*capture.stages, hlo), recording_note=why)


def _compile(
    request: CompileRequest,
    compile_program: Callable[[], CompiledProgram],
    capture: Capture,
    begin: StepCallback,
    lowered_text: Callable[[], str],
) -> tuple[CompiledProgram, Capture]:
    """Run the compiler, beside what the request has to do meanwhile."""
    __tracebackhide__ = True

    def so_far() -> Capture:
        lowered_text()  # not while the compiler has the module: its context has no locks. 0.1 % of the compile
        return capture

    begin("XLA", so_far)
    if request.meanwhile is not None:
        compile_program = partial(compile_beside, compile_program, partial(request.meanwhile, capture))
    return run_step("compile", compile_program, request, capture)


def run_step(name: str, run: Callable[[], Any], request: CompileRequest, capture: Capture) -> tuple[Any, Capture]:
    """What one step gives, and the capture with its duration.

    Args:
        name: `trace`, `lower` or `compile`.
        run: Does it.
        request: What an error is about.
        capture: Of the steps before.

    Raises:
        ExploreError: It failed; a `TracedValueError` where the function needs the value of something traced.
    """
    __tracebackhide__ = True
    start = perf_counter()
    try:
        with steps_done() as done:
            result = run()
    except KeyboardInterrupt as interrupt:
        kept = ", ".join(stage.name for stage in capture.stages) or "no stage"
        interrupt.add_note(f"{request.name}: interrupted in {name}; kept in `sys.last_value.capture`: {kept}")
        interrupt.capture = capture  # pyright: ignore[reportAttributeAccessIssue]
        raise
    except Exception as error:
        capture = replace(
            capture,
            durations=replace(capture.durations, **{name: perf_counter() - start}),
            failure=f"{name} failed: {type(error).__name__}",
        )
        if name == "trace":
            capture = replace(capture, findings=request.lint(None, error))
        kind, message = explain_trace_error(error, request.name, request.verb, name)
        message = without_numbers(message)
        message += "\n  Hint: the stages before it are in this error's `.capture`." if capture.stages else ""
        raise kind(message, capture) from error
    seconds = perf_counter() - start
    reused = (name,) if request.backend.is_here and name not in done else ()
    durations = replace(capture.durations, **{name: seconds}, reused=(*capture.durations.reused, *reused))
    return result, replace(capture, durations=durations)


def partitions_of(lowered: Any) -> int:
    """How many devices a lowered program is for."""
    try:
        return int(lowered.compiler_ir("stablehlo").operation.attributes["mhlo.num_partitions"].value)
    except (KeyError, AttributeError, ValueError):
        return 1


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
