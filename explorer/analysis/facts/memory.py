"""Where memory peaks, what is largest there, and what could be donated."""

from __future__ import annotations

from collections.abc import Iterator

from explorer.analysis.facts.lines import lines_of
from explorer.model.answers import Fact
from explorer.model.capture import Capture
from explorer.model.graph import Node
from explorer.model.units import bytes_text

_WORTH = 2**20  # bytes: below, nobody runs out of memory
_DONATION = 0.05  # of the peak


def memory(capture: Capture) -> Iterator[Fact]:
    """Facts about a module that has a schedule, and a peak that is worth a sentence."""
    try:
        live = capture.live_memory
    except Exception:  # a text that runs in no order that can be followed
        return
    if not live.is_scheduled or live.peak < _WORTH:
        return
    largest = live.at()[0]
    where = lines_of(capture, largest.node.graph, [largest.node.index])
    whose = {"argument": "an argument", "donated": "a donated argument", "constant": "a constant"}.get(largest.kind)
    made = f"is {whose}, {_argument(largest.node)}" if whose else f"is made on {where}" if where else ""
    devices = int(largest.node.graph.attributes.get("num_partitions", "1"))
    each = f" on each of {devices:,} devices" if devices > 1 else ""
    of = f" of the {bytes_text(live.reserved)} that the compiler reserves" if live.besides else ""
    peak = f"{bytes_text(live.peak)}{of}{each}"
    text = f"Memory peaks at {peak}; the largest buffer then, {bytes_text(largest.bytes)}, {made}"
    nodes = (largest.node.index,)
    yield Fact("memory", f"{text.rstrip(', ')}.", largest.bytes / live.peak * 0.5, "hlo", nodes)
    could = sum(donation.bytes for donation in live.donations)
    if could >= _DONATION * live.peak:
        names = tuple(donation.argument.index for donation in live.donations)
        one = len(names) == 1
        which = f"The argument {_argument(live.donations[0].argument)}" if one else f"{len(names):,} arguments"
        types = "its type" if one else "their types"
        text = f"{which} of {bytes_text(could)} could be donated: an output has {types}."
        yield Fact("donation", text, could / live.peak, "hlo", names)


def _argument(node: Node) -> str:
    """As the user writes it where JAX kept that, `state['w']`."""
    return node.scope or node.name
