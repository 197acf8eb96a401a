"""A diff in a sentence: of the program that runs first, for that is what costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from explorer.analysis.cost.kernels import running_nodes
from explorer.analysis.diff.stage_diff import StageDiff
from explorer.analysis.diff.value import Value
from explorer.model.capture import Capture
from explorer.model.text import list_names
from explorer.model.units import count_text, factor_text

# What a program costs, as `Value.name` has it, and as a sentence says it.
_COSTS = {"flops": "FLOPs", "bytes accessed": "bytes moved", "temp bytes": "bytes of temporary memory"}
_SEEN = 0.005  # of a cost, from which on it is another


def headline(stages: Mapping[str, StageDiff], values: Sequence[Value], a: Capture, b: Capture) -> str:
    """What differs, in a sentence that ends without a full stop.

    Args:
        stages: Those that both have.
        values: What differs beside them.
        a, b: The two.
    """
    changed = [name for name, stage in stages.items() if not stage.is_empty]
    if not stages:
        return "the two have no stage in common"
    if "hlo" in changed:
        return f"the compiled program differs: {_costs(values, a, b)}"
    if "hlo" not in stages:
        return f"{list_names(changed)} {_differ(changed)}" if changed else _same(values)
    if changed:
        return f"the compiled program is the same, though {list_names(changed)} {_differ(changed)}"
    return _same(values)


def _differ(names: Sequence[str]) -> str:
    return "differs" if len(names) == 1 else "differ"


def _same(values: Sequence[Value]) -> str:
    names = [value.name for value in values]
    if not names:
        return "nothing differs but times and the numbers in names"
    return f"no operation differs, but {list_names(names) if len(names) <= 3 else count_text(len(names), 'fact')}"


def _costs(values: Sequence[Value], a: Capture, b: Capture) -> str:
    """The kernels, and what of the costs is clearly another; what is the same isn't listed."""
    one, other = (len(running_nodes(capture.hlo.graph)) for capture in (a, b))
    kernels = f"{one:,} → {count_text(other, 'kernel')}" if one != other else f"{count_text(one, 'kernel')} as before"
    by_name = {value.name: value for value in values}
    costs = [_cost(by_name[key], name) for key, name in _COSTS.items() if key in by_name]
    return ", ".join([kernels, *filter(None, costs)])


def _cost(value: Value, name: str) -> str:
    """Empty where it is about the same."""
    if value.ratio is None:
        return f"{value.a or '–'} → {value.b or '–'} {name}"
    return f"{factor_text(value.ratio)} the {name}" if abs(value.ratio - 1) >= _SEEN else ""
