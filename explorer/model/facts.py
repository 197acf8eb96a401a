"""What is most worth knowing of a capture, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload


@dataclass(frozen=True, slots=True)
class Fact:
    """One sentence, and what it speaks of.

    Args:
        kind: `cost`, `copies`, `precision`, `donation`, `memory` or `eliminated`.
        text: The sentence.
        share: How much of the program it is about, 0 to 1: of its FLOPs, bytes, memory or equations.
        stage: The stage of `nodes`.
        nodes: The rows of the graph of `stage` that it speaks of, ascending.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> fact = explorer.explore(lambda x: x @ x, jnp.ones((64, 64))).summary[0]
        >>> fact.kind, fact.stage, fact.text
        ('cost', 'hlo', '1 kernel, all of line 1.')
    """

    kind: str
    text: str
    share: float
    stage: str = ""
    nodes: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.text


class Facts(Sequence[Fact]):
    """The facts of a capture, the most important first; its text is their sentences.

    Args:
        facts: In that order.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> facts = explorer.explore(lambda x: jnp.tanh(x) @ x, jnp.ones((64, 64))).summary
        >>> [fact.kind for fact in facts]
        ['cost']
    """

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._facts = tuple(facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._facts)

    @overload
    def __getitem__(self, at: int) -> Fact: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Fact]: ...
    def __getitem__(self, at: int | slice) -> Fact | Sequence[Fact]:
        return self._facts[at]

    def __str__(self) -> str:
        return " ".join(fact.text for fact in self._facts)

    __repr__ = __str__
