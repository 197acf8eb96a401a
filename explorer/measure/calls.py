"""A function to measure, and its calls: donated arguments are copied, and every result is awaited."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from types import MethodType
from typing import Any, cast

import jax
import numpy as np

from explorer._jax.arguments import is_jitted
from explorer._jax.interrupts import kept_for_xla
from explorer.capture.explore import Explored
from explorer.capture.filtered import flatten, is_filtered
from explorer.capture.readers.jaxpr import short_type
from explorer.errors import ArgumentsError, NotCallableError, OptionError
from explorer.hardware.names import parse_target
from explorer.model.target import Target


@dataclass(frozen=True)
class Subject:
    """A function and the arguments of a call.

    Args:
        name: The name that the user knows it by.
        compiled: The function that runs compiled.
        eager: The function as it is written; None if no Python is left of it.
        args, kwargs: The arguments.
        is_traced: True if it can be traced and compiled again; False for a program that is compiled already.
        is_plain_jit: True for a `jax.jit` function, whose calls reuse what `.trace().lower().compile()` made.
    """

    name: str
    compiled: Callable[..., Any]
    eager: Callable[..., Any] | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    is_traced: bool = True
    is_plain_jit: bool = True


def subject_of(given: Any, args: tuple[Any, ...], kwargs: dict[str, Any], verb: str = "time") -> Subject:
    """Return the function to measure, and its arguments, for a callable, a jitted function or method, or an executable.

    Raises:
        NotCallableError: `given` can't be called.
    """
    __tracebackhide__ = True
    if not callable(given):
        raise NotCallableError(
            f"{verb} takes a function and its arguments; it got {type(given).__name__}. "
            f"Hint: write {verb}(f, x), not {verb}(f(x))."
        )
    function: Any = given
    name = name_of(function)
    # A new `jax.jit` around the partial would compile another program than the user's call.
    while _kind(function) is partial and _is_compiling(function.func):
        function, args, kwargs = function.func, (*function.args, *args), {**function.keywords, **kwargs}
    if _kind(function) is MethodType and _is_compiling(function.__func__):
        below = getattr(function.__func__, "__wrapped__", None)
        eager = MethodType(below, function.__self__) if below is not None else None
        return Subject(name, function, eager, args, kwargs, is_plain_jit=is_jitted(function.__func__))
    if _is_compiling(function):
        eager = getattr(function, "__wrapped__", None)
        return Subject(name, function, eager, args, kwargs, is_plain_jit=is_jitted(function))
    if issubclass(_kind(function), jax.stages.Compiled) or isinstance(given, Explored):
        return Subject(name, function, None, args, kwargs, is_traced=False)
    # jax.jit hashes its function, and a callable model may have arrays to hash.
    is_hashable = inspect.isroutine(given) or _kind(function) is partial
    return Subject(name, jax.jit(function if is_hashable else partial(function)), function, args, kwargs)


def name_of(function: Any) -> str:
    """Return the function's `__name__`, or its type's, without the `partial` objects around it."""
    while _kind(function) is partial:
        function = function.func
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def _kind(value: object) -> type[object]:
    return type(value)  # without narrowing `value` for the type checker


def signature_of(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Return the arguments with their types, as `(x: f32[8,128], n: 3)`; a tree as its number of arrays."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
        named = [
            (f"{name}[{i}]" if kind is inspect.Parameter.VAR_POSITIONAL else name, one)
            for name, value in bound.arguments.items()
            for kind in (bound.signature.parameters[name].kind,)
            for i, one in enumerate(value if kind is inspect.Parameter.VAR_POSITIONAL else (value,))
        ]
    except (TypeError, ValueError):  # a builtin has no signature; what doesn't fit is refused where it is called
        named = [*((f"arg{i}", value) for i, value in enumerate(args)), *kwargs.items()]
    return f"({', '.join(f'{name}: {_type_of(value)}' for name, value in named)})"


def _is_compiling(function: Any) -> bool:
    """Return True for a function that compiles when called: of `jax.jit`, `equinox.filter_jit`, `nnx.jit`, `ex.jit`."""
    is_jitted_alike = hasattr(function, "trace") and not hasattr(function, "as_text")  # which what is compiled has
    return (is_jitted_alike and not isinstance(function, MethodType)) or is_filtered(function)


def _type_of(value: Any) -> str:
    leaves = jax.tree.leaves(value)
    if len(leaves) == 1 and hasattr(leaf := leaves[0], "dtype"):
        return short_type(leaf if isinstance(leaf, jax.Array) else jax.ShapeDtypeStruct(leaf.shape, leaf.dtype))
    if len(leaves) > 1:
        return f"{len(leaves)} arrays"
    return repr(value) if isinstance(value, bool | int | float | str | None) else type(value).__name__


def ready(value: Any) -> Any:
    """Wait until everything in `value` is computed, and return it.

    Waits for arrays of JAX, torch and MLX in any tree, and for effects such as `jax.debug.print`. Deleted arrays and
    objects that are no pytree are not awaited.
    """
    for leaf in jax.tree.leaves(value):
        library = type(leaf).__module__.partition(".")[0]
        if isinstance(leaf, jax.Array):
            if not leaf.is_deleted():
                leaf.block_until_ready()
        elif library == "torch":  # an array of a library is here, so the library is imported
            if getattr(getattr(leaf, "device", None), "type", "cpu") == "cuda":
                cast(Any, sys.modules["torch"]).cuda.synchronize(leaf.device)
        elif library == "mlx":
            cast(Any, sys.modules["mlx.core"]).eval(leaf)
        elif hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    # Callbacks and prints run on other threads, and their time belongs to the call.
    jax.effects_barrier()
    return value


def quick_wait(result: Any) -> Callable[[Any], Any]:
    """Return the fastest function that waits for results like this one.

    For a result of arrays only, the returned function raises AttributeError when called with other results, and
    doesn't wait for effects. Otherwise it is `ready`, which takes 2 µs, as long as some calls.
    """
    leaves = jax.tree.leaves(result)
    return _wait_for_arrays if leaves and all(isinstance(leaf, jax.Array) for leaf in leaves) else ready


def _wait_for_arrays(result: Any) -> None:
    for leaf in jax.tree.leaves(result):
        leaf.block_until_ready()


class Calls:
    """A function with the arguments of a call, which can be made repeatedly.

    A call that donates an argument deletes it. The first call gets copies. Each later call gets fresh copies of the
    arguments that the first one deleted, made before the clock starts. Other arrays that a call deletes, such as an
    attribute, can't be saved.

    Args:
        function: The function to call.
        args, kwargs: Its arguments.
        may_donate: False if nothing is donated, so that the first call needs no copies.
        is_counted: True if every process makes the same number of calls; only then may arrays span several processes.

    Attributes:
        first_seconds: Duration of the first call.
        call: The call, without arguments, or with the result of `prepare` as arguments.
        bare, args: The same call as `bare(*args)`, with 1 % less overhead for short calls. Only if `prepare` is None.
        prepare: Makes fresh arguments for one `call(*prepare())`; None if the call needs none. Set by `first`.
        prepared_bytes: Size of one set of fresh arguments.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> x = jnp.ones(3)
        >>> calls = Calls(jax.jit(lambda x: x + 1, donate_argnums=0), (x,), {})
        >>> calls.first(), calls.call(*calls.prepare()), x.is_deleted()
        (Array([2., 2., 2.], dtype=float32), Array([2., 2., 2.], dtype=float32), False)
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        may_donate: bool = True,
        is_counted: bool = False,
    ) -> None:
        self.function = function
        self.prepare: Callable[[], tuple[Any, ...]] | None = None
        self.prepared_bytes = 0
        self.first_seconds = 0.0
        self._leaves, self._rebuild = flatten((args, kwargs))
        args, kwargs = self._rebuild(self._leaves)  # a call may update the modules among them
        self.call: Callable[..., Any] = partial(function, *args, **kwargs)
        self.bare: Callable[..., Any] = partial(function, **kwargs) if kwargs else function
        self.args = args
        self._may_donate, self._is_counted = may_donate, is_counted
        self._refuse_other_processes(self._leaves)
        # Arguments that are still computed would be timed with the first call.
        ready(self._leaves)

    def first(self) -> Any:
        """Make the first call and return its computed result; set `prepare` if the call deletes arguments."""
        leaves = self._with_copies(range(len(self._leaves))) if self._may_donate else self._leaves
        args, kwargs = self._rebuild(leaves)
        start = perf_counter()
        with kept_for_xla():
            result = ready(self.function(*args, **kwargs))
        self.first_seconds = perf_counter() - start
        # Results may span processes where no argument does.
        self._refuse_other_processes(jax.tree.leaves(result))
        deleted = [i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.Array) and leaf.is_deleted()]
        if self._may_donate and deleted:
            self.prepared_bytes = sum(nbytes_of(self._leaves[i]) for i in deleted)
            self.call = self.bare = self._call_with
            self.prepare = lambda: self._rebuild(self._with_copies(deleted))
        return result

    def _call_with(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.function(*args, **kwargs)

    def _refuse_other_processes(self, leaves: Iterable[Any]) -> None:
        # The first process that stops calling would leave the others waiting for ever.
        __tracebackhide__ = True
        if self._is_counted or not any(
            isinstance(leaf, jax.Array) and not leaf.is_fully_addressable for leaf in leaves
        ):
            return
        name = getattr(self.function, "__name__", type(self.function).__name__)
        raise ArgumentsError(
            f"{name} works on devices of several of the {jax.process_count()} processes, which would have to make the "
            "same number of calls; how many are made is decided by how long they take, in each process for itself.\n"
            "  Hint: explorer.profile(f, x, runs=10) makes a fixed number in each; or time what one process does alone."
        )

    def _with_copies(self, which: Iterable[int]) -> list[Any]:
        leaves = list(self._leaves)
        for i in which:
            if isinstance(leaves[i], jax.Array):
                leaves[i] = leaves[i].copy()  # keeps weak type, sharding, and whether it is committed
        ready(leaves)
        return leaves


def timed(calls: Calls, begin: Callable[[], object] | None = None) -> float:
    """Make a call, await its result and return the seconds; `begin` is called between preparing and the clock."""
    given = calls.prepare() if calls.prepare is not None else ()
    if begin is not None:
        begin()
    start = perf_counter()
    ready(calls.call(*given))
    return perf_counter() - start


def refuse_target(verb: str, target: str | Target | None, instead: str) -> None:
    """Raise OptionError if something is to be measured on hardware that isn't here.

    Args:
        verb: The public function that was called.
        target: Its target; None passes.
        instead: A call that estimates instead.
    """
    __tracebackhide__ = True
    if target is None:
        return
    device = parse_target(target).device.name
    raise OptionError(
        f"{verb} measures a running program, and a program for {device} can't run here.\n"
        f"  Hint: {instead} estimates it from published figures."
    )


def nbytes_of(leaf: Any) -> int:
    """Return the bytes of an array; 0 for anything else."""
    if isinstance(leaf, jax.Array):
        return int(np.prod(leaf.shape)) * leaf.dtype.itemsize
    return int(getattr(leaf, "nbytes", 0) or 0)
