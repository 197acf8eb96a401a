"""Comparison of two captures: `diff`, gained and lost fusions, changed figures, and a headline."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from explorer.analysis.diff.stage_diff import StageDiff, stage_diff
from explorer.analysis.kernel_costs import running_nodes
from explorer.errors import ArgumentsError, UnknownNameError
from explorer.model.capture import Capture
from explorer.model.declared import Displayable, cached_property
from explorer.model.graph import Node
from explorer.model.text import list_names
from explorer.model.units import count_text, factor_text

_PLUMBING = frozenset(["parameter", "constant", "tuple", "get-tuple-element", "bitcast", "broadcast"])
_MAX_OPERATIONS = 4


@dataclass(frozen=True, slots=True)
class Fusion:
    """A fused kernel of one side, described by its contents.

    Args:
        name: Name of the instruction.
        holds: Its operations with their counts: `2 multiply, exponential, reduce`.
        lines: Their source lines, as `function:line` of the innermost frames.
        instructions: Number of instructions inside.
        node: The instruction.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> x = jnp.ones((64, 64))
        >>> before = explorer.explore(lambda x: jnp.tanh(x) * 2, x)
        >>> after = explorer.explore(lambda x: x @ x, x)
        >>> [fusion.holds for fusion in explorer.diff(before, after).fusions_lost]
        ['multiply, tanh']
    """

    name: str
    holds: str
    lines: tuple[str, ...]
    instructions: int
    node: Node

    def __repr__(self) -> str:
        return f"Fusion({self.name}: {self.holds}{' from ' * bool(self.lines)}{', '.join(self.lines)})"


@dataclass(frozen=True, eq=False)
class Diff(Displayable):
    """The differences of two captures; see `diff`.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> x = jnp.ones((64, 64))
        >>> before = explorer.explore(lambda x: jnp.tanh(x) * 2, x)
        >>> after = explorer.explore(lambda x: jnp.tanh(x @ x) * 2, x)
        >>> compared = explorer.diff(before, after)
        >>> compared.is_empty, [node.op for node in compared.jaxpr.only_in_b]
        (False, ['dot_general'])
    """

    a: Capture
    b: Capture

    @cached_property
    def stages(self) -> Mapping[str, StageDiff]:
        there = {stage.name for stage in self.b.stages}
        return {s.name: stage_diff(s.name, self.a, self.b) for s in self.a.stages if s.name in there}

    @property
    def jaxpr(self) -> StageDiff:
        return self.stage("jaxpr")

    @property
    def stablehlo(self) -> StageDiff:
        return self.stage("stablehlo")

    @property
    def hlo(self) -> StageDiff:
        return self.stage("hlo")

    def stage(self, name: str) -> StageDiff:
        """Return the difference of one stage; UnknownNameError lists the common stages."""
        try:
            return self.stages[name]
        except KeyError:
            there = ", ".join(self.stages) or "none"
            raise UnknownNameError(f"not both captures have a stage {name!r}; both have: {there}") from None

    @cached_property
    def fusions_gained(self) -> tuple[Fusion, ...]:
        """Return the fused kernels of `b` without a counterpart in `a`; empty if a capture has no HLO.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> x = jnp.ones(1000)
            >>> after = explorer.explore(lambda x: jnp.tanh(x) * 2, x)
            >>> compared = explorer.diff(explorer.explore(jnp.tanh, x), after)
            >>> [fusion.holds for fusion in compared.fusions_gained]
            ['multiply, tanh']
        """
        return self._fusions(self.b, self.hlo.only_in_b) if "hlo" in self.stages else ()

    @cached_property
    def fusions_lost(self) -> tuple[Fusion, ...]:
        """Return the fused kernels of `a` without a counterpart in `b`; empty if a capture has no HLO."""
        return self._fusions(self.a, self.hlo.only_in_a) if "hlo" in self.stages else ()

    @cached_property
    def fusions_changed(self) -> tuple[tuple[Fusion, Fusion], ...]:
        if "hlo" not in self.stages:
            return ()
        pairs = [(x, y) for x, y in self.hlo.pairs if x.op == "fusion"]
        olds = self._fusions(self.a, [x for x, _ in pairs])
        news = self._fusions(self.b, [y for _, y in pairs])
        return tuple((old, new) for old, new in zip(olds, news, strict=True) if old.holds != new.holds)

    @staticmethod
    def _fusions(capture: Capture, nodes: Sequence[Node]) -> tuple[Fusion, ...]:
        graph = capture.hlo.graph
        group_of = {group.caller: i for i, group in enumerate(graph.groups) if group.kind == "fusion"}
        inside = graph.members
        return tuple(
            _fusion(node, [Node(graph, at) for at in inside[group_of[node.index]].tolist()])
            for node in nodes
            if node.op == "fusion" and node.index in group_of
        )

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """Return the facts and figures that differ: name, signature, failure, versions, XLA's cost, memory, constants.

        Times are in `durations`.
        """
        a, b = self.a, self.b
        rows = [
            Value("function", a.function, b.function),
            Value("signature", a.signature, b.signature),
            Value("failure", a.failure, b.failure),
            *(Value(key, a.environment.get(key, ""), b.environment.get(key, "")) for key in _keys(a, b, "environment")),
            *(number_value(key, a.cost.get(key), b.cost.get(key)) for key in _keys(a, b, "cost")),
            *(number_value(f"{key} bytes", a.memory.get(key), b.memory.get(key)) for key in _keys(a, b, "memory")),
            number_value("constant bytes", *(sum(constant.bytes for constant in c.constants) for c in (a, b))),
        ]
        return tuple(row for row in rows if row.a != row.b)

    @property
    def durations(self) -> tuple[Value, ...]:
        """Return the seconds of each compilation step that ran for both captures; cached steps are omitted."""
        one, other = self.a.durations.done, self.b.durations.done
        return tuple(
            Value(step, f"{one[step]:.3f} s", f"{other[step]:.3f} s", ratio_of(one[step], other[step]))
            for step in one
            if step in other
        )

    @property
    def headline(self) -> str:
        """Return one sentence that summarizes the differences.

        Example:
            >>> import explorer, jax, jax.numpy as jnp
            >>> before = explorer.explore(jnp.tanh, jnp.ones(8))
            >>> explorer.diff(before, explorer.explore(jax.checkpoint(jnp.tanh), jnp.ones(8))).headline
            'the compiled program is the same, though jaxpr differs'
        """
        return headline(self.stages, self.values, self.a, self.b)

    @property
    def is_empty(self) -> bool:
        """Return True if nothing differs but times and numbers in names."""
        return not self.values and all(stage.is_empty for stage in self.stages.values())

    def __repr__(self) -> str:
        rows: list[tuple[str, str]] = [(value.name, str(value)) for value in self.values]
        for name, stage in self.stages.items():
            effect = str(stage.step).partition(": ")[2]
            rows.append((name, f"{effect}, of {len(stage.a.graph):,} and {len(stage.b.graph):,}"))
        for word, fusions in (("gained", self.fusions_gained), ("lost", self.fusions_lost)):
            rows += [(f"fusion {word}", text) for text in _fusion_texts(fusions)]
        rows += [
            ("fusion changed", f"{old.name}: {old.holds} → {new.holds}")
            for old, new in self.fusions_changed[:_MAX_SHOWN]
        ]
        head = f"Diff({self.a.function} → {self.b.function}{': nothing differs' * self.is_empty})"
        wide = max((len(name) for name, _ in rows), default=0)
        return "\n".join([head, *(() if self.is_empty else (f"  {name:<{wide}}  {text}" for name, text in rows))])


_MAX_SHOWN = 8  # fusions of a kind in a repr


def diff(a: Capture, b: Capture | None = None, *, target: Any = None) -> Diff:
    """Compare two captures: other shapes, versions, options, hardware, or an edited function.

    Operations are matched by their kind and their surroundings, not by their names. Other numbers in names and moved
    lines are no difference.

    Args:
        a, b: Captures of `explore`, `load` or `open_hlo`; their common stages are compared.
        target: In place of `b`: hardware that need not be installed, as for `explore`. `a` is compiled for it again.

    Returns:
        The fusions gained and lost, the matched nodes and the text difference of each stage, and the facts and figures
        that differ. A notebook displays it.

    Raises:
        ArgumentsError: An argument is no capture, or both `b` and `target` are given.
        NotRecordedError: With a `target`, `a` comes from a file, or its function no longer exists.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> tanh = explorer.explore(lambda x: jnp.tanh(x), jnp.ones(8))
        >>> explorer.diff(tanh, explorer.explore(lambda x: jnp.tanh(x) + 1, jnp.ones(8))).jaxpr
        StageDiff(jaxpr: +1, of 2 and 3)
    """
    if target is not None and isinstance(a, Capture):  # pyright: ignore[reportUnnecessaryIsInstance]
        if b is not None:
            raise ArgumentsError("diff takes a second capture or a target, not both. Hint: diff(a, target='h100').")
        b = a.compiled_for(target)
    for name, given in (("a", a), ("b", b)):
        if not isinstance(given, Capture):  # pyright: ignore[reportUnnecessaryIsInstance] - users are not type-checked
            raise ArgumentsError(
                f"diff takes two captures; `{name}` is {type(given).__name__}. "
                "Hint: diff(explore(f, x), explore(g, x))."
            )
    return Diff(a, cast(Capture, b))


def _fusion(node: Node, inside: Sequence[Node]) -> Fusion:
    held = Counter(inner.op for inner in inside if inner.op not in _PLUMBING) or Counter(inner.op for inner in inside)
    # Names break ties, so that equal kernels have equal texts.
    named = [
        f"{count} {op}" if count > 1 else op for op, count in sorted(held.items(), key=lambda one: (-one[1], one[0]))
    ]
    more = len(named) - _MAX_OPERATIONS
    holds = ", ".join(named[:_MAX_OPERATIONS]) + f" and {more} other{'s' * (more > 1)}" * (more > 0)
    places = dict.fromkeys(
        f"{place.function.rpartition('.')[2]}:{place.line}" for inner in inside if (place := inner.place) is not None
    )
    return Fusion(node.name, holds, tuple(places), len(inside), node)


def _fusion_texts(fusions: Sequence[Fusion]) -> list[str]:
    """Return a text for each distinct fusion with its count, the most frequent first; after eight, one for the rest."""
    ranked = Counter((fusion.holds, fusion.lines) for fusion in fusions).most_common()
    # Reversed, so that the first fusion of a kind overwrites the others.
    first = {(fusion.holds, fusion.lines): repr(fusion)[len("Fusion(") : -1] for fusion in reversed(fusions)}
    texts = [first[kind] + f" (×{count:,})" * (count > 1) for kind, count in ranked]
    if len(ranked) > _MAX_SHOWN:
        rest = sum(count for _, count in ranked[_MAX_SHOWN:])
        texts[_MAX_SHOWN:] = [f"{rest:,} more of {len(ranked) - _MAX_SHOWN:,} kinds"]
    return texts


def _keys(a: Capture, b: Capture, field: str) -> list[str]:
    return list(dict.fromkeys([*getattr(a, field), *getattr(b, field)]))


# Costs of a program by `Value.name`, and their names in a sentence.
_COSTS = {"flops": "FLOPs", "bytes accessed": "bytes moved", "temp bytes": "bytes of temporary memory"}
_MIN_CHANGE = 0.005  # share of a cost; smaller changes aren't mentioned


def headline(stages: Mapping[str, StageDiff], values: Sequence[Value], a: Capture, b: Capture) -> str:
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
    """Return as text the number of kernels before and after, and the costs that clearly differ."""
    one, other = (len(running_nodes(capture.hlo.graph)) for capture in (a, b))
    kernels = f"{one:,} → {count_text(other, 'kernel')}" if one != other else f"{count_text(one, 'kernel')} as before"
    by_name = {value.name: value for value in values}
    costs = [_cost(by_name[key], name) for key, name in _COSTS.items() if key in by_name]
    return ", ".join([kernels, *filter(None, costs)])


def _cost(value: Value, name: str) -> str:
    if value.ratio is None:
        return f"{value.a or '–'} → {value.b or '–'} {name}"
    return f"{factor_text(value.ratio)} the {name}" if abs(value.ratio - 1) >= _MIN_CHANGE else ""


@dataclass(frozen=True, slots=True)
class Value:
    """A figure or fact of both sides as text; `ratio` is b/a if both are positive numbers.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> before = explorer.explore(lambda x: x + 1, jnp.ones(1000))
        >>> after = explorer.explore(lambda x: x + 1, jnp.ones(2000))
        >>> for value in explorer.diff(before, after).values:
        ...     if value.ratio: print(value.name, value.a, value.b, value.ratio)
        flops 1,000 2,000 2.0
        bytes accessed 8,000 16,000 2.0
        argument bytes 4,000 8,000 2.0
        output bytes 4,000 8,000 2.0
    """

    name: str
    a: str
    b: str
    ratio: float | None = None

    def __str__(self) -> str:
        times = f" (×{self.ratio:.3g})" if self.ratio is not None and abs(self.ratio - 1) >= 0.005 else ""
        return f"{self.a or '–'} → {self.b or '–'}{times}"


def number_value(name: str, a: float | None, b: float | None) -> Value:
    return Value(name, _amount(a), _amount(b), ratio_of(a, b))


def ratio_of(a: float | None, b: float | None) -> float | None:
    return b / a if a and b and a > 0 and b > 0 else None


def _amount(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if float(value).is_integer() else re.sub(r"\.?0+$", "", f"{value:,.3f}")
