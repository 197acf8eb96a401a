"""Executable: the result of `compile()`, a program for all compiled shapes that is called like the function."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, NoReturn, Self

import jax
import jax.numpy as jnp

from explorer.aot.calls import Calls
from explorer.aot.inputs import DimensionInputInfo, InputInfo, OutputInfo, key_like
from explorer.aot.report import compile_ahead, dynamic_report
from explorer.aot.saving import load, save
from explorer.capture.readers.jaxpr import short_type
from explorer.capture.sources import called_at
from explorer.errors import ArchiveError, TransformationError
from explorer.model.capture import Capture
from explorer.model.results.dynamic_report import DynamicReport, Specialization
from explorer.view.display import inert

_OF_COMPILED = frozenset(name for name in dir(jax.stages.Compiled) if not name.startswith("_"))


class Executable(Calls):
    """A compiled function. Call it with the arguments that were described to compile(), by position or name.

    A call is checked before it runs. The first call with new sizes compiles for them. Several threads may call at the
    same time; each shape is compiled once. Under `jax.jit`, `jax.grad` and `jax.vmap` the executable becomes part of
    their program. Methods that concern one program, such as `as_text`, use the shape that was optimized for.

    Raises on a call:
        MissingArgumentError, ExtraArgumentError, DuplicateArgumentError: Arguments differ from the compiled signature.
        NotAnArrayError, InputStructureError, InputShapeError, InputRankError, InputDtypeError, InputDeviceError: An
            argument doesn't fit its description.

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

    # Descriptions ----------------------------------------------------------------------------------------------------

    @property
    def input_infos(self) -> dict[str, InputInfo | DimensionInputInfo]:
        """Description of each input, by name."""
        return dict(self._symbols.inputs)

    @property
    def output_infos(self) -> dict[str, OutputInfo]:
        """Description of each output, by name: `result`, or its place in the returned tree.

        A size that depends on the inputs is an expression. If each shape is traced separately, it is the size that was
        optimized for.
        """
        return dict(self._program.outputs.infos)

    def get_input_info(self) -> dict[str, InputInfo | DimensionInputInfo]:
        """Return `input_infos`, under the name that older Tripy code uses.

        Example:
            >>> import explorer
            >>> vector, scalar = explorer.InputInfo((4,), "float32"), explorer.InputInfo((), "float32")
            >>> exe = explorer.compile(lambda x, y: x + y, args=[vector, scalar])
            >>> exe.get_input_info()["y"], exe.get_output_info()
            (InputInfo((), float32), {'result': OutputInfo((4,), float32)})
        """
        return self.input_infos

    def get_output_info(self) -> dict[str, OutputInfo]:
        """Return `output_infos`, under the name that older Tripy code uses."""
        return self.output_infos

    @property
    def dynamic_report(self) -> DynamicReport:
        """Report on varying sizes so far: buckets or specializations, the reason, and the cost."""
        return dynamic_report(self)

    @property
    def specializations(self) -> tuple[Specialization, ...]:
        """Return the specialization of each compiled binary: padded first, then exact, least recently used first."""
        padded = [each.binary for each in (self.padded.ready if self.padded is not None else ())]
        return tuple(binary.specialization for binary in (*padded, *(binary for _, binary in self.binaries)))

    def compile_ahead(self, sizes: Sequence[Mapping[str, int]] | None = None, *, progress: bool | None = None) -> Self:
        """Compile now what later calls may need, and wait for it.

        Args:
            sizes: Sizes by dimension; each dict gets a binary of its own. None compiles the buckets of a padded
                executable: all that `buckets` named, or of the powers of two the few that save most if all sizes are
                called equally often.
            progress: Whether to show a progress bar after one second; None shows it in interactive sessions.

        Returns:
            This executable.

        Raises:
            OptionError: Sizes are invalid.
            ExploreError: Compiling failed.

        Example:
            >>> import explorer as ex
            >>> batch = ex.NamedDimension("batch", 1, 8, 64)
            >>> double = ex.compile(lambda x: x * 2, args=[ex.InputInfo((batch, 2), "float32")], dynamic="pad")
            >>> [row.sizes["batch"] for row in double.compile_ahead().dynamic_report.binaries]
            [64, 32, 16, 8, 4, 2, 1]
        """
        __tracebackhide__ = True
        compile_ahead(self, self._binaries, sizes, progress)
        return self

    def explore(self, /, *args: Any, **kwargs: Any) -> Capture:
        """Return the capture of the compile for a call's shapes, or without arguments for the shape optimized for.

        For a padded executable it is the capture of the bucket that serves the call, or of the largest bucket.
        """
        if not args and not kwargs:
            return self._first.capture
        sizes = self._bound(args, kwargs)[2]
        binary = self._binaries.ready(sizes)
        if binary is None and self.padded is not None and self.padded.is_for(sizes):
            binary = self.padded.binary(sizes)
        return (binary or self._binaries.binary(sizes, "explored")).capture

    def example_arguments(self) -> tuple[Any, ...]:
        """Return arguments for `compiled`, in the shapes to optimize for: arrays of ones, and keys where an input is a
        PRNG key.
        """
        leaves = [s if isinstance(s, int) else _ones(s) for s in self._symbols.structs(self._symbols.opt)]
        return self._binaries.arguments(leaves)

    # As jax.jit and jax.stages.Compiled ------------------------------------------------------------------------------

    def trace(self, /, *args: Any, **kwargs: Any) -> jax.stages.Traced:
        """Return the program as `jax.jit(f).trace` does, for the arguments of a call or their shapes and dtypes.

        Without arguments it is the program for every size, with dimensions as JAX's symbols. So
        `jax.export.export(exe)()` exports the whole executable, and `jax.export.export(exe)(…)` the program for those
        arguments, which may have symbolic dimensions of their own.

        Raises:
            InputError: The arguments don't fit their descriptions.
            TransformationError: No arguments were given, and no symbol can stand for the varying sizes.

        Example:
            >>> import explorer as ex, jax
            >>> batch = ex.NamedDimension("batch", 1, 8, 64)
            >>> double = ex.compile(lambda x: x * 2, args=[ex.InputInfo((batch, 2), "float32")])
            >>> jax.export.export(double)().out_avals
            (ShapedArray(float32[batch,2]),)
        """
        __tracebackhide__ = True
        if not args and not kwargs and self._parameters:
            self._check_symbolic()
            args, kwargs = self._described(self._symbols.symbolic())
        sizes = [p.name for p in self._parameters if p.paths == ((),) and isinstance(p.infos[0], DimensionInputInfo)]

        def run(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            _, leaves, sizes = self._bound(args, kwargs)
            infos = self._symbols.inputs.values()
            arrays = [leaf for leaf, info in zip(leaves, infos, strict=True) if isinstance(info, InputInfo)]
            return self._program.at(sizes)(*arrays)

        self._bound(args, kwargs)  # arguments that don't fit are refused before a trace begins
        run.__name__ = run.__qualname__ = self._program.name
        # Here jax.jit finds the arguments' names, and the positions of the static ones.
        run.__dict__["__signature__"] = self.__signature__
        return jax.jit(run, static_argnames=sizes or None).trace(*args, **kwargs)

    def _check_symbolic(self) -> None:
        __tracebackhide__ = True
        infos = self._symbols.inputs.values()
        why = self._program.why_each_shape or self._program.why_apart
        if any(isinstance(i, DimensionInputInfo) and i.value_bounds.min < i.value_bounds.max for i in infos):
            why = "one of its arguments is a size"
        if why and self._symbols.is_dynamic:
            raise TransformationError(
                f"{self._program.name} has no program for every size at once: {why}.\n{called_at()}"
                "  Hint: give the arguments of a call, or their shapes: jax.ShapeDtypeStruct((8, 2), jnp.float32)."
            )

    def _described(self, sizes: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the described inputs at these sizes as `(args, kwargs)` of shapes and dtypes."""
        values = list(zip(self._parameters, self._binaries.in_trees(self._symbols.structs(sizes)), strict=True))
        keyword = inspect.Parameter.KEYWORD_ONLY
        by_position = tuple(value for p, value in values if p.kind is not keyword)
        return by_position, {p.name: value for p, value in values if p.kind is keyword}

    def lower(self, /, *args: Any, **kwargs: Any) -> jax.stages.Lowered:
        """Return the same as `jax.jit(f).lower`; without arguments, for the shape that was optimized for.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo(((1, 4, 8),), "float32")])
            >>> exe.eval_shape(jnp.ones(3)).shape, exe.lower(jnp.ones(3)).compile()(jnp.ones(3)).tolist()
            ((3,), [2.0, 2.0, 2.0])
        """
        __tracebackhide__ = True
        if not args and not kwargs:
            args, kwargs = self._described(self._symbols.opt)
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the shapes and dtypes of a call's result, in its tree; nothing runs."""
        __tracebackhide__ = True
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Drop all binaries except padded ones and the one for the shape that was optimized for."""
        self._binaries.clear(keep=self._first)

    @property
    def compiled(self) -> jax.stages.Compiled:
        """JAX's own executable for the shape that was optimized for; it takes arrays of exactly this shape."""
        return self._opt.compiled

    def as_text(self) -> str | None:
        """Return the optimized HLO as text, for the shape that was optimized for; None if JAX has no text of it.

        Example:
            >>> import explorer
            >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((4,), "float32")])
            >>> exe.as_text().startswith("HloModule")
            True
        """
        return self.compiled.as_text()

    def cost_analysis(self) -> Any:
        """Return XLA's estimate of operations and bytes, for the shape that was optimized for.

        Example:
            >>> import explorer
            >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((4,), "float32")])
            >>> exe.cost_analysis()["flops"]
            4.0
        """
        return self.compiled.cost_analysis()

    def memory_analysis(self) -> Any:
        """Return XLA's buffer sizes in bytes, for the shape that was optimized for."""
        return self.compiled.memory_analysis()

    def __getattr__(self, name: str) -> Any:
        # Other attributes of a jax.stages.Compiled: in_tree, out_avals, input_shardings, runtime_executable, ….
        if name in _OF_COMPILED and "_first" in self.__dict__:
            return getattr(self.compiled, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # Files -----------------------------------------------------------------------------------------------------------

    def save(
        self,
        path: str | PathLike[str],
        *,
        platforms: Sequence[str] | None = None,
        native: bool = False,
        derivatives: int = 0,
    ) -> None:
        """Write one file with everything that is needed to run: StableHLO, constants, inputs and outputs.

        The file is replaced atomically: if anything fails, the old file remains. Each constant is stored once, however
        many shapes there are. If each shape was traced separately, the file has the shapes that were called and the
        one to optimize for; a `TracedPerShapeWarning` lists them if others are missing. Of a padded executable it has
        the buckets that are compiled; `compile_ahead` compiles more.

        Args:
            path: Path of the file.
            platforms: Platforms to run on, such as `("cpu", "cuda")`; None is the present one.
            native: Whether to save the binaries too. They load fast on the same kind of machine with the same JAX, if
                the reader trusts the file, and are ignored elsewhere.
            derivatives: How many times the loaded executable can be differentiated in reverse mode; each makes the
                file larger.

        Raises:
            ArchiveError: A part can't be stored: a host callback, a class that JSON can't describe.
            OptionError: A platform is unknown, or `derivatives` isn't an int of at least 0.
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
        plan, binaries, capture = self.plan, self._binaries, self.explore()
        save(path, plan, binaries, self.padded, capture, platforms=platforms, native=native, derivatives=derivatives)

    @classmethod
    def load(
        cls, path: str | PathLike[str], *, trust_native_code: bool = False, types: Sequence[type] = ()
    ) -> Executable:
        """Read a file that `save` wrote. Reading runs nothing in the file and unpickles nothing.

        With native code nothing is traced, lowered or compiled; most of the time goes into XLA's loader, which links
        the code. A small function takes 5.5 ms to load and call in a new process (loader 1.5 ms). Other ways take
        3.5 ms (`jax.experimental.serialize_executable`, which unpickles), 12 ms (`jax.jit` with a full persistent
        cache, which traces and lowers) and 28 ms (`jax.jit` alone). A training step of 24 layers takes 5.2 s (loader
        4.4 s), and 5.6, 6.5 and 28.9 s (jax 0.10.2 on two cores; tests/benchmarks/bench_files.py).

        Args:
            path: Path of the file.
            trust_native_code: Whether the file's binaries may run, if they were made for exactly this kind of machine
                and this JAX, and kernels that its program contains (Mosaic). They can do anything that a program can
                do: trust only files of your own.
            types: Classes of the inputs and outputs that aren't Python's own: dataclasses, named tuples.

        Raises:
            ArchiveError: The file isn't an executable, is truncated, altered, newer or for other platforms, needs a
                class, or has what `save` never writes: an XLA option that no level sets, a call out of the program.
            OSError: The file can't be read.
        """
        return cls(*load(path, trust_native_code=trust_native_code, types=types))

    def __copy__(self) -> Executable:
        return self  # it has no state that a copy could preserve

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
        each = ", each shape traced separately" if self._program.why_each_shape else ""
        each += ", padded" if self.padded is not None else ""
        return inert(f"Executable({self.__name__}({inputs}) → {outputs}{each})")  # a file may have any names


def _ones(struct: jax.ShapeDtypeStruct) -> jax.Array:
    if jnp.issubdtype(struct.dtype, jax.dtypes.prng_key):
        return jax.random.split(key_like(struct.dtype), struct.shape)
    return jax.device_put(jnp.ones(struct.shape, struct.dtype), struct.sharding)


def _short(dtype: Any, shape: Sequence[int | str]) -> str:
    """Return a type as text: `f32[batch,8]`."""
    return short_type(jax.ShapeDtypeStruct((), dtype))[:-1] + ",".join(map(str, shape)) + "]"
