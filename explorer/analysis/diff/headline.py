"""A diff in a sentence: of the program that runs first, for that is what costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from explorer.analysis.cost.kernels import running_nodes
from explorer.model.text import list_names
from explorer.model.units import count_text, factor_text

if TYPE_CHECKING:
    from explorer.analysis.diff.diff import Diff, Value

# What a program costs, as `Value.name` has it, and as a sentence says it.
_COSTS = {"flops": "FLOPs", "bytes accessed": "bytes moved", "temp bytes": "bytes of temporary memory"}
_SEEN = 0.005  # of a cost, from which on it is another


def headline(diff: Diff) -> str:
    """What differs, in a sentence that ends without a full stop."""
    changed = [name for name, stage in diff.stages.items() if not stage.is_empty]
    if not diff.stages:
        return "the two have no stage in common"
    if "hlo" in changed:
        return f"the compiled program differs: {_costs(diff)}"
    if "hlo" not in diff.stages:
        return f"{list_names(changed)} {_differ(changed)}" if changed else _same(diff)
    if changed:
        return f"the compiled program is the same, though {list_names(changed)} {_differ(changed)}"
    return _same(diff)


def _differ(names: Sequence[str]) -> str:
    return "differs" if len(names) == 1 else "differ"


def _same(diff: Diff) -> str:
    names = [value.name for value in diff.values]
    if not names:
        return "nothing differs but times and the numbers in names"
    return f"no operation differs, but {list_names(names) if len(names) <= 3 else count_text(len(names), 'fact')}"


def _costs(diff: Diff) -> str:
    """The kernels, and what of the costs is clearly another; what is the same isn't listed."""
    one, other = (len(running_nodes(capture.hlo.graph)) for capture in (diff.a, diff.b))
    kernels = f"{one:,} → {count_text(other, 'kernel')}" if one != other else f"{count_text(one, 'kernel')} as before"
    values = {value.name: value for value in diff.values}
    costs = [_cost(values[key], name) for key, name in _COSTS.items() if key in values]
    return ", ".join([kernels, *filter(None, costs)])


def _cost(value: Value, name: str) -> str:
    """Empty where it is about the same."""
    if value.ratio is None:
        return f"{value.a or '–'} → {value.b or '–'} {name}"
    return f"{factor_text(value.ratio)} the {name}" if abs(value.ratio - 1) >= _SEEN else ""
