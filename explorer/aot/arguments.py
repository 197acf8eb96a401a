"""Inputs of a call: bound to parameters, flattened, named and placed as a program takes them."""

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

_GONE = "values that were constants of the compile are no longer arguments"


def is_input(leaf: Any) -> bool:
    """Return True if a leaf of a `compile()` argument describes a run-time input. Other leaves are constants."""
    return isinstance(leaf, (InputInfo, DimensionInputInfo, jax.ShapeDtypeStruct))


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: Any  # an `inspect.Parameter` kind
    # One entry per input: key path in the parameter's value, full name (`data.b.list[1]`), description.
    paths: tuple[tuple[Any, ...], ...]
    names: tuple[str, ...]
    infos: tuple[InputInfo | DimensionInputInfo, ...]
    example: Any = field(repr=False)  # the pytree, with None for constants
    # Constants count as leaves here, so that one comparison checks the value of a call.
    structure: Any = field(repr=False)
    positions: tuple[int, ...] = field(repr=False)  # index of each input among the leaves of `structure`
    is_whole: bool  # no constants: a value with another structure never fits

    def leaves(self, value: Any) -> list[Any]:
        """Return the leaves of `value` that are inputs, in the order of `paths`; InputStructureError if one is missing.

        As in Tripy, a tuple may replace a list, and a list a tuple.
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
        """Return every leaf of a value that `leaves` accepted, as pairs `(leaf, is_input)`."""
        inputs = set(self.paths)
        leaves = cast(list[tuple[Any, Any]], jax.tree_util.tree_flatten_with_path(value)[0])
        return [(leaf, tuple(path) in inputs) for path, leaf in leaves]

    def on_mesh(self, mesh: Mesh | None) -> Parameter:
        __tracebackhide__ = True
        try:
            infos = tuple(info.on_mesh(mesh) if isinstance(info, InputInfo) else info for info in self.infos)
        except InputInfoError as error:
            raise InputInfoError(f"argument `{self.name}`: {error}") from None
        return replace(self, infos=infos)

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
    # A list and a tuple are interchangeable. Named tuples, subclasses of dict and the user's pytrees are not.
    kinds = (cast(Any, type(expected)), cast(Any, type(value)))
    if set(kinds) <= {list, tuple}:
        # Not strict: the comparison of structures refuses another length, with its place.
        given = [_with_sequences_of(e, v) for e, v in zip(expected, value, strict=False)]
        return kinds[0]([*given, *value[len(given) :]])
    if kinds == (dict, dict):
        return {k: _with_sequences_of(expected[k], v) if k in expected else v for k, v in value.items()}
    return value


def _step(value: Any, key: Any) -> Any:
    if isinstance(key, jax.tree_util.GetAttrKey):
        return getattr(value, key.name)
    return value[key.idx if isinstance(key, jax.tree_util.SequenceKey) else key.key]


def registered_containers(structure: Any) -> set[type]:
    """Return the classes in a tree that JAX knows only because they were registered as pytrees."""
    node: tuple[type, Any] | None = structure.node_data()
    kind = type(None) if node is None else node[0]
    is_built_in = kind in (type(None), tuple, list, dict) or (tuple in kind.__mro__ and hasattr(kind, "_fields"))
    return set[type]([] if is_built_in else [kind]).union(*map(registered_containers, structure.children()))


def _extra(value: Any, expected: Any) -> str:
    if isinstance(expected, Mapping):
        return ", ".join(repr(key) for key in cast(Mapping[Any, Any], value) if key not in expected)
    if isinstance(expected, (list, tuple)):
        wanted = len(cast(Sequence[Any], expected))
        return f"{len(value)} elements, not {wanted}" if len(value) > wanted else ""
    return ""


def parameters_of(bound: inspect.BoundArguments) -> list[Parameter]:
    """Return the parameters that hold an input, in signature order. All others are constants.

    The number of `*args` and the names of `**kwargs` are fixed. Each becomes a parameter: `args0`, or the keyword.
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
    """Return the parameter of a value that contains descriptions of inputs; raise ArgumentsError if `name` isn't an
    identifier.
    """
    if not name.isidentifier() or iskeyword(name):
        raise ArgumentsError(f"{name!r} is no valid argument name.\n  Hint: take a dict instead of **keywords.")
    leaves = cast(list[tuple[Any, Any]], jax.tree_util.tree_flatten_with_path(value, is_leaf=is_input)[0])
    inputs = [(i, tuple(path), leaf) for i, (path, leaf) in enumerate(leaves) if is_input(leaf)]
    # JAX doesn't count None as a leaf; here None is a constant like any other.
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
    """Return a path as text, `data.b.list[1]`: attributes and identifier keys after dots, other keys in brackets."""
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
    """Return each parameter's value in a call, in the order of `parameters`; raise an InputError for extra, missing or
    repeated arguments.
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
            _refuse(ExtraArgumentError, f"unexpected argument `{name}`", names, _GONE)
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
    """Return a checked leaf in a form that `jax.jit` accepts: an int for a size input, else an array.

    A committed array on another sharding is moved explicitly: `jax.transfer_guard` sees the transfer as with `jax.jit`.
    """
    if isinstance(info, DimensionInputInfo):
        return int(leaf)
    if isinstance(leaf, jax.Array):
        # The binary itself places uncommitted arrays.
        is_placed = info.sharding is None or not leaf.committed or leaf.sharding == info.sharding
        return leaf if is_placed else jax.device_put(leaf, info.sharding)
    is_numpy = type(leaf) is np.ndarray or isinstance(leaf, np.generic)
    return cast(Any, leaf) if is_numpy else jnp.asarray(leaf, info.dtype)


def firm(info: InputInfo, leaf: Any) -> Any:
    """Return a checked leaf as a strongly typed array, on the described sharding. A weak type would change the dtypes
    inside the program.
    """
    if isinstance(leaf, jax.Array) and not jax.typeof(leaf).weak_type:
        array: Any = leaf
        is_placed = info.sharding is None or isinstance(leaf, Tracer) or leaf.sharding == info.sharding
        return array if is_placed else jax.device_put(leaf, info.sharding)
    return jnp.asarray(leaf, info.dtype)


# Signatures show `jax.Array`; `inspect` would write its full path in jaxlib.
_ARRAY = inspect.formatannotation(jax.Array)


class _Parameter(inspect.Parameter):
    def __str__(self) -> str:
        return super().__str__().replace(_ARRAY, "jax.Array")


class _Signature(inspect.Signature):
    def __str__(self) -> str:
        return super().__str__().replace(_ARRAY, "jax.Array")


def signature_of(parameters: Sequence[Parameter], outputs: Any) -> inspect.Signature:
    """Return the signature of an executable with these parameters and this tree of outputs."""
    named: list[_Parameter] = []
    for p in parameters:
        kind: Any = _plain(cast("Any", type(p.example)))
        if p.paths == ((),):
            kind = int if isinstance(p.infos[0], DimensionInputInfo) else jax.Array
        named.append(_Parameter(p.name, p.kind, annotation=kind))
    return _Signature(named, return_annotation=_kind_of_outputs(outputs))


def _kind_of_outputs(structure: Any) -> Any:
    node = structure.node_data()
    if node is None:
        return jax.Array
    children: list[Any] = [_kind_of_outputs(child) for child in structure.children()]
    kind = _plain(node[0])
    return tuple[tuple(children)] if kind is tuple else kind


def _plain(kind: type) -> Any:
    # A file has no classes: a signature that named one would change after loading.
    return kind if kind in (dict, list, tuple) else Any
