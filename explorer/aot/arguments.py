"""From a call's arguments to the leaves that are inputs, by name, and as a program takes them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from keyword import iskeyword
from typing import Any, NoReturn, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.sharding import Mesh

from explorer.aot.inputs import DimensionInputInfo, InputInfo
from explorer.capture.sources import called_at
from explorer.errors import (
    ArgumentsError,
    DuplicateArgumentError,
    ExtraArgumentError,
    InputInfoError,
    InputStructureError,
    MissingArgumentError,
)

_GONE = "what was constant when compiling is no argument any more"


def is_input(leaf: Any) -> bool:
    """Whether a leaf of a compile() argument is given at run time; all else is a constant."""
    return isinstance(leaf, (InputInfo, DimensionInputInfo, jax.ShapeDtypeStruct))


@dataclass(frozen=True)
class Parameter:
    """One parameter of the executable: a tree of which some leaves are inputs."""

    name: str  # (name, kind) as in the function's signature
    kind: Any
    paths: tuple[tuple[Any, ...], ...]  # of each input, from the parameter's value
    names: tuple[str, ...]  # of each input: `x`, `data.b.list[1]`
    infos: tuple[InputInfo | DimensionInputInfo, ...]  # of each input
    example: Any = field(repr=False)  # the tree, with None for its constants
    # of the tree, its constants counted as leaves: a call's value is checked by one comparison with it
    structure: Any = field(repr=False)
    positions: tuple[int, ...] = field(repr=False)  # of each input among those leaves
    is_whole: bool  # whether there are no constants: then a value of another structure never fits

    def leaves(self, value: Any) -> list[Any]:
        """The inputs in a call's value, in order. Its constants may be missing or anything else.

        A tuple may come where a list was described, and the reverse, as in Tripy: their elements are found alike.

        Raises:
            InputStructureError: An input is not there, or something is given that would be dropped in silence.
        """
        __tracebackhide__ = True
        leaves, structure = cast(tuple[list[Any], Any], jax.tree.flatten(value))
        if structure != self.structure:
            value = _with_sequences_of(self.example, value)
            leaves, structure = cast(tuple[list[Any], Any], jax.tree.flatten(value))
        if structure == self.structure:
            return leaves if self.is_whole else [leaves[i] for i in self.positions]
        inputs = [self._at(value, path, name) for path, name in zip(self.paths, self.names, strict=True)]
        if self.is_whole and jax.tree_util.all_leaves(inputs):
            self._refuse(f"`{self.name}` has the structure {structure}, not {self.structure}")
        return inputs

    def marked_leaves(self, value: Any) -> list[tuple[Any, bool]]:
        """Every leaf of a call's value, and whether it is an input. It has them all: `leaves` didn't refuse it."""
        inputs = set(self.paths)
        leaves = cast(list[tuple[Any, Any]], jax.tree_util.tree_flatten_with_path(value)[0])
        return [(leaf, tuple(path) in inputs) for path, leaf in leaves]

    def on_mesh(self, mesh: Mesh | None) -> Parameter:
        """The same with its inputs over the devices of a mesh.

        Raises:
            InputInfoError: A sharding is a PartitionSpec, or over an AbstractMesh, that the mesh doesn't fit.
        """
        __tracebackhide__ = True
        try:
            infos = tuple(info.on_mesh(mesh) if isinstance(info, InputInfo) else info for info in self.infos)
        except InputInfoError as error:
            raise InputInfoError(f"argument `{self.name}`: {error}") from None
        return replace(self, infos=infos)

    @property
    def registered_containers(self) -> set[type]:
        """The classes in the tree that JAX knows by their registration alone."""
        return _registered_containers(self.structure)

    def _at(self, value: Any, path: Sequence[Any], name: str) -> Any:
        __tracebackhide__ = True
        expected = self.example
        for depth, key in enumerate(path):
            inside = leaf_name(self.name, path[:depth])
            if type(value) is not type(expected):
                self._refuse(f"`{inside}` is {type(value).__name__}, not {type(expected).__name__}")
            try:
                inner = _step(value, key)
            except (KeyError, IndexError, TypeError, AttributeError):
                self._refuse(f"input `{name}` is not there: {type(value).__name__} has nothing at {key}")
            extra = _extra(value, expected)
            if extra:
                self._refuse(f"`{inside}` has more than it was compiled with: {extra}")
            value, expected = inner, _step(expected, key)
        return value

    def _refuse(self, what: str) -> NoReturn:
        __tracebackhide__ = True
        raise InputStructureError(
            f"{what}.\n{called_at()}  Hint: give `{self.name}` the structure it was compiled with."
        )


def _with_sequences_of(expected: Any, value: Any) -> Any:
    """The value with a list where a list was described and a tuple came, and the reverse: which it is says nothing.

    Other containers say more: a named tuple, a dict of another class, a pytree of the user's stays what it is.
    """
    kinds = (cast(Any, type(expected)), cast(Any, type(value)))
    if set(kinds) <= {list, tuple}:
        given = [_with_sequences_of(e, v) for e, v in zip(expected, value, strict=False)]
        return kinds[0]([*given, *value[len(given) :]])
    if kinds == (dict, dict):
        return {k: _with_sequences_of(expected[k], v) if k in expected else v for k, v in value.items()}
    return value


def _step(value: Any, key: Any) -> Any:
    if isinstance(key, jax.tree_util.GetAttrKey):
        return getattr(value, key.name)
    return value[key.idx if isinstance(key, jax.tree_util.SequenceKey) else key.key]


def _registered_containers(structure: Any) -> set[type]:
    node: tuple[type, Any] | None = structure.node_data()
    kinds: set[type] = set() if node is None or _is_built_in(node[0]) else {node[0]}
    return kinds.union(*map(_registered_containers, structure.children()))


def _is_built_in(kind: type) -> bool:
    """Whether a class is a container to JAX without being registered."""
    return kind in (type(None), tuple, list, dict) or (tuple in kind.__mro__ and hasattr(kind, "_fields"))


def _extra(value: Any, expected: Any) -> str:
    """The keys or the number of elements that `value` has beyond `expected`, as text; empty if it has none."""
    if isinstance(expected, Mapping):
        return ", ".join(repr(key) for key in cast(Mapping[Any, Any], value) if key not in expected)
    if isinstance(expected, (list, tuple)):
        wanted = len(cast(Sequence[Any], expected))
        return f"{len(value)} elements, not {wanted}" if len(value) > wanted else ""
    return ""


def parameters_of(bound: inspect.BoundArguments) -> list[Parameter]:
    """The parameters that hold an input, in the order of the function's signature; the others are constants.

    The number of `*args` and the names of `**kwargs` are fixed: each is a parameter of its own, `args0` or the keyword.

    Raises:
        ArgumentsError: A keyword is none that a signature can show.
    """
    kind_of = inspect.Parameter
    kinds = {name: parameter.kind for name, parameter in bound.signature.parameters.items()}
    taken = {name for name, kind in kinds.items() if kind in (kind_of.POSITIONAL_OR_KEYWORD, kind_of.KEYWORD_ONLY)}
    taken |= {key for name, kind in kinds.items() if kind is kind_of.VAR_KEYWORD for key in bound.arguments[name]}

    def unique(name: str) -> str:
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    flat: list[tuple[str, Any, Any]] = []
    for name, value in bound.arguments.items():
        kind = kinds[name]
        if kind is kind_of.VAR_POSITIONAL:
            flat += [(unique(f"{name}{i}"), kind_of.POSITIONAL_OR_KEYWORD, part) for i, part in enumerate(value)]
        elif kind is kind_of.VAR_KEYWORD:
            flat += [(key, kind_of.KEYWORD_ONLY, value[key]) for key in sorted(value)]  # as JAX orders a dict's leaves
        else:
            flat.append((unique(name) if kind is kind_of.POSITIONAL_ONLY else name, kind, value))
    return [parameter for part in flat if (parameter := parameter_of(*part)).paths]


def parameter_of(name: str, kind: Any, value: Any) -> Parameter:
    """A parameter from a value that holds its inputs' infos.

    Raises:
        ArgumentsError: The name is none that a signature can show.
    """
    if not name.isidentifier() or iskeyword(name):
        raise ArgumentsError(f"{name!r} can't name an argument.\n  Hint: take a dict instead of **keywords.")
    leaves = cast(list[tuple[Any, Any]], jax.tree_util.tree_flatten_with_path(value, is_leaf=is_input)[0])
    inputs = [(i, tuple(path), leaf) for i, (path, leaf) in enumerate(leaves) if is_input(leaf)]
    # To JAX None is no leaf; here it is a constant like any other.
    with_none = jax.tree.leaves(value, is_leaf=lambda leaf: leaf is None or is_input(leaf))
    return Parameter(
        name,
        kind,
        tuple(path for _, path, _ in inputs),
        tuple(leaf_name(name, path) for _, path, _ in inputs),
        tuple(InputInfo.like(leaf) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf for *_, leaf in inputs),
        jax.tree.map(_without_constant, value, is_leaf=is_input),
        jax.tree.structure(value, is_leaf=is_input),
        tuple(i for i, *_ in inputs),
        len(inputs) == len(with_none),
    )


def _without_constant(leaf: Any) -> Any:
    return leaf if is_input(leaf) else None


def leaf_name(root: str, path: Sequence[Any]) -> str:
    """`data.b.list[1]`: attributes and plain string keys by dots, positions and other keys in brackets."""
    name = root
    for key in path:
        if isinstance(key, jax.tree_util.GetAttrKey):
            name += f".{key.name}"
        elif isinstance(key, jax.tree_util.DictKey):
            plain = isinstance(key.key, str) and key.key.isidentifier()
            name += f".{key.key}" if plain else f"[{key.key!r}]"
        else:
            name += str(key)
    return name


def bind(parameters: Sequence[Parameter], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The value for each parameter of a call.

    Raises:
        ExtraArgumentError, DuplicateArgumentError, MissingArgumentError: They are not the ones compiled for.
    """
    __tracebackhide__ = True
    names = [p.name for p in parameters]
    positional = [p.name for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    unnamed = [p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_ONLY]
    if len(args) > len(positional):
        _refuse(ExtraArgumentError, f"{len(args)} arguments by position, of at most {len(positional)}", names, _GONE)
    values = dict(zip(positional, args, strict=False))
    for name, value in kwargs.items():
        if name in unnamed:
            _refuse(ExtraArgumentError, f"argument `{name}` is given by name", names, "give it by position")
        if name not in names:
            _refuse(ExtraArgumentError, f"argument `{name}` is none of this executable's", names, _GONE)
        if name in values:
            twice = f"argument `{name}` is given twice, by position and by name"
            _refuse(DuplicateArgumentError, twice, names, "give it once")
        values[name] = value
    for name in names:
        if name not in values:
            _refuse(MissingArgumentError, f"argument `{name}` is missing", names, "give every argument listed")
    return [values[name] for name in names]


def _refuse(kind: type[Exception], what: str, names: Sequence[str], hint: str) -> NoReturn:
    __tracebackhide__ = True
    raise kind(f"{what}.\n  expected: ({', '.join(names)})\n{called_at()}  Hint: {hint}.")


def as_jit_takes_it(info: InputInfo | DimensionInputInfo, leaf: Any) -> Any:
    """A leaf that fits as jax.jit would have it, so that moving it is what `jax.transfer_guard` takes it for."""
    if isinstance(info, DimensionInputInfo):
        return int(leaf)
    if isinstance(leaf, jax.Array):
        # What isn't committed goes where the binary has it.
        is_placed = info.sharding is None or not leaf.committed or leaf.sharding == info.sharding
        return leaf if is_placed else jax.device_put(leaf, info.sharding)
    is_numpy = type(leaf) is np.ndarray or isinstance(leaf, np.generic)
    return cast(Any, leaf) if is_numpy else jnp.asarray(leaf, info.dtype)


def firm(info: InputInfo, leaf: Any) -> Any:
    """A leaf that fits, of no weak type: those of a program would change by it."""
    if isinstance(leaf, jax.Array) and not jax.typeof(leaf).weak_type:
        array: Any = leaf
        is_placed = info.sharding is None or isinstance(leaf, Tracer) or leaf.sharding == info.sharding
        return array if is_placed else jax.device_put(leaf, info.sharding)
    return jnp.asarray(leaf, info.dtype)
