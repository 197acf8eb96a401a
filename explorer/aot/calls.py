"""Calls of an executable: checked, compiled for new sizes, and then answered by JAX's C++ dispatcher."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from types import MethodType
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakMethod

import jax
import jax.numpy as jnp
from jax.core import Tracer

from explorer._jax.dispatch import KeyedArguments, checks_dtypes, dispatcher
from explorer.aot.arguments import as_jit_takes_it, bind, firm, registered_containers, signature_of
from explorer.aot.binaries import Binaries, Binary, Plan
from explorer.aot.exported import ExportedProgram
from explorer.aot.inputs import DimensionInputInfo, InputInfo, key_like
from explorer.aot.levels import Autotuning
from explorer.aot.padded_calls import UNPADDED, PaddedCalls
from explorer.aot.symbols import check_devices, sizes_of
from explorer.capture.sources import called_at
from explorer.capture.trace_errors import explain_donated, explain_trace_error, guarded
from explorer.errors import InputError, TransformationError
from explorer.model.declared import Displayable, cached_property


class Calls(Displayable):
    """Part of an `Executable` that answers calls."""

    # Python looks for the call in the class. There this slot returns the object's own function: a method that forwards
    # to it would cost a tenth of a small call.
    __slots__ = ("__call__", "__dict__", "__weakref__")
    __signature__: inspect.Signature

    if TYPE_CHECKING:

        def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...

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
        self._binaries = binaries = Binaries(plan, on_drop=self._dispatch.clear)
        self.autotuning: Autotuning | None = None  # measurements of optimization level 5
        for sizes, binary in ready:
            binaries.add(sizes, binary)
        self.padded: PaddedCalls | None = None
        if plan.padded is not None and plan.dynamic.buckets is not None:
            self.padded = PaddedCalls(self._symbols, plan.padded, plan.dynamic.buckets, binaries, padded)
        # The binary that was compiled first: for the shape to optimize for, or the largest padded one.
        if self.padded is None:
            reason = "optimised for" if self._symbols.is_dynamic else "compiled"
            self._first = binaries.binary(self._symbols.opt, reason)
        else:
            self._first = self.padded.largest.binary
        self._take_names()
        self._answer_by(self._dispatch.function or _weakly(self._answer))

    def _take_names(self) -> None:
        function = cast("Any", self._program.function)
        if not isinstance(self._program, ExportedProgram):
            self.__wrapped__ = function
            self.__doc__ = getattr(function, "__doc__", None)
            self.__module__ = getattr(function, "__module__", __name__)
        self.__name__ = self._first.capture.function
        self.__qualname__ = getattr(function, "__qualname__", self.__name__)
        self.__signature__ = signature_of(self._parameters, self._program.outputs.structure)
        self.__annotations__ = {p.name: p.annotation for p in self.__signature__.parameters.values()}
        self.__annotations__["return"] = self.__signature__.return_annotation

    @property
    def binaries(self) -> list[tuple[dict[str, int], Binary]]:
        """Pairs of sizes and the binary for exactly these sizes, least recently used first."""
        return self._binaries.by_sizes

    @cached_property
    def _opt(self) -> Binary:
        """Return the binary for the shape optimized for; a padded executable compiles it at the first use."""
        return self._first if self.padded is None else self._binaries.binary(self._symbols.opt, "asked for")

    def _answer_by(self, function: Callable[..., Any]) -> None:
        # C++ refuses a deleted array without a call of Python that could explain the error.
        if self.plan.donated:
            function = guarded(function, _weakly(self._explain_donated))
        self.__call__ = function

    def __getattribute__(self, name: str) -> Any:
        # The function that answers calls doesn't hold the executable. A `__call__` that was taken out of it must.
        return MethodType(Calls._answer, self) if name == "__call__" else super().__getattribute__(name)

    def _answer(self, /, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return self._call(*args, **kwargs)[0]

    def _call(self, /, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Check and run a call that the dispatcher has no entry for; compile for new sizes.

        Returns:
            The result, and the dispatcher's entry for calls of this kind or None.
        """
        __tracebackhide__ = True
        ordered = self._dispatch.by_position(args, kwargs) if kwargs else None
        if ordered is not None:
            # Through the dispatcher: it may know the call in this order.
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
                result = self.padded.call(sizes, given)
                if result is not UNPADDED:
                    self._donate(values)
                    return result, None
            binary = self._binaries.binary(sizes)
        check_devices(list(self._symbols.inputs), given, binary.devices)
        result, fast_path = binary.call(*self._binaries.arguments(given))
        return result, self._dispatch.fast_path(fast_path, (args, kwargs), values, leaves, given)

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], list[Any], dict[str, int]]:
        """Check a call's arguments; return the parameters' values, the flat inputs, and the size of each symbol."""
        __tracebackhide__ = True
        values = bind(self._parameters, args, kwargs)
        leaves = [leaf for p, value in zip(self._parameters, values, strict=True) for leaf in p.leaves(value)]
        return values, leaves, sizes_of(self._symbols, leaves)

    def _donate(self, values: Sequence[Any]) -> None:
        # A padded call worked on copies. Donated arrays are deleted anyway, so that every size behaves alike.
        for parameter, value in zip(self._parameters, values, strict=True):
            if parameter.name in self.plan.donated:
                for leaf in parameter.leaves(value):
                    if isinstance(leaf, jax.Array) and not leaf.is_deleted():
                        leaf.delete()

    def _explain_donated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
        """Return the error for a call with an array that an earlier call donated, or None."""
        try:
            values = bind(self._parameters, args, kwargs)
        except InputError:
            return None
        return explain_donated(self.__name__, dict(zip([p.name for p in self._parameters], values, strict=True)))

    def _call_under_transformation(self, sizes: Mapping[str, int], leaves: Sequence[Any]) -> Any:
        __tracebackhide__ = True
        infos = self._symbols.inputs.values()
        try:
            arrays = [firm(i, leaf) for i, leaf in zip(infos, leaves, strict=True) if isinstance(i, InputInfo)]
            return self._binaries.differentiable(sizes)(*arrays)
        except jax.errors.UnexpectedTracerError as error:  # an argument leaked from another trace
            kind, message = explain_trace_error(error, self.__name__, "called")
            raise kind(message, self._opt.capture) from error
        except NotImplementedError as error:
            if not isinstance(self._program, ExportedProgram):
                raise
            raise TransformationError(
                f"{self.__name__} came from a file, and can't be transformed so: {error}.\n{called_at()}"
                "  Hint: jax.vmap and forward-mode derivatives need the function that it was compiled from."
            ) from error


