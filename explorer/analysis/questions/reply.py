"""What the answers share."""

from __future__ import annotations

from collections.abc import Iterable, Sized

from explorer.analysis.questions.catalogue import QUESTIONS
from explorer.model.answers import Answer
from explorer.model.capture import Capture
from explorer.model.graph import Graph

_TITLES = {question.key: question.title for question in QUESTIONS}


def reply(
    key: str, text: str, certainty: str = "exact", stage: str = "", nodes: Iterable[int] = (), hint: str = ""
) -> Answer:
    """The answer to the question of a key."""
    return Answer(_TITLES[key], text, certainty, stage, tuple(nodes), hint)


def passes_hint(capture: Capture) -> str:
    """Return how to get the passes of a capture; empty where they are read, and where there are none to get."""
    if capture.has_passes or (capture.read_passes or capture.record) is None:
        return ""
    cost = ", which compiles once more" if capture.record is not None else ""
    return f"look at capture.passes first (%explore --passes){cost}."


def agree(things: Sized | int, one: str, many: str) -> str:
    """A word for one thing, or for any other number of them."""
    count = things if isinstance(things, int) else len(things)
    return one if count == 1 else many


def joined(*sentences: str) -> str:
    """The sentences that there are."""
    return " ".join(filter(None, sentences))


def optimised(capture: Capture) -> Graph | None:
    """The graph of the optimised program; None where there is none."""
    return next((stage.graph for stage in capture.stages if stage.name == "hlo"), None)


def equations_of(capture: Capture) -> Graph | None:
    """The graph of the jaxpr; None where there is none."""
    return next((stage.graph for stage in capture.stages if stage.name == "jaxpr"), None)
