"""What code around `jax.jit` and `jax.stages.Compiled` asks of an executable beside a call."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, cast

import jax

from explorer.aot.arguments import Parameter, bind
from explorer.aot.binaries import Binaries, Binary
from explorer.aot.exported import ExportedProgram
from explorer.aot.inputs import DimensionInputInfo, InputInfo
from explorer.aot.padding.padded_calls import PaddedCalls
from explorer.aot.program import Outputs, Program
from explorer.aot.symbols import Symbols, sizes_of
from explorer.capture.sources import called_at
from explorer.errors import TransformationError
from explorer.model.declared import cached_property

_ARRAY = inspect.formatannotation(jax.Array)  # by its place in jaxlib, which nobody writes


_OF_COMPILED = frozenset(name for name in dir(jax.stages.Compiled) if not name.startswith("_"))


class _Parameter(inspect.Parameter):
    def __str__(self) -> str:
        return super().__str__().replace(_ARRAY, "jax.Array")


class _Signature(inspect.Signature):
    def __str__(self) -> str:
        return super().__str__().replace(_ARRAY, "jax.Array")


def signature_of(parameters: Sequence[Parameter], outputs: Outputs) -> inspect.Signature:
    """The parameters with what each takes, and what comes back: `(x: jax.Array, n: int) -> tuple[jax.Array]`."""
    named = [_Parameter(p.name, p.kind, annotation=_kind_of(p)) for p in parameters]
    return _Signature(named, return_annotation=_kind_of_outputs(outputs.structure))


def _kind_of(parameter: Parameter) -> Any:
    if parameter.paths == ((),):
        return int if isinstance(parameter.infos[0], DimensionInputInfo) else jax.Array
    return _plain(cast("Any", type(parameter.example)))


def _kind_of_outputs(structure: Any) -> Any:
    node = structure.node_data()
    if node is None:
        return jax.Array
    children: list[Any] = [_kind_of_outputs(child) for child in structure.children()]
    kind = _plain(node[0])
    return tuple[tuple(children)] if kind is tuple else kind


def _plain(kind: type) -> Any:
    # A file brings no classes along: a signature that named one would be another after loading.
    return kind if kind in (dict, list, tuple) else Any


class CompiledSurface:
    """The parts of an executable that are no call. What is asked of one program is answered for the usual sizes.

    Args:
        _first: What was compiled first: the binary that was optimised for, or the largest padded one.
    """

    _program: Program | ExportedProgram
    _parameters: tuple[Parameter, ...]
    _symbols: Symbols
    _binaries: Binaries
    _first: Binary
    padded: PaddedCalls | None
    __signature__: inspect.Signature

    @cached_property
    def _opt(self) -> Binary:
        """The binary for the sizes that were optimised for; of what is padded it is compiled when it is asked for."""
        return self._first if self.padded is None else self._binaries.binary(self._symbols.opt, "asked for")

    def _take_names(self) -> None:
        function = cast("Any", self._program.function)
        if not isinstance(self._program, ExportedProgram):
            self.__wrapped__ = function
            self.__doc__ = getattr(function, "__doc__", None)
            self.__module__ = getattr(function, "__module__", __name__)
        self.__name__ = self._first.capture.function
        self.__qualname__ = getattr(function, "__qualname__", self.__name__)
        self.__signature__ = signature_of(self._parameters, self._program.outputs)
        named = self.__signature__.parameters.values()
        self.__annotations__ = {p.name: p.annotation for p in named} | {"return": self.__signature__.return_annotation}

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], list[Any], dict[str, int]]:
        """Of a call each parameter's value, the inputs in order, and their sizes, once they are known to fit."""
        __tracebackhide__ = True
        values = bind(self._parameters, args, kwargs)
        leaves = [leaf for p, value in zip(self._parameters, values, strict=True) for leaf in p.leaves(value)]
        return values, leaves, sizes_of(self._symbols, leaves)

    def trace(self, /, *args: Any, **kwargs: Any) -> jax.stages.Traced:
        """The program, as `jax.jit(f).trace` gives it: for the arguments of a call, or only their shapes and dtypes.

        Without arguments it is the program for every size at once, with its dimensions as JAX's symbols. So
        `jax.export.export(exe)()` is the whole executable, and `jax.export.export(exe)(…)` what fits those arguments;
        they may have symbolic dimensions of their own.

        Raises:
            InputError: The arguments are not what was compiled for.
            TransformationError: Without arguments, where no symbol can stand for what varies.

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

        self._bound(args, kwargs)  # what doesn't fit is refused before a trace begins
        run.__name__ = run.__qualname__ = self._program.name
        run.__dict__["__signature__"] = self.__signature__
        return jax.jit(run, static_argnames=sizes or None).trace(*args, **kwargs)

    def _check_symbolic(self) -> None:
        __tracebackhide__ = True
        infos = self._symbols.inputs.values()
        is_dynamic_size = any(
            isinstance(info, DimensionInputInfo) and info.value_bounds.min < info.value_bounds.max for info in infos
        )
        why = (
            "one of its arguments is a size"
            if is_dynamic_size
            else self._program.why_each_shape or self._program.why_apart
        )
        if why and self._symbols.is_dynamic:
            raise TransformationError(
                f"{self._program.name} has no program for every size at once: {why}.\n{called_at()}"
                "  Hint: give the arguments of a call, or their shapes: jax.ShapeDtypeStruct((8, 2), jnp.float32)."
            )

    def _described(self, sizes: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What was described to compile(), at these sizes, as arguments of a call: shapes and dtypes."""
        structs = iter(self._symbols.structs(sizes))
        trees: list[Any] = [jax.tree.structure(p.example) for p in self._parameters]
        filled = [tree.unflatten([next(structs) for _ in range(tree.num_leaves)]) for tree in trees]
        values = list(zip(self._parameters, filled, strict=True))
        keyword = inspect.Parameter.KEYWORD_ONLY
        by_position = tuple(value for p, value in values if p.kind is not keyword)
        return by_position, {p.name: value for p, value in values if p.kind is keyword}

    def lower(self, /, *args: Any, **kwargs: Any) -> jax.stages.Lowered:
        """As `jax.jit(f).lower`; without arguments, for the sizes that were optimised for.

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
        """The shapes and dtypes of what a call would return, in its tree; nothing runs."""
        __tracebackhide__ = True
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Let go of the binaries, but for the one that was optimised for, or those that are padded."""
        self._binaries.clear(keep=self._first)

    @property
    def compiled(self) -> jax.stages.Compiled:
        """JAX's own executable for the sizes that were optimised for, which takes arrays of just these."""
        return self._opt.compiled

    def as_text(self) -> str | None:
        """The optimised HLO, for the sizes that were optimised for.

        Example:
            >>> import explorer
            >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((4,), "float32")])
            >>> exe.as_text().startswith("HloModule")
            True
        """
        return self.compiled.as_text()

    def cost_analysis(self) -> Any:
        """XLA's estimate of operations and bytes, for the sizes that were optimised for.

        Example:
            >>> import explorer
            >>> exe = explorer.compile(lambda x: x * 2, args=[explorer.InputInfo((4,), "float32")])
            >>> exe.cost_analysis()["flops"]
            4.0
        """
        return self.compiled.cost_analysis()

    def memory_analysis(self) -> Any:
        """XLA's account of its buffers, in bytes, for the sizes that were optimised for."""
        return self.compiled.memory_analysis()

    def __getattr__(self, name: str) -> Any:
        # The rest of what a jax.stages.Compiled tells: in_tree, out_avals, input_shardings, runtime_executable, ….
        if name in _OF_COMPILED and "_first" in self.__dict__:
            return getattr(self.compiled, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
