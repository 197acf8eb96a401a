"""When each buffer of an HLO module is alive, if it runs in the order of its text.

The rules are those of XLA's own buffer assignment as far as a text tells them (openxla/xla: `hlo_live_range.cc`,
`hlo_dataflow_analysis.cc`, `alias_info.cc`, `heap_simulator.cc`): a fusion writes its outputs alone; a loop's body
reuses the buffers that the loop carries; what is updated, sorted or computed element by element is written over an
operand that nobody reads afterwards. What they leave out: the tables of pointers that tuples are, alignment, and the
gaps between buffers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from explorer.analysis.memory.buffer_aliasing import Reuse, aliases, donations, in_place, may_share
from explorer.analysis.memory.schedule import Execution, Leaves, Schedule


@dataclass(frozen=True)
class Lifetimes:
    """The first and last step of each value, and the values that have a part to play.

    Args:
        start, end: Shape `[values]`.
        arguments, donated: Values of the entry's parameters: all, and those that the caller gives away.
        outputs, aliased: What the entry returns: all, and what lies where a donated argument was.
    """

    start: list[int]
    end: list[int]
    arguments: set[int]
    donated: set[int]
    outputs: set[int]
    aliased: set[int]


def lifetimes(schedule: Schedule) -> Lifetimes:
    """When each value of a schedule is alive: what only the whole of it tells."""
    values, last = schedule.values, max(len(schedule.steps) - 1, 0)
    arguments = {value for leaves in schedule.arguments.values() for value in leaves}
    constants = {value for leaves in schedule.constants.values() for value in leaves}
    donated, outputs = _donated(schedule), set(schedule.outputs)
    start, end = list(values.start), list(values.end)
    for own in schedule.renamed:
        value = schedule.original(own)
        end[value] = max(end[value], end[own])
    kept = (arguments - donated) | constants
    for value in kept:
        start[value], end[value] = 0, last
    for value in outputs:
        end[value] = last
    written: set[int] = set()
    for reuse in _reuses(schedule):
        operand = schedule.original(reuse.operand)
        dies = end[operand] == reuse.step > start[operand]
        if dies and operand not in kept and operand not in outputs and reuse.output not in written:
            end[operand] -= 1
            written.add(reuse.output)
    return Lifetimes(start, end, arguments, donated, outputs, _aliased(schedule))


def _reuses(schedule: Schedule) -> Iterator[Reuse]:
    """Which values may lie where an operand was, in the order of the schedule; of one output, what it must do first."""
    values = schedule.values
    updates = [tuple(in_place(schedule.code, execution)) for execution in schedule.executions]
    joined = schedule.joined | {value for reuses in updates for reuse in reuses for value in reuse[:2]}
    largest = max((values.size[output] for output in schedule.outputs), default=0)
    for execution, reuses in zip(schedule.executions, updates, strict=True):
        yield from (reuse for reuse in reuses if values.size[reuse.operand] == values.size[reuse.output])
        for reuse in may_share(schedule.code, execution):
            # XLA doesn't share a place between types or layouts.
            is_alike = values.type[reuse.operand].is_stored_as(values.type[reuse.output])
            if is_alike and (values.size[reuse.output] <= largest or _is_single(schedule, execution, reuse, joined)):
                yield reuse


def _is_single(schedule: Schedule, execution: Execution, reuse: Reuse, joined: set[int]) -> bool:
    """Whether XLA's heap lets two values share: each has a buffer to itself, and the one is what an operand gives.

    So it is no element of a tuple, and no bitcast. What may lie in the place of an output of the program, before that
    is written, is under no such rule.
    """
    if schedule.original(reuse.operand) in joined or reuse.output in joined:
        return False
    code = schedule.code
    return code.op[code.operands(execution.node)[reuse.number]] not in ("get-tuple-element", "bitcast")


def _donated(schedule: Schedule) -> set[int]:
    """The values of arguments whose memory the caller gives away."""
    given_away: set[int] = set()
    for number, element in donations(schedule.code.graph.attributes):
        values: Leaves = schedule.arguments.get(number, ())
        if values and element >= 0:
            values = values[schedule.code.shape(schedule.values.node[values[0]]).element(element)]
        given_away.update(values)
    return given_away


def _aliased(schedule: Schedule) -> set[int]:
    """The outputs that are written to where a donated argument was."""
    places = (max(alias.output, 0) for alias in aliases(schedule.code.graph.attributes.get("input_output_alias", "")))
    return {schedule.outputs[place] for place in places if place < len(schedule.outputs)}
