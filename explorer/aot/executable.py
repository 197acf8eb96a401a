"""What compile() gives: a program for all the shapes it was compiled for, called like the function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from types import MethodType
from typing import Any, NoReturn, Self, cast
from weakref import WeakMethod

import jax
import jax.numpy as jnp
from jax.core import Tracer

from explorer.aot.arguments import as_jit_takes_it, bind, firm
from explorer.aot.binaries import Binaries, Binary, Dispatch, Plan
from explorer.aot.exported import ExportedProgram
from explorer.aot.inputs import DimensionInputInfo, InputInfo, OutputInfo, key_like
from explorer.aot.levels import Autotuning
from explorer.aot.padding.padded_calls import UNPADDED, PaddedCalls
from explorer.aot.padding.report import checked_sizes, compile_ahead, dynamic_report
from explorer.aot.saving import load, save
from explorer.aot.surface import CompiledSurface
from explorer.aot.symbols import check_devices
from explorer.capture.readers.jaxpr import short_type
from explorer.capture.sources import called_at
from explorer.capture.trace_errors import explain_donated, explain_trace_error, guarded
from explorer.errors import ArchiveError, InputError, TransformationError
from explorer.model.capture import Capture
from explorer.model.declared import Displayable
from explorer.model.results.dynamic_report import DynamicReport, Specialization


class Executable(CompiledSurface, Displayable):
    """A compiled function. Call it with the arguments that were described to compile(), by position or name.

    A call is checked before it runs. The first with other sizes than before compiles for them; several threads may call
    at once, and each shape is compiled once. Under `jax.jit`, `jax.grad` and `jax.vmap` it is part of their program.

    Raises on a call:
        MissingArgumentError, ExtraArgumentError, DuplicateArgumentError: The arguments are not the ones compiled for.
        NotAnArrayError, InputStructureError, InputShapeError, InputRankError, InputDtypeError, InputDeviceError: One of
            them isn't what was compiled for.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> def scale(x, by):
        ...     return x * by
        >>> exe = explorer.compile(scale, args=[explorer.InputInfo((4,), "float32"), explorer.InputInfo((), "float32")])
        >>> exe(jnp.ones(4), by=jnp.float32(3)).tolist()
        [3.0, 3.0, 3.0, 3.0]
        >>> exe.input_infos["x"].shape, exe.output_infos
        ((4,), {'result': OutputInfo((4,), float32)})
        >>> len(exe.specializations), exe.explore().hlo.name
        (1, 'hlo')
    """

    def __init__(
        self,
        plan: Plan,
        ready: Sequence[tuple[Mapping[str, int], Binary]] = (),
        padded: Sequence[tuple[Mapping[str, int], Binary]] = (),
    ) -> None:
        __tracebackhide__ = True
        self.plan = plan
        self._parameters = plan.parameters
        self._program = program = plan.program
        self._symbols = program.symbols
        self._dispatch = Dispatch(plan, _weakly(self._call), _weakly(self._answer_by))
        self._binaries = Binaries(plan, on_drop=self._dispatch.clear)
        self.autotuning: Autotuning | None = None  # what optimization level 5 measured
        for sizes, binary in ready:
            self._binaries.add(sizes, binary)
        self.padded = self._make_padded(padded)  # what serves padded calls, if any are
        if self.padded is None:
            self._first = self._binaries.binary(
                program.symbols.opt, "optimised for" if program.symbols.is_dynamic else "compiled"
            )
        else:
            self._first = self.padded.largest.binary
        self._take_names()
        if self._dispatch.function is not None:
            self._answer_by(self._dispatch.function)

    def _answer_by(self, function: Callable[..., Any]) -> None:
        """Have calls answered by a function.

        In a class of its own, for that is where Python looks for __call__; a method that calls the function would cost
        a tenth of a small call.
        """
        if self.plan.donated:
            function = guarded(function, self._explain_donated)
        call = {"__call__": staticmethod(function), "__module__": __name__}
        self.__class__ = cast(type[Executable], type("Executable", (Executable,), call))  # pyright: ignore[reportAttributeAccessIssue]

    def __getattribute__(self, name: str) -> Any:
        # The function that answers calls doesn't hold the executable; what is taken out to be called alone does.
        return MethodType(Executable.__call__, self) if name == "__call__" else super().__getattribute__(name)

    def __del__(self) -> None:
        # The class that was made for it waits for the garbage collector, as all classes do. What was compiled doesn't.
        dispatch = vars(self).get("_dispatch")
        if dispatch is not None:
            dispatch.clear()

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return self._call(*args, **kwargs)[0]

    def _call(self, /, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Run a call that the dispatcher has no entry for: refuse what doesn't fit, compile for sizes that are new.

        Returns:
            The result, and the dispatcher's entry for calls of this kind; None where it may not have one.
        """
        __tracebackhide__ = True
        ordered = self._dispatch.by_position(args, kwargs) if kwargs else None
        if ordered is not None:
            return self(*ordered), None
        values, leaves, sizes = self._bound(args, kwargs)
        infos = list(self._symbols.inputs.values())
        if any(isinstance(leaf, Tracer) for leaf in leaves):
            return self._call_under_transformation(sizes, leaves), None
        given = [as_jit_takes_it(info, leaf) for info, leaf in zip(infos, leaves, strict=True)]
        binary = self._binaries.ready(sizes)
        if binary is None:
            if self.padded is not None and self.padded.is_for(sizes):
                check_devices(list(self._symbols.inputs), given, self._first.devices)
                result = self.padded.call(sizes, given, self._binaries.arguments)
                if result is not UNPADDED:
                    self._donate(values)
                    return result, None
            binary = self._binaries.binary(sizes)
        check_devices(list(self._symbols.inputs), given, binary.devices)
        result, fast_path = binary.call(*self._binaries.arguments(given))
        return result, self._dispatch.fast_path(fast_path, (args, kwargs), values, leaves, given)

    def _make_padded(self, ready: Sequence[tuple[Mapping[str, int], Binary]]) -> PaddedCalls | None:
        __tracebackhide__ = True
        padded, dynamic, binaries = self.plan.padded, self.plan.dynamic, self._binaries
        if dynamic.buckets is None or padded is None:
            return None
        return PaddedCalls(
            self._symbols,
            padded,
            dynamic.buckets,
            lambda bucket, reason: binaries.compile_padded(padded, bucket, reason),
            lambda sizes, reason: binaries.binary(sizes, reason),
            ready,
        )

    def _donate(self, values: Sequence[Any]) -> None:
        """A padded call took copies: what the user gave away is gone all the same, whatever its size."""
        for parameter, value in zip(self._parameters, values, strict=True):
            if parameter.name in self.plan.donated:
                for leaf in parameter.leaves(value):
                    if isinstance(leaf, jax.Array) and not leaf.is_deleted():
                        leaf.delete()

    def _explain_donated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
        """The error for a call with an array that an earlier one was given; None if it has none."""
        try:
            values = bind(self._parameters, args, kwargs)
        except InputError:
            return None
        return explain_donated(self.__name__, dict(zip([p.name for p in self._parameters], values, strict=True)))

    def _call_under_transformation(self, sizes: Mapping[str, int], leaves: Sequence[Any]) -> Any:
        """The program under a transformation of JAX's."""
        __tracebackhide__ = True
        infos = self._symbols.inputs.values()
        try:
            arrays = [firm(i, leaf) for i, leaf in zip(infos, leaves, strict=True) if isinstance(i, InputInfo)]
            return self._binaries.differentiable(sizes)(*arrays)
        except jax.errors.UnexpectedTracerError as error:  # an argument that another trace left behind
            kind, message = explain_trace_error(error, self.__name__, "called")
            raise kind(message, self._opt.capture) from error
        except NotImplementedError as error:
            if not isinstance(self._program, ExportedProgram):
                raise
            raise TransformationError(
                f"{self.__name__} came from a file, and can't be transformed so: {error}.\n{called_at()}"
                "  Hint: jax.vmap and forward-mode derivatives need the function that it was compiled from."
            ) from error

    @property
    def input_infos(self) -> dict[str, InputInfo | DimensionInputInfo]:
        """By name, what each input must look like."""
        return dict(self._symbols.inputs)

    @property
    def output_infos(self) -> dict[str, OutputInfo]:
        """By name, what each output looks like: `result`, or its place in the returned tree.

        A size that depends on the inputs' is the expression; where each shape is traced for itself there is none, and
        it is the size that was optimised for.
        """
        return dict(self._program.outputs.infos)

    def get_input_info(self) -> dict[str, InputInfo | DimensionInputInfo]:
        """The same as `input_infos`, as older Tripy code calls it.

        Example:
            >>> import explorer
            >>> vector, scalar = explorer.InputInfo((4,), "float32"), explorer.InputInfo((), "float32")
            >>> exe = explorer.compile(lambda x, y: x + y, args=[vector, scalar])
            >>> exe.get_input_info()["y"], exe.get_output_info()
            (InputInfo((), float32), {'result': OutputInfo((4,), float32)})
        """
        return self.input_infos

    def get_output_info(self) -> dict[str, OutputInfo]:
        """The same as `output_infos`, as older Tripy code calls it."""
        return self.output_infos

    @property
    def dynamic_report(self) -> DynamicReport:
        """How sizes that vary are served: padded to which buckets or specialised, why, and what it costs, by now."""
        return dynamic_report(
            self.__name__, self._symbols, self.plan.dynamic, self.padded, self._binaries.by_sizes, self._program
        )

    def compile_ahead(self, sizes: Sequence[Mapping[str, int]] | None = None, *, progress: bool | None = None) -> Self:
        """Compile now what calls may need later, and wait for it.

        Args:
            sizes: By dimension, each for a binary of its own. None is every bucket of what is padded; where those are
                powers of two, the few that save most if all sizes are called alike.
            progress: Whether to show a bar once a second has gone by; None shows it where somebody can look on.

        Raises:
            OptionError: Sizes are none.
            ExploreError: Compiling failed.

        Example:
            >>> import explorer as ex
            >>> batch = ex.NamedDimension("batch", 1, 8, 64)
            >>> double = ex.compile(lambda x: x * 2, args=[ex.InputInfo((batch, 2), "float32")], dynamic="pad")
            >>> [row.sizes["batch"] for row in double.compile_ahead().dynamic_report.binaries]
            [64, 32, 16, 8, 4, 2, 1]
        """
        __tracebackhide__ = True
        wanted = None if sizes is None else [checked_sizes(self._symbols, each) for each in sizes]
        compile_ahead(wanted, self.padded, self._binaries, progress)
        return self

    @property
    def specializations(self) -> tuple[Specialization, ...]:
        """The binaries there are, the least recently compiled first."""
        padded = self.padded.ready if self.padded is not None else ()
        return tuple(
            binary.specialization
            for binary in (*(each.binary for each in padded), *(binary for _, binary in self._binaries.by_sizes))
        )

    def explore(self, /, *args: Any, **kwargs: Any) -> Capture:
        """What the compiler did: for the shapes of a call, or without one for those that were optimised for.

        Of what is padded it is the program of the bucket that serves the call, or of the largest.
        """
        if not args and not kwargs:
            return self._first.capture
        sizes = self._bound(args, kwargs)[2]
        binary = self._binaries.ready(sizes)
        if binary is None and self.padded is not None and self.padded.is_for(sizes):
            binary = self.padded.binary(sizes)
        return (binary or self._binaries.binary(sizes, "explored")).capture

    def run_opt(self, arguments: Sequence[Any]) -> Any:
        """Run the binary that was optimised for, without any check; for who measures it."""
        return self._opt.compiled(*arguments)

    def example_arguments(self) -> tuple[Any, ...]:
        """What `run_opt` takes: ones, of the shapes to optimise for."""
        leaves = [s if isinstance(s, int) else _ones(s) for s in self._symbols.structs(self._symbols.opt)]
        return self._binaries.arguments(leaves)

    @property
    def binaries(self) -> list[tuple[dict[str, int], Binary]]:
        """The sizes that there are binaries for, and those; for who saves them."""
        return self._binaries.by_sizes

    def recompile(self, sizes: Mapping[str, int]) -> Any:
        """A `jax.stages.Compiled` for these sizes that has never run; for who saves it."""
        return self._binaries.compile(sizes, "saved").compiled

    def recompile_padded(self, bucket: Mapping[str, int]) -> Any:
        """The same for a bucket."""
        assert self.plan.padded is not None  # who has a bucket has a program for it
        return self._binaries.compile_padded(self.plan.padded, bucket, "saved").compiled

    def save(
        self,
        path: str | PathLike[str],
        *,
        platforms: Sequence[str] | None = None,
        native: bool = False,
        derivatives: int = 0,
    ) -> None:
        """Write everything that is needed to run it to one file: StableHLO, constants, what it takes and returns.

        The file is replaced at once and whole: if anything fails, what was there before is there still. A constant is
        in it once, however many shapes there are. Where each shape was traced by itself it has those that were called
        and the one to optimise for; a `TracedPerShapeWarning` names them, if there are more. Of what is padded it has
        the buckets that are compiled by now: `compile_ahead` makes them more.

        Args:
            path: Of the file.
            platforms: Those it shall run on, such as `("cpu", "cuda")`; None is the present one.
            native: Whether to save the binaries too. They load fast, on the same kind of machine with the same JAX, for
                who trusts the file; elsewhere they are passed over.
            derivatives: How often the loaded one can be differentiated, in reverse mode; each makes the file larger.

        Raises:
            ArchiveError: Something of it can't be in a file: a host callback, a class that JSON can't describe.
            OptionError: A platform is none, or `derivatives` no number of times.
            OSError: The file can't be written.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> from pathlib import Path
            >>> from tempfile import TemporaryDirectory
            >>> with TemporaryDirectory() as folder:
            ...     path = Path(folder, "double.explorer")
            ...     explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((4,), "float32")]).save(path)
            ...     double = explorer.Executable.load(path)
            >>> double(jnp.ones(4)).tolist()
            [2.0, 2.0, 2.0, 2.0]
        """
        save(self, path, platforms=platforms, native=native, derivatives=derivatives)

    @classmethod
    def load(
        cls, path: str | PathLike[str], *, trust_native_code: bool = False, types: Sequence[type] = ()
    ) -> Executable:
        """Read what `save` wrote. Nothing in the file is executed while it is read, and nothing is unpickled.

        With native code nothing is traced, lowered or compiled. What is left is mostly XLA's own loader, which links
        the code. A small function, load and first call in a new process: 5.5 ms, of which the loader takes 1.5; 3.5 by
        `jax.experimental.serialize_executable`, which unpickles; 12 by `jax.jit` with JAX's persistent cache filled,
        which traces and lowers; 28 by `jax.jit` without. A training step of 24 layers: 5.2 s, of which the loader takes
        4.4; 5.6; 6.5; 28.9 (jax 0.10.2 on two cores; tests/benchmarks/bench_files.py).

        Args:
            path: Of the file.
            trust_native_code: Whether binaries in the file may be run, if they were made for exactly this kind of
                machine and this JAX, and kernels that its program brings along (Mosaic). They can do what any program
                can: say so only for a file of your own.
            types: Classes of the inputs and outputs that aren't Python's own: dataclasses, named tuples.

        Raises:
            ArchiveError: The file is none, truncated, altered, newer, for other platforms, needs a class, or asks for
                what `save` never writes: an option of XLA that no level sets, a call out of the program.
            OSError: The file can't be read.
        """
        return load(cls, path, trust_native_code=trust_native_code, types=types)

    def __copy__(self) -> Executable:
        return self  # nothing of it changes that a copy could keep

    def __deepcopy__(self, memo: dict[int, Any]) -> Executable:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise ArchiveError(
            f"{self.__name__} can't be pickled: an executable is written to a file of its own.\n"
            "  Hint: exe.save(path), and ex.Executable.load(path) where it is needed."
        )

    def __repr__(self) -> str:
        shapes = self._symbols.shapes({symbol: symbol for symbol in self._symbols.bounds})
        inputs = ", ".join(
            f"{name}: {_short(info.dtype, shapes[name]) if isinstance(info, InputInfo) else 'int'}"
            for name, info in self.input_infos.items()
        )
        outputs = ", ".join(_short(info.dtype, info.shape) for info in self.output_infos.values())
        each = ", each shape traced by itself" if self._program.why_each_shape else ""
        each += ", padded" if self.padded is not None else ""
        return f"Executable({self.__name__}({inputs}) → {outputs}{each})"


def _weakly(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that doesn't hold its object: held by the object, it would leave it to the garbage collector."""
    reference = WeakMethod(method)

    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return cast(Callable[..., Any], reference())(*args, **kwargs)

    return call


def _ones(struct: jax.ShapeDtypeStruct) -> jax.Array:
    if jnp.issubdtype(struct.dtype, jax.dtypes.prng_key):
        return jax.random.split(key_like(struct.dtype), struct.shape)
    return jax.device_put(jnp.ones(struct.shape, struct.dtype), struct.sharding)


def _short(dtype: Any, shape: Sequence[int | str]) -> str:
    """`f32[batch,8]`."""
    return short_type(jax.ShapeDtypeStruct((), dtype))[:-1] + ",".join(map(str, shape)) + "]"
