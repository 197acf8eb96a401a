"""What of a sharded program nobody can have meant: arrays gathered whole, work that all devices repeat, idle axes.

An array is *the same* along an axis where the instructions prove it (`spread`). What the author asked for, by a
constraint, a `shard_map` or `out_shardings`, is never waste; neither is a gather whose result every device needs for
another part of the result, as that of a weight in FSDP, or of the sequence before a product that splits its output.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from explorer.analysis.sharding.arguments import ArgumentSearch
from explorer.analysis.sharding.gathered import GatheredSearch
from explorer.analysis.sharding.outputs import OutputSearch
from explorer.analysis.sharding.program import ShardedProgram
from explorer.analysis.sharding.subject import Subject, Waste


def find_waste(program: ShardedProgram) -> Sequence[Waste]:
    """All of it, the axes that nothing uses first.

    What is said of one gather is said once: of the products that repeat, else of the output, else of itself.
    """
    if program.mesh.count == 1:
        return ()
    subject = Subject(program)
    gathers, results = GatheredSearch(subject), OutputSearch(subject)
    idle = list(results.idle())
    without = sum(1 << program.mesh.names.index(name) for waste in idle for name in waste.axes)
    repeated, contracted = list(gathers.repeated(without)), list(gathers.contracted())
    outputs = _unexplained(results.outputs(without), repeated)
    gathered = _unexplained(gathers.gathered(), [*repeated, *contracted, *outputs])
    arguments = ArgumentSearch(subject).arguments(without)
    return [*idle, *repeated, *contracted, *gathered, *outputs, *results.made_whole(), *arguments]


def _unexplained(wastes: Iterable[Waste], explained: Iterable[Waste]) -> list[Waste]:
    gathers = {waste.of.node.index for waste in explained if waste.of is not None}
    return [waste for waste in wastes if waste.of is None or waste.of.node.index not in gathers]
