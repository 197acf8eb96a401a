"""Sentences about a capture: the facts that are most worth knowing, and answers to questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from explorer.model.declared import Displayable


@dataclass(frozen=True, slots=True)
class Fact:
    """One sentence and the nodes that it is about.

    Args:
        kind: `cost`, `copies`, `precision`, `donation`, `memory` or `eliminated`.
        text: The sentence.
        share: Share of the program that it is about, 0 to 1: of its FLOPs, bytes, memory or equations.
        stage: Stage of `nodes`.
        nodes: Rows in the graph of `stage`, ascending.

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


CERTAINTIES = ("exact", "inferred", "unknown")
"""`exact`: stated by the compiler's own text or records. `inferred`: concluded from structure, counts or rules.
`unknown`: no evidence; `Answer.hint` names a command that would give it."""


LIVE_ANSWERS: dict[str, Callable[[Any], Answer | None]] = {}
"""Functions that answer from a running session, such as a watch, by the key of their question.

Each takes the capture, and returns None if it doesn't know. A room adds its function when it is loaded."""


@dataclass(frozen=True, slots=True)
class Question:
    """One of the supported questions.

    Args:
        key: Short name.
        title: The question in plain words.
        words: Keywords of which the input needs at least one; each counts twice.
        hints: Additional keywords; each counts once.
        slots: What else it can use: `line` for a line's number, `name` for a kernel, argument, operation or pass.
    """

    key: str
    title: str
    words: tuple[str, ...]
    hints: tuple[str, ...] = ()
    slots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer(Displayable):
    """Answer to a question.

    Args:
        question: The recognized question.
        text: The answer in one or two sentences.
        certainty: One of `CERTAINTIES`.
        stage: Stage of `nodes`.
        nodes: Rows in the graph of `stage`, ascending.
        hint: Command that gives more information; empty if there is none.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> capture = explorer.explore(lambda x: jnp.tanh(x) @ x, jnp.ones((64, 64)))
        >>> answer = capture.ask("in which precision do my products run?")
        >>> answer.question, answer.certainty
        ('in which precision do my products run?', 'exact')
        >>> answer.text
        'The product on line 1 takes f32 and runs in f32.'
        >>> [capture.stage(answer.stage).graph.ops[capture.stage(answer.stage).graph.op[i]] for i in answer.nodes]
        ['dot']
    """

    question: str
    text: str
    certainty: str = "exact"
    stage: str = ""
    nodes: tuple[int, ...] = ()
    hint: str = ""

    @property
    def certainty_text(self) -> str:
        """Return the certainty for use in a sentence: `exact`, `inferred`, `not known`."""
        return "not known" if self.certainty == "unknown" else self.certainty

    def __repr__(self) -> str:
        mark = "" if self.certainty == "exact" else f" ({self.certainty_text})"
        return f"{self.text}{mark}" + (f"\n  {self.hint}" if self.hint else "")
