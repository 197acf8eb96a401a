"""A program in a file: StableHLO by jax.export and separate constants, without Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from types import SimpleNamespace
from typing import Any, cast

import jax
from jax import export

from explorer._jax.native import called_targets, stable_targets
from explorer._jax.symbolic import undecided_equalities, without_held_frames
from explorer.aot.program import Outputs, Program, Traced
from explorer.aot.symbols import Symbols, sizes_text
from explorer.capture.sources import called_at, place
from explorer.errors import ArchiveError, InputShapeError, OptionError, TransformationError
from explorer.padding.sizes import Sizes

_KNOWN = ("cpu", "cuda", "rocm", "tpu")
_PLATFORMS = {"gpu": {"cuda", "rocm"}}  # jax.export's names of a backend, if they differ
# Custom call targets that JAX exports and that run code from the file, or a function registered in the process.
_RUN_CODE = frozenset({"tpu_custom_call", "mosaic_gpu_v2", "tf.call_tf_function"})
_MAX_SMALL_DIMENSIONS = 3  # every combination of small sizes is exported, and each needs a trace


@dataclass(frozen=True)
class Part:
    sizes: Mapping[str, int]  # the fixed ones
    # Both are read when first needed, which with native code they may never be.
    module: Callable[[], bytes]  # a serialized `jax.export.Exported` of `(constants, *arrays) → list of arrays`
    constants: Callable[[], Sequence[Any]]
    outputs: Outputs


def parts_of(
    program: Program, kept: Sequence[Mapping[str, int]], platforms: Sequence[str] | None, derivatives: int
) -> tuple[list[Part], str]:
    """Return a program's exported parts, which run without Python, and a reason.

    The reason is "" if the parts serve every size; else it says why they serve only the sizes in `kept`.
    """
    is_known = platforms is None or (not isinstance(platforms, str) and set(platforms) <= set(_KNOWN))
    if not is_known or (platforms is not None and not platforms):
        raise OptionError(
            f"platforms is {platforms!r}; allowed are some of {', '.join(_KNOWN)}.\n  Hint: platforms=('cpu', 'cuda')."
        )
    if type(derivatives) is not int or derivatives < 0:
        raise OptionError(f"derivatives is {derivatives!r}; allowed is an int of at least 0: how often.")
    why = program.why_each_shape
    if program.symbolic is not None:
        traces = _symbolic_traces(program)
        try:
            return [_exported(program.name, sizes, traced, platforms, derivatives) for sizes, traced in traces], why
        except ArchiveError as error:
            why = f"JAX can't export it for every size: {_first_line(error.__cause__ or error)}"
    single = program.differentiable if derivatives else program.at
    return [_exported(program.name, sizes, single(sizes), platforms, derivatives) for sizes in kept], why


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _symbolic_traces(program: Program) -> list[tuple[Mapping[str, int], Traced]]:
    """Return pairs `(fixed sizes, trace)`: first the trace for all sizes, without fixed ones, then one for each set of
    smaller sizes.
    """
    bounds, least = program.symbols.bounds, program.symbols.least
    apart = {
        symbol: [None, *range(its.min, least[symbol])]
        for symbol, its in bounds.items()
        if its.min < min(its.max, least[symbol])
    }
    if prod(map(len, apart.values())) > 2**_MAX_SMALL_DIMENSIONS:
        raise ArchiveError(
            f"{program.name} has {len(apart)} dimensions that may be empty, or whose smallest sizes it tests for; at "
            f"most {_MAX_SMALL_DIMENSIONS} can be saved.\n  Hint: let the others start at 1, or above the tested sizes."
        )
    sizes = [
        {symbol: size for symbol, size in zip(apart, chosen, strict=True) if size is not None}
        for chosen in product(*apart.values())
    ]
    return [
        (fixed, traced)
        for fixed in sizes
        if (traced := program.with_fixed(fixed) if fixed else program.symbolic) is not None
    ]


def _exported(
    name: str, sizes: Mapping[str, int], traced: Traced, platforms: Sequence[str] | None, derivatives: int
) -> Part:
    jaxpr, constants = getattr(traced.closed, "jaxpr", traced.closed), list(traced.closed.consts)

    def run(constants: Sequence[Any], *arrays: Any) -> Any:
        return jax.core.eval_jaxpr(jaxpr, constants, *arrays)  # pyright: ignore

    run.__name__ = name
    try:
        exported = export_closed(run, traced.closed, platforms)
        with undecided_equalities() as undecided:  # derivative rules may run here
            module = exported.serialize(vjp_order=derivatives)
        called_targets(exported.mlir_module_serialized, is_own=True)  # cached for loading in this process
    except Exception as error:  # JAX raises many kinds: host callbacks, platforms, primitives without lowering
        raise ArchiveError(
            f"{name} can't be saved: {_first_line(error)}\n"
            "  Hint: what runs on the host, such as jax.debug.print and jax.pure_callback, can't be in a file."
        ) from error
    if undecided:
        equality = undecided[0]
        raise ArchiveError(
            f"{name} can't be saved with its derivatives: a derivative rule tests `{equality.text}`, which "
            f"holds for some sizes only.\n  at  {place(equality.file, equality.line)}\n"
            "  Hint: save it with derivatives=0."
        )
    return Part(dict(sizes), lambda: bytes(module), lambda: constants, traced.outputs)


def export_closed(
    run: Callable[..., Any], closed: Any, platforms: Sequence[str] | None, bucket: Mapping[str, int] | None = None
) -> export.Exported:
    """Return `run` exported as a function `(constants, *arrays)`, or `(constants, sizes, *arrays)` for a bucket.

    Shapes and dtypes are those of the closed jaxpr, at the bucket's sizes if there is one.
    """
    at = Sizes(bucket or {}, {})
    arguments: list[Any] = [[jax.ShapeDtypeStruct(jax.numpy.shape(c), jax.typeof(c).dtype) for c in closed.consts]]
    if bucket is not None:
        arguments.append({symbol: jax.ShapeDtypeStruct((), "int32") for symbol in bucket})
    for aval in closed.in_avals:
        arguments.append(jax.ShapeDtypeStruct(aval.shape if bucket is None else at.shape(aval.shape), aval.dtype))
    with without_held_frames():
        return export.export(jax.jit(run), platforms=platforms)(*arguments)


@dataclass(eq=False)
class ExportedProgram:
    """Program from a file, with the interface of `Program` but without the function."""

    name: str
    file: str
    line: int
    symbols: Symbols
    parts: Sequence[Part]
    why_each_shape: str
    why_apart: str
    is_trusted: bool
    written_by: str  # version of JAX

    def __post_init__(self) -> None:
        # Release 0.1.0 didn't write the shape to optimize for as the first part.
        opt = (part.outputs for part in self.parts if self.why_each_shape and part.sizes == self.symbols.opt)
        self.outputs = next(opt, self.parts[0].outputs)
        self.named_arrays: dict[str, Any] = {}
        self.function = _MissingFunction(self.name, self.file, self.line)
        self._modules: dict[int, export.Exported] = {}

    def at(self, sizes: Mapping[str, int]) -> Callable[..., Any]:
        __tracebackhide__ = True
        i = self._part(sizes)
        return lambda *arrays: self._run(i, arrays)

    differentiable = at

    def outputs_at(self, sizes: Mapping[str, int]) -> Outputs:
        return self.parts[self._part(sizes)].outputs

    def _part(self, sizes: Mapping[str, int]) -> int:
        __tracebackhide__ = True
        for i, part in enumerate(self.parts):
            fixed = all(sizes[symbol] == size for symbol, size in part.sizes.items())
            if fixed and self.symbols.are_traced({s: size for s, size in sizes.items() if s not in part.sizes}):
                return i
        least = max(self.symbols.least.values(), default=1)
        there = "; ".join(filter(None, (sizes_text(part.sizes) for part in self.parts)))
        why = f"  each shape was traced separately: {self.why_each_shape}\n" if self.why_each_shape else ""
        raise InputShapeError(
            f"the file has no program for {sizes_text(sizes)}.\n"
            f"  there is {there or f'one for sizes of at least {least}'}\n{why}{called_at()}"
            "  Hint: call the executable with these sizes before it is saved."
        )

    def _run(self, i: int, arrays: Sequence[Any]) -> Any:
        __tracebackhide__ = True
        part = self.parts[i]
        if i not in self._modules:
            with without_held_frames():
                self._modules[i] = self.read_module(part.module())
        module, constants = self._modules[i], list(part.constants())

        def run(*arrays: Any) -> Any:
            return module.call(constants, *arrays)

        call: Any = run
        # JAX's own error for a missing derivative has no hint.
        if not module.has_vjp():
            call = cast(Any, jax.custom_vjp(run))
            call.defvjp(self._refuse_derivative, self._refuse_derivative)
        with without_held_frames():
            return jax.tree.unflatten(part.outputs.structure, call(*arrays))

    def read_module(self, content: bytes) -> export.Exported:
        """Return a program of the file, deserialized; raise ArchiveError if it may not or can't run here."""
        try:
            module = export.deserialize(bytearray(content))
            _check_calls(module, self.is_trusted)
        except ArchiveError:
            raise
        except Exception as error:  # flatbuffers, MLIR and JAX raise many kinds of errors
            message, by = f"the file's program can't be read: {type(error).__name__}: {error!s:.300}.", self.written_by
            if by not in ("", jax.__version__):
                message += f"\n  Hint: JAX {by:.20} wrote it; load it with that version, not {jax.__version__}."
            raise ArchiveError(message) from error
        here = jax.default_backend()
        if not _PLATFORMS.get(here, {here}) & set(module.platforms):
            raise ArchiveError(
                f"the file is for {', '.join(module.platforms)}; this process runs on {here}.\n"
                f"  Hint: save it with platforms={(*module.platforms, here)}."
            )
        return module

    def _refuse_derivative(self, *values: Any) -> Any:
        __tracebackhide__ = True
        raise TransformationError(
            f"{self.name} was saved without its derivative.\n{called_at()}"
            "  Hint: exe.save(path, derivatives=1), or differentiate the function that it was compiled from."
        )

    def discard(self, sizes: Mapping[str, int]) -> None: ...

    def why(self, sizes: Mapping[str, int]) -> str:
        return "from a file"


def _check_calls(module: export.Exported, is_trusted: bool) -> None:
    """Raise ArchiveError for a program that calls into this process: a custom call can name any function.

    JAX checks custom calls when it exports, but not when it deserializes, nor in a derivative that is read later.
    """
    allowed = stable_targets() - (frozenset() if is_trusted else _RUN_CODE)
    derivative: export.Exported | None = module
    while derivative is not None:
        if others := called_targets(derivative.mlir_module_serialized) - allowed:
            name, does, hint = min(others), "nothing that Executable.save writes does", "compile the function again"
            if name in _RUN_CODE:
                does = "runs code that the file brings"
                hint = "if it is your own: load(path, trust_native_code=True)"
            raise ArchiveError(f"the file's program calls {name!r:.80}, which {does}.\n  Hint: {hint}.")
        derivative = derivative.vjp() if derivative.has_vjp() else None


class _MissingFunction:
    """Stand-in for the missing function of a file: its name and place."""

    def __init__(self, name: str, file: str, line: int) -> None:
        self.__name__ = name
        self.__code__ = SimpleNamespace(co_filename=file, co_firstlineno=line)

    def __call__(self) -> None:
        raise TransformationError(f"{self.__name__} was loaded from a file, which holds no Python.")
