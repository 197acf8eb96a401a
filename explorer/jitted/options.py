"""What jit() passes on to `jax.jit`: compared, moved behind the captured state, and refused where it can't be meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import jax

from explorer.capture.sources import called_at
from explorer.errors import OptionError
from explorer.jitted.reading import Same


@dataclass(frozen=True)
class Passed:
    """Options that go to `jax.jit` as they are: shardings, XLA's options. Two are equal if they say the same.

    Args:
        key: What is compared: each one's name, tree and leaves.
        values: By name.
    """

    key: tuple[Any, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False, repr=False)

    @classmethod
    def of(cls, **options: Any) -> Passed:
        """Those that are given: None and False are what `jax.jit` does without."""
        given = {name: value for name, value in options.items() if value is not None and value is not False}
        return cls(tuple((name, *_comparable(value)) for name, value in given.items()), given)

    def behind_state(self, signature: inspect.Signature | None, static: Collection[str]) -> dict[str, Any]:
        """The same for a function that takes its captured state before its arguments, and returns it after its result.

        Raises:
            OptionError: One sharding is given for all arguments, and how many there will be isn't known.
        """
        values = dict(self.values)
        if "in_shardings" in values:
            given = values["in_shardings"]
            is_one = not isinstance(given, (tuple, list))
            of_arguments = _for_each(given, signature, static) if is_one else cast("Sequence[Any]", given)
            values["in_shardings"] = (None, *of_arguments)
        if "out_shardings" in values:
            values["out_shardings"] = (values["out_shardings"], None)
        return values


def _comparable(value: Any) -> tuple[Any, ...]:
    leaves, tree = cast("tuple[list[Any], Any]", jax.tree.flatten(value, is_leaf=lambda leaf: leaf is None))
    return tree, *(_hashable(leaf) for leaf in leaves)


def _hashable(leaf: Any) -> Any:
    try:
        hash(leaf)
    except TypeError:
        return Same(leaf)
    return type(leaf), leaf


def _for_each(sharding: Any, signature: inspect.Signature | None, static: Collection[str]) -> tuple[Any, ...]:
    named = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = list(signature.parameters.values()) if signature is not None else []
    if signature is None or any(p.kind is p.VAR_POSITIONAL or p.default is not p.empty for p in parameters):
        raise OptionError(
            "in_shardings is one sharding for all arguments, of a function with captured state that takes a varying "
            f"number of them.\n{called_at()}  Hint: in_shardings=(sharding, …), one for each argument."
        )
    return tuple(sharding for p in parameters if p.kind in named and p.name not in static)


def check_positions(
    name: str, signature: inspect.Signature | None, given: Mapping[str, tuple[Any, ...] | None]
) -> None:
    """Refuse static and donated arguments that the function doesn't have.

    Args:
        given: By option: positions or names.

    Raises:
        OptionError: One is none of its parameters, or is both static and donated.
    """
    both = {*(given["static_argnames"] or ())} & {*(given["donate_argnames"] or ())}
    if both:
        raise OptionError(
            f"{min(both)!r} is in static_argnames and in donate_argnames; what is static is no array.\n{called_at()}"
            "  Hint: leave it out of donate_argnames."
        )
    if signature is None:
        if given["donate_argnames"]:
            raise OptionError(
                f"donate_argnames has {given['donate_argnames'][0]!r}, but {name} has no signature that says which "
                f"argument that is.\n{called_at()}  Hint: donate_argnums."
            )
        return
    for option, values in given.items():
        fits, allowed = (_positions if option.endswith("nums") else _names)(signature)
        for value in values or ():
            if not fits(value):
                raise OptionError(f"{option} has {value!r}; the {allowed} in {name}{signature}.\n{called_at()}")


def _positions(signature: inspect.Signature) -> tuple[Callable[[Any], bool], str]:
    """Whether a position is one of a signature, and those that are."""
    parameters = signature.parameters.values()
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    is_open = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    listed = ", ".join(f"{i} (`{name}`)" for i, name in enumerate(names))
    return lambda i: is_open or -len(names) <= i < len(names), f"positions are {listed}"


def _names(signature: inspect.Signature) -> tuple[Callable[[Any], bool], str]:
    """Whether a name is one that an argument can be given by, and those that are."""
    parameters = signature.parameters.values()
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    is_open = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return lambda n: n in names or (is_open and n not in signature.parameters), f"names are {', '.join(names)}"
