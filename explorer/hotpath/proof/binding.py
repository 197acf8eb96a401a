"""The arguments of a call, and the parameters that they become."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce

from explorer.hotpath.proof.refusal import NotProven
from explorer.hotpath.proof.values import Fresh, Items, Value, join


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call.

    Args:
        positional: Those by position.
        named: Those by name.
        rest: What `*rest` holds, taken together; None where there is none.
        others: What `**others` holds, taken together; None where there is none.
    """

    positional: tuple[Value, ...] = ()
    named: Mapping[str, Value] = field(default_factory=dict[str, Value])
    rest: Value | None = None
    others: Value | None = None

    @property
    def all(self) -> list[Value]:
        more = [value for value in (self.rest, self.others) if value is not None]
        return [*self.positional, *self.named.values(), *more]

    @property
    def are_exact(self) -> bool:
        """Whether it is known how many there are."""
        return self.rest is None and self.others is None

    def after(self, first: Iterable[Value], named: Mapping[str, Value] | None = None) -> Arguments:
        """These, after some more by position and by name."""
        return Arguments((*first, *self.positional), {**(named or {}), **self.named}, self.rest, self.others)


def parameters(
    node: ast.FunctionDef | ast.Lambda, defaults: Mapping[str, Value], given: Arguments, text: str
) -> dict[str, Value]:
    """The parameters' values, as Python binds them."""
    arguments = node.args
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    every = [*positional, *(a.arg for a in arguments.kwonlyargs)]
    values: dict[str, Value] = {**defaults, **dict(zip(positional, given.positional, strict=False))}
    values |= {name: value for name, value in given.named.items() if name in every}
    _spread(values, given, given.rest, positional[len(given.positional) :])
    _spread(values, given, given.others, every)
    extra = given.positional[len(positional) :]
    if extra and arguments.vararg is None:
        raise NotProven(f"`{text}` is called with more arguments than it takes")
    if arguments.vararg is not None:
        rest = given.rest
        values[arguments.vararg.arg] = Items(extra) if rest is None else Fresh(tuple, reduce(join, extra, rest))
    if arguments.kwarg is not None:
        more = [value for name, value in given.named.items() if name not in every]
        values[arguments.kwarg.arg] = _together(more, given.others)
    return values


def _spread(values: dict[str, Value], given: Arguments, value: Value | None, names: Iterable[str]) -> None:
    """Any of these parameters may be among what a star spreads out."""
    if value is None:
        return
    for name in names:
        if name not in given.named:
            values[name] = join(values[name], value) if name in values else value


def _together(values: list[Value], others: Value | None) -> Fresh:
    every = values if others is None else [*values, others]
    return Fresh(dict, reduce(join, every) if every else None)
