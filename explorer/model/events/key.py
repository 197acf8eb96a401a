"""What JAX's caches compare when a function is called, as plain values: all that can make a call compile again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from explorer.model.events.pytree import TreeNode

HOT = "auto_compile"  # how a function was made that hot paths compile
AHEAD = "compile"  # how a function was made that `ex.compile` builds for the shapes that it is given


@dataclass(frozen=True, slots=True)
class Function:
    """The function that is compiled.

    Args:
        name: As JAX prints it: `step`, `<lambda>`.
        file, line: Where it is defined; empty and 0 if that can't be known. Functions defined at one place are one
            *family*: a lambda in a loop is many function objects and one family.
        made: How the object came about, outermost first: `("grad",)`, `("partial",)`, `("method",)`, `("lambda",)`;
            empty for a plain `def`.
        identity: A number for this very function object: equal numbers are the same object.
        wrapper: A number for this very `jax.jit(…)`: equal numbers are the same wrapper.
        eager: It is one of JAX's own, compiled because an operation ran outside of any `jit`.
    """

    name: str
    file: str = ""
    line: int = 0
    made: tuple[str, ...] = ()
    identity: int = 0
    wrapper: int = 0
    eager: bool = False

    @property
    def is_ahead(self) -> bool:
        """It is an `Executable`'s: each shape is compiled once, because somebody asked for that."""
        return self.made[:1] == (AHEAD,)

    @property
    def is_hot(self) -> bool:
        """It is a hot function's compiled copy."""
        return self.made[:1] == (HOT,)

    @property
    def family(self) -> tuple[str, str, int]:
        """What functions have in common that a person would call the same."""
        return self.name, self.file, self.line

    def is_of_family(self, other: Function) -> bool:
        """Whether both have one family, without naming it: a call is held against dozens of others."""
        return self.line == other.line and self.name == other.name and self.file == other.file


class Leaf(NamedTuple):
    """One array argument, or one array inside an argument.

    A tuple, for there are hundreds in a call: a frozen dataclass takes twenty times as long to make.

    Args:
        path: As Python would write it: `x`, `batch['y']`, `state.params[0]`.
        shape: Sizes; a symbolic dimension by its name.
        dtype: NumPy's name for it: `float32`.
        weak: Whether the type is weak, as that of a Python number is.
        given: What was passed: `jax`, `numpy`, `float`, `int`, `bool`, `complex`, `struct`, or a type's name.
        committed: Whether it is bound to its device; None where that means nothing (no JAX array).
        sharding: How it is spread over devices, as JAX prints it: empty for one device.
        devices: Where it is: `("cpu:0",)`.
        layout: How it lies in memory, where that is not the default.
        spread: The sharding in parts: partition (`P('data')`), mesh (`data=4`) and memory; empty where that can't be
            known or goes without saying.
    """

    path: str
    shape: tuple[int | str, ...]
    dtype: str
    weak: bool = False
    given: str = "jax"
    committed: bool | None = None
    sharding: str = ""
    devices: tuple[str, ...] = ()
    layout: str = ""
    spread: tuple[str, str, str] | tuple[()] = ()


@dataclass(frozen=True, slots=True)
class Static:
    """One static argument.

    Args:
        path: The argument's name.
        value: Its repr, cut short.
        type: Its type's name.
        identity: A number for the object, where its equality is that of the object (no `__eq__` of its own); else 0.
        token: Equal for values that are equal, as the cache sees them (a hash): two values may have one repr.
        keyword: It was given by its name: `f(x, n=2)` and `f(x, 2)` are two signatures.
    """

    path: str
    value: str
    type: str
    identity: int = 0
    token: int = 0
    keyword: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """One call, as the caches see it.

    Args:
        function: What was called.
        leaves: Its array arguments, in the order of the tree: a tuple, or what is equal to one and takes less.
        tree: The structure of all arguments; None if it can't be known.
        statics: Its static arguments.
        donated: Paths of the leaves whose buffers are given away.
        context: Settings that are part of the cache key (`jax_enable_x64`, matmul precision, the mesh in force, …) by
            name.
        options: XLA's compiler options, by name.
        wrapping: What the `jax.jit` was given besides, by name: `in_shardings`, `out_shardings`, `device`, `backend`,
            `keep_unused`, `inline`, `static_argnums`, `static_argnames`.
        grown: Paths of leaves that the function returns again, but for one size that is a little larger: of a cache.
        structure: A number for `tree`: equal for trees that are equal, as the cache sees them (what a class keeps
            beside its arrays may be unequal and print alike); 0 if it can't be had.
        guard: Of a hot function, what a guard saw changed since its copy for such calls was compiled: name, value
            before and now; empty for none.
    """

    function: Function
    leaves: Sequence[Leaf] = ()
    tree: TreeNode | None = None
    statics: tuple[Static, ...] = ()
    donated: tuple[str, ...] = ()
    context: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    wrapping: tuple[tuple[str, str], ...] = ()
    structure: int = 0
    grown: tuple[str, ...] = ()
    guard: tuple[str, ...] = ()