def _weakly(method: Callable[..., Any]) -> Callable[..., Any]:
    # Held by its own object, a bound method would leave that object to the garbage collector.
    reference = WeakMethod(method)

    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return cast(Callable[..., Any], reference())(*args, **kwargs)

    return call


_KINDS_OF_CALL = 8  # call signatures of one shape: on a device or not, by name or by position


class Dispatch:
    """JAX's C++ dispatcher in front of an executable's checked call.

    It compares shapes, dtypes, weak types, devices, structure and sizes with those of calls that passed the checks.
    """

    def __init__(
        self, plan: Plan, call: Callable[..., tuple[Any, Any]], replace: Callable[[Callable[..., Any]], None]
    ) -> None:
        self._parameters = plan.parameters
        self._infos = list(plan.program.symbols.inputs.values())
        self._call = call
        self._replace = replace
        arrays = plan.program.symbols.arrays.values()
        containers = {kind for parameter in plan.parameters for kind in registered_containers(parameter.structure)}
        keys = {info.dtype for info in arrays if jnp.issubdtype(info.dtype, jax.dtypes.extended)}
        has_sizes = len(arrays) < len(self._infos)
        self._keyed = KeyedArguments(containers | {type(key_like(dtype)) for dtype in keys}, has_sizes)
        self.function = dispatcher(plan.program.name, call, _KINDS_OF_CALL * plan.limit, self._keyed)
        self._checks_dtypes = False

    def fast_path(
        self,
        fast_path: Any,
        call: tuple[tuple[Any, ...], Mapping[str, Any]],
        values: Sequence[Any],
        leaves: Sequence[Any],
        given: Sequence[Any],
    ) -> Any:
        """Return the dispatcher's entry for calls like one that fitted and ran; None if it may not have one.

        Args:
            fast_path: The entry of the binary that ran.
            call: The `(args, kwargs)` of the call.
            values, leaves: The parameters' values and the inputs, as they came.
            given: The inputs as the binary got them. The dispatcher converts only what comes from NumPy.
        """
        order = [p.name for p in self._parameters[: len(call[0])]] + sorted(call[1])  # as JAX flattens a call
        if fast_path is None or order != [p.name for p in self._parameters]:
            return None
        sizes = (isinstance(info, DimensionInputInfo) for info in self._infos)
        is_keyed = all(
            before is after and (not is_size or type(before) is int)  # np.int64(3) is an array of any value to the key
            for before, after, is_size in zip(leaves, given, sizes, strict=True)
        )
        if not is_keyed or not self._is_converted_alike(leaves):
            return None
        marked = [pair for p, value in zip(self._parameters, values, strict=True) for pair in p.marked_leaves(value)]
        return self._keyed.fast_path(fast_path, values, marked)

    def _is_converted_alike(self, leaves: Sequence[Any]) -> bool:
        """Return True if the C++ dispatcher gives NumPy values the compiled dtype, and accepts no other dtype.

        The first NumPy value makes the dispatcher check dtypes from then on; for that call the result is False.
        """
        pairs = zip(self._infos, leaves, strict=True)
        dtypes = [i.dtype for i, leaf in pairs if isinstance(i, InputInfo) and not isinstance(leaf, jax.Array)]
        # Compiled with 64 bits enabled, called with 64 bits disabled.
        is_narrowed = any(jax.dtypes.canonicalize_dtype(dtype) != dtype for dtype in dtypes)
        if is_narrowed or not dtypes or self._checks_dtypes:
            return not is_narrowed
        self._check_dtypes()
        return False

    def by_position(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """Return a call's arguments by position if its keywords come in another order than the binary's; else None."""
        left = self._parameters[len(args) :]
        if [p.name for p in left] == sorted(kwargs) or {p.name for p in left} != set(kwargs):
            return None
        if any(p.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD for p in left):
            return None
        return (*args, *(kwargs[p.name] for p in left))

    def clear(self) -> None:
        """Forget all entries after a binary was dropped.

        The dispatcher can't report which entries are in use. Each shape in use passes the checks again, which
        updates the order in which binaries are dropped.
        """
        if self.function is not None:
            self.function._clear_cache()

    def _check_dtypes(self) -> None:
        # The C++ key ignores a NumPy value's dtype. From now on calls are checked before the dispatcher sees them.
        structures = [p.structure for p in self._parameters]
        starts = accumulate((structure.num_leaves for structure in structures), initial=0)
        positions = [start + i for start, p in zip(starts, self._parameters, strict=False) for i in p.positions]
        tree = cast(Callable[[Sequence[Any]], Any], jax.tree_util.treedef_tuple)
        self._replace(
            checks_dtypes(
                self.function,
                lambda *args, **kwargs: self._call(*args, **kwargs)[0],
                tree([tree(structures), jax.tree.structure({})]),
                {i: info.dtype for i, info in zip(positions, self._infos, strict=True) if isinstance(info, InputInfo)},
            )
        )
        self._checks_dtypes = True
        # Another thread may be waiting for this call's entry and must retry; earlier refusals may be wrong now.
        self.clear()
