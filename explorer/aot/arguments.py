"""From a call's arguments to the leaves that are inputs, by name; what doesn't fit is told apart here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

import jax

from explorer.aot.inputs import InputInfo
from explorer.capture.sources import place
from explorer.errors import (
    DuplicateArgumentError,
    ExtraArgumentError,
    InputDtypeError,
    InputRankError,
    InputShapeError,
    InputStructureError,
    MissingArgumentError,
    NotAnArrayError,
)

__all__ = ["Parameter", "bind", "called_at", "check", "is_input", "leaf_name", "parameters_of"]


def is_input(leaf: Any) -> bool:
    """Whether a leaf of a compile() argument is given at run time; all else is a constant."""
    return isinstance(leaf, (InputInfo, jax.ShapeDtypeStruct))


@dataclass(frozen=True)
class Parameter:
    """One parameter of the executable: a tree of which some leaves are inputs.

    Args:
        name: As in the function's signature.
        kind: As in the function's signature.
        paths: Of each input, from the parameter's value.
        names: Of each input: `x`, `data.b.list[1]`.
        infos: Of each input.
        structure: The tree's, where every leaf is an input: then a call's value is checked by one comparison.
    """

    name: str
    kind: Any
    paths: tuple[tuple[Any, ...], ...]
    names: tuple[str, ...]
    infos: tuple[InputInfo, ...]
    structure: Any = field(repr=False)

    def leaves(self, value: Any, where: Callable[[], str]) -> list[Any]:
        """The inputs of a call's value: its leaves, or where constants are among them, what lies at the paths."""
        if self.structure is not None:
            leaves, structure = cast(tuple[list[Any], Any], jax.tree.flatten(value))
            if structure == self.structure:
                return leaves
        return [self.at(value, path, name, where) for path, name in zip(self.paths, self.names, strict=True)]

    def at(self, value: Any, path: Sequence[Any], name: str, where: Callable[[], str]) -> Any:
        for key in path:
            try:
                if isinstance(key, jax.tree_util.GetAttrKey):
                    value = getattr(value, key.name)
                else:
                    value = value[getattr(key, "key", getattr(key, "idx", None))]
            except (KeyError, IndexError, TypeError, AttributeError):
                raise InputStructureError(
                    f"input `{name}` is not there: {type(value).__name__} has nothing at {key}.\n{where()}"
                    f"  Hint: give `{self.name}` the structure it was compiled with."
                ) from None
        return value


def parameters_of(bound: inspect.BoundArguments) -> list[Parameter]:
    """The parameters that hold an input, in the order of the function's signature; the others are constants."""
    found: list[Parameter] = []
    kinds = bound.signature.parameters
    for name, value in bound.arguments.items():
        leaves = cast(list[tuple[Any, Any]], jax.tree_util.tree_flatten_with_path(value, is_leaf=is_input)[0])
        inputs = [(path, leaf) for path, leaf in leaves if is_input(leaf)]
        if not inputs:
            continue
        # What *args and **kwargs took is frozen: each of them is a parameter of its own.
        if kinds[name].kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            heads = dict.fromkeys(path[0] for path, _ in inputs)
            for head in heads:
                label = head.key if isinstance(head, jax.tree_util.DictKey) else f"{name}{head.idx}"
                own = [(path[1:], leaf) for path, leaf in inputs if path[0] == head]
                found.append(_parameter(label, kinds[name].kind, own, None))
        else:
            whole = cast(Any, jax.tree.structure(value, is_leaf=is_input)) if len(inputs) == len(leaves) else None
            found.append(_parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, inputs, whole))
    return found


def _parameter(name: str, kind: Any, inputs: list[tuple[Any, Any]], structure: Any) -> Parameter:
    keyword = kind is inspect.Parameter.VAR_KEYWORD
    return Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY if keyword else inspect.Parameter.POSITIONAL_OR_KEYWORD,
        tuple(tuple(path) for path, _ in inputs),
        tuple(leaf_name(name, path) for path, _ in inputs),
        tuple(leaf if isinstance(leaf, InputInfo) else InputInfo(leaf.shape, leaf.dtype) for _, leaf in inputs),
        structure,
    )


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


def bind(
    parameters: Sequence[Parameter], args: tuple[Any, ...], kwargs: dict[str, Any], where: Callable[[], str]
) -> list[Any]:
    """The value for each parameter. `where` writes the line of an error that says where the call stands."""
    names = [parameter.name for parameter in parameters]
    expected = f"  expected: ({', '.join(names)})\n"
    positional = [p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    if len(args) > len(positional):
        raise ExtraArgumentError(
            f"{len(args)} arguments by position, of at most {len(positional)}.\n{expected}{where()}"
            "  Hint: what was constant when compiling is no argument any more."
        )
    values = dict(zip(positional, args, strict=False))
    for name, value in kwargs.items():
        if name not in names:
            raise ExtraArgumentError(
                f"argument `{name}` is none of this executable's.\n{expected}{where()}"
                "  Hint: what was constant when compiling is no argument any more."
            )
        if name in values:
            raise DuplicateArgumentError(
                f"argument `{name}` is given twice, by position and by name.\n{expected}{where()}  Hint: give it once."
            )
        values[name] = value
    missing = [name for name in names if name not in values]
    if missing:
        raise MissingArgumentError(
            f"argument `{missing[0]}` is missing.\n{expected}{where()}  Hint: give every argument listed."
        )
    return [values[name] for name in names]


def check(name: str, info: InputInfo, value: Any, where: Callable[[], str]) -> None:
    """Refuse a value that is not what was compiled for; returns if it fits after all."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    told = f"  compiled for {info.dtype}{list(info.shape)}\n{where()}"
    if shape is None or dtype is None:
        raise NotAnArrayError(
            f"input `{name}` is no array but {type(value).__name__}.\n{told}"
            f"  Hint: jnp.asarray(value, {str(info.dtype)!r})."
        )
    if len(shape) != len(info.shape):
        _refuse(
            InputRankError,
            f"input `{name}` has {len(shape)} dimensions, {tuple(shape)}, not {len(info.shape)}",
            told,
            "reshape it, or compile for this rank",
        )
    for axis, (got, wanted) in enumerate(zip(shape, info.shape, strict=True)):
        if got != wanted:
            _refuse(
                InputShapeError,
                f"input `{name}` has shape {tuple(shape)}; dimension {axis} is {got}, not {wanted}",
                told,
                "compile for this shape too",
            )
    if dtype != info.dtype:
        _refuse(
            InputDtypeError,
            f"input `{name}` has dtype {dtype}, not {info.dtype}",
            told,
            f"convert it, {name}.astype({str(info.dtype)!r}), or compile for {dtype}",
        )


def _refuse(kind: type[Exception], what: str, told: str, hint: str) -> NoReturn:
    raise kind(f"{what}.\n{told}  Hint: {hint}.")


def called_at(frame: Any) -> str:
    """The line of an error that says where the user called."""
    return f"  called at  {place(frame.f_code.co_filename, frame.f_lineno)}\n" if frame is not None else ""
