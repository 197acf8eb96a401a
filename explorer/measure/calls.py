"""Calls that can be repeated: donated arguments are copied, and every result is awaited."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from time import perf_counter
from typing import Any

import jax
import numpy as np

from explorer.capture.filtered import flatten
from explorer.errors import ArgumentsError


def ready(value: Any) -> Any:
    """Wait until everything in `value` is computed, and return it.

    Waits for arrays of JAX, torch and MLX in any tree, and for effects such as `jax.debug.print`. Deleted arrays and
    objects that are no pytree are not awaited.
    """
    for leaf in jax.tree.leaves(value):
        if isinstance(leaf, jax.Array):
            if not leaf.is_deleted():
                leaf.block_until_ready()
        else:
            _wait_elsewhere(leaf)
    jax.effects_barrier()
    return value


def quick_wait(result: Any) -> Callable[[Any], Any]:
    """Return the fastest function that waits for results like this one.

    For results of arrays only, it raises AttributeError for other results and leaves effects to the caller. `ready`
    takes 2 µs, as long as some calls.
    """
    leaves = jax.tree.leaves(result)
    return _wait_for_arrays if leaves and all(isinstance(leaf, jax.Array) for leaf in leaves) else ready


def _wait_for_arrays(result: Any) -> None:
    for leaf in jax.tree.leaves(result):
        leaf.block_until_ready()


def _wait_elsewhere(leaf: Any) -> None:
    """Wait for an array of another library; the library is imported if one of its arrays exists."""
    module = type(leaf).__module__.partition(".")[0]
    if module == "torch":
        torch: Any = sys.modules["torch"]
        if getattr(getattr(leaf, "device", None), "type", "cpu") == "cuda":
            torch.cuda.synchronize(leaf.device)
    elif module == "mlx":
        mlx: Any = sys.modules["mlx.core"]
        mlx.eval(leaf)
    elif hasattr(leaf, "block_until_ready"):
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
        ready(self._leaves)

    def first(self) -> Any:
        """Make the first call, note which arguments it deletes, and return its result."""
        leaves = self._with_copies(range(len(self._leaves))) if self._may_donate else self._leaves
        args, kwargs = self._rebuild(leaves)
        start = perf_counter()
        result = ready(self.function(*args, **kwargs))
        self.first_seconds = perf_counter() - start
        self._refuse_other_processes(jax.tree.leaves(result))
        if self._may_donate:
            self._give_copies_of([i for i, leaf in enumerate(leaves) if _is_deleted(leaf)])
        return result

    def _refuse_other_processes(self, leaves: Iterable[Any]) -> None:
        # The first process that stops calling would leave the others waiting for ever.
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

    def _give_copies_of(self, which: list[int]) -> None:
        if which:
            self.prepared_bytes = sum(nbytes_of(self._leaves[i]) for i in which)
            self.call = self.bare = self._call_with
            self.prepare = lambda: self._rebuild(self._with_copies(which))

    def _with_copies(self, which: Iterable[int]) -> list[Any]:
        leaves = list(self._leaves)
        for i in which:
            if isinstance(leaves[i], jax.Array):
                leaves[i] = leaves[i].copy()  # keeps weak type, sharding, and whether it is committed
        ready(leaves)
        return leaves

    def _call_with(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.function(*args, **kwargs)


def _is_deleted(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and leaf.is_deleted()


def nbytes_of(leaf: Any) -> int:
    """Return the bytes of an array; 0 for anything else."""
    if isinstance(leaf, jax.Array):
        return int(np.prod(leaf.shape)) * leaf.dtype.itemsize
    return int(getattr(leaf, "nbytes", 0) or 0)
