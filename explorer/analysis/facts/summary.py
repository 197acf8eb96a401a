"""The few sentences that a capture is summed up in."""

from __future__ import annotations

from explorer.analysis.facts.collectives import collectives
from explorer.analysis.facts.copies import copies
from explorer.analysis.facts.cost import cost
from explorer.analysis.facts.eliminated import eliminated
from explorer.analysis.facts.memory import memory
from explorer.analysis.facts.precision import precision
from explorer.analysis.facts.target import target
from explorer.model.answers import Facts
from explorer.model.capture import Capture

_FINDERS = (collectives, precision, copies, memory, eliminated)
_MOST = 4  # a fifth sentence is read by nobody


def summary(capture: Capture) -> Facts:
    """What runs and what costs most comes first; then what is about the largest share of the program.

    For what hardware it is, where that isn't here, comes last, and always.
    """
    if capture.failure or not any(stage.name == "hlo" for stage in capture.stages):
        return Facts([])  # what failed is told as that
    others = [fact for find in _FINDERS for fact in find(capture)]
    others.sort(key=lambda fact: -fact.share)
    return Facts([*[*cost(capture), *others][:_MOST], *target(capture)])
