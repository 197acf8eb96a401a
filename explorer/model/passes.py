"""Passes of the compiler: what each did to a program, and the history of an instruction through them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple, overload

import numpy as np

from explorer.errors import UnknownNameError
from explorer.model.declared import cached_property, declared
from explorer.model.graph import Ints
from explorer.model.text_versions import Versions, unified

LINK_KINDS = ("rewritten", "merged", "fused", "duplicated", "with", "unused", "unknown", "replaced", "inlined")
"""Kinds of links between instructions; a capture's file stores their index."""


class PassLink(NamedTuple):
    """Link from an instruction before a pass (`old`) to one after it (`new`, -1 for none); both are keys.

    Args:
        position: Index of the pass among those that changed something.
        kind: One of `LINK_KINDS`.
        inferred: True if it follows from equal structure, not from a rewired reader.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> passes = explorer.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(8)).passes
        >>> {passes[link.position].name for link in passes.links if link.kind == "fused"}
        {'fusion'}
    """

    position: int
    old: int
    kind: str
    new: int
    inferred: bool


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """Event in the history of an instruction: `says` what happened to it, with the names of `others` in it.

    `position` is the index of the pass, -1 before all passes; `text` the instruction's line, empty for a copy.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> capture = explorer.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(8))
        >>> sine, = capture.hlo.graph.where("op:sine")
        >>> [(event.pass_name, event.says) for event in capture.passes.history(sine.name)][-1]
        ('fusion', 'fused into fused_computation as sin.0')
    """

    position: int
    pass_name: str
    name: str
    says: str
    others: tuple[str, ...] = ()
    text: str = ""
    inferred: bool = False


@dataclass(frozen=True)
class History:
    """History of an instruction, its origins and its successors, in order.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> capture = explorer.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(8))
        >>> history = capture.passes.history(capture.hlo.graph.where("op:fusion")[0].name)
        >>> len(history) > 0, "fusion" in {event.pass_name for event in history}
        (True, True)
    """

    name: str
    events: tuple[HistoryEvent, ...]

    def __iter__(self) -> Iterator[HistoryEvent]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def __repr__(self) -> str:
        wide = max((len(event.pass_name) for event in self.events), default=0)
        named = max((len(event.name) for event in self.events), default=0)
        rows = [
            f"  {event.pass_name:<{wide}}  {event.name:<{named}}  {event.says}{' (inferred)' * event.inferred}"
            for event in self.events
        ]
        return "\n".join([f"History of {self.name}", *rows])


@dataclass(frozen=True, slots=True)
class Pass:
    """One run of one pass and its effect on the module.

    Args:
        index: Index among all recorded passes, from 0.
        name, pipeline: The compiler's names.
        born, died, changed: Number of instructions added, removed, and rewritten under one name.
        moved: True if it only reordered instructions.
        instructions: Number of instructions after it.
        seconds: Duration, with the writing of the snapshot if it changed something; None if unknown.
        snapshot: The module after it, as an index into the versions' snapshots.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> step = explorer.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(8)).passes["fusion"]
        >>> step.is_consequential, "fusion(" in step.before, "fusion(" in step.after
        (True, False, True)
    """

    index: int
    name: str
    pipeline: str
    born: int
    died: int
    changed: int
    moved: bool
    instructions: int
    seconds: float | None
    snapshot: int
    first: int = -1  # the snapshot before it; equal to `snapshot` if it changed nothing
    versions: Versions | None = field(default=None, repr=False, compare=False)

    @property
    def is_consequential(self) -> bool:
        """Return True if the pass changed more than metadata and the numbers in names."""
        return bool(self.born or self.died or self.changed or self.moved)

    @property
    def before(self) -> str:
        """Return the text of the module before the pass, without metadata."""
        return self._versions.text(self.first)

    @property
    def after(self) -> str:
        """Return the text of the module after the pass, without metadata."""
        return self._versions.text(self.snapshot)

    def diff(self, context: int = 3) -> str:
        """Return the changes as a unified diff with `context` lines around each.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> step = explorer.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(8)).passes["fusion"]
            >>> any(line.startswith("+") and "fusion(" in line for line in step.diff().splitlines())
            True
        """
        versions = self._versions
        names = (f"before {self.name}", f"after {self.name}")
        return unified(versions.rows(self.first), versions.rows(self.snapshot), versions.lines, names, context)

    @property
    def _versions(self) -> Versions:
        assert self.versions is not None
        return self.versions

    def __str__(self) -> str:
        parts = [f"+{self.born}" * bool(self.born), f"−{self.died}" * bool(self.died)]
        parts += [f"~{self.changed}" * bool(self.changed), "reordered" * self.moved]
        return f"{self.name}: {' '.join(part for part in parts if part) or 'nothing changed'}"


class Passes(Sequence[Pass]):
    """Passes that changed something, in execution order; `all` includes the others.

    A pass changed something if the module's text differs after it, not counting metadata and numbers in names.

    Args:
        versions: The lines and snapshots of the module.
        recorded: All passes known to have run.
        is_complete: True if `recorded` includes the passes that changed nothing.
        omitted: Description of parts left out because the program is too large; empty if nothing was.
        links: Links of instructions, if known already.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> passes = explorer.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(8)).passes
        >>> passes["fusion"].name, passes.is_complete, all(step.is_consequential for step in passes)
        ('fusion', True, True)
    """

    def __init__(
        self,
        versions: Versions,
        recorded: Sequence[Pass],
        *,
        is_complete: bool = False,
        omitted: str = "",
        links: Sequence[PassLink] | None = None,
    ) -> None:
        self.versions = versions
        self.all = tuple(recorded)
        self.is_complete = is_complete
        self.omitted = omitted
        if links is not None:
            # Fills the cached property.
            self.__dict__["links"] = links
        # As `is_consequential`, without a call for each of a thousand passes.
        self._consequential = tuple([p for p in self.all if p.born or p.died or p.changed or p.moved])

    def __len__(self) -> int:
        return len(self._consequential)

    def __iter__(self) -> Iterator[Pass]:
        return iter(self._consequential)

    @overload
    def __getitem__(self, at: int | str) -> Pass: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Pass]: ...
    def __getitem__(self, at: int | str | slice) -> Pass | Sequence[Pass]:
        """Return the pass at a position among those that changed something, or the first pass of a name.

        UnknownNameError for an unknown name; the message lists the names.
        """
        if not isinstance(at, str):
            return self._consequential[at]
        # A run that changed something comes before one that didn't.
        for step in (*self._consequential, *self.all):
            if step.name == at:
                return step
        names = ", ".join(dict.fromkeys(p.name for p in self._consequential)) or "none"
        raise UnknownNameError(f"no pass is named {at!r}; these changed something: {names}")

    @cached_property
    @declared
    def links(self) -> Sequence[PassLink]:
        """Return links from each removed or copied instruction to its successors after the pass, in order of passes."""
        ...

    @cached_property
    def effects(self) -> Sequence[Effect]:
        """Return the effect of each pass that changed something; its rows are indices into `versions.lines`."""
        return [effect_of(self.versions, before, after) for before, after in self.rows_around()]

    @cached_property
    def effect_at(self) -> Mapping[int, tuple[int, Effect]]:
        """Return a dict for passes that changed something: index in `all` → (position among them, effect)."""
        pairs = enumerate(zip(self._consequential, self.effects, strict=True))
        return {step.index: (position, effect) for position, (step, effect) in pairs}

    def rows_around(self) -> list[tuple[Ints, Ints]]:
        """Return (before, after) for each pass that changed something: its text as indices into `versions.lines`."""
        rows = self.versions.replay()
        return [(rows[step.first], rows[step.snapshot]) for step in self._consequential]

    @declared
    def history(self, name: str) -> History:
        """Return the events of an instruction, its origins and its successors, in the order of the passes.

        Args:
            name: Name of an instruction after any pass, `add.3`.

        Raises:
            UnknownNameError: No instruction had this name; the message lists similar names.
        """
        ...

    def __repr__(self) -> str:
        ran = f"{len(self.all):,}" + ("" if self.is_complete else " recorded")
        head = f"Passes: {len(self):,} of {ran} changed something"
        if not self.all:
            return head
        wide = max((len(p.name) for p in self), default=0)
        rows = [
            f"  {i:>3}  {p.name:<{wide}}  {_signed('+', p.born)}{_signed('−', p.died)}{_signed('~', p.changed)}"
            f"{p.instructions:>8,}  {p.pipeline}{', reordered' if p.moved else ''}"
            for i, p in enumerate(self)
        ]
        columns = f"  {'#':>3}  {'pass':<{wide}}  {'born':>6}{'died':>7}{'changed':>8}{'left':>7}  pipeline"
        return "\n".join([head, columns, *rows, *([f"  {self.omitted}"] if self.omitted else [])])


def _signed(sign: str, count: int) -> str:
    return f"{sign}{count:,}".rjust(6 if sign == "+" else 7) if count else " " * (6 if sign == "+" else 7)


def measured(versions: Versions, ran: Sequence[tuple[str, str, float | None, int]]) -> list[Pass]:
    """Return one `Pass` with its effect for each run in `ran`.

    Args:
        versions: Lines and snapshots of the module.
        ran: Name, pipeline, seconds (None if unknown) and index of the snapshot after each run, in order.
    """
    passes: list[Pass] = []
    at, rows = 0, versions.rows(0) if versions.snapshots else np.zeros(0, np.int32)
    count = int((versions.key[rows] >= 0).sum())
    for index, (name, pipeline, seconds, snapshot) in enumerate(ran):
        first, effect = at, Effect()
        if snapshot != at:
            # A step without a pass of its own makes no snapshot that is skipped: they follow one another.
            after = versions.rows(snapshot)
            effect = effect_of(versions, rows, after)
            at, rows, count = snapshot, after, int((versions.key[after] >= 0).sum())
        passes.append(
            Pass(
                index=index,
                name=name,
                pipeline=pipeline,
                born=len(effect.born),
                died=len(effect.died),
                changed=len(effect.changed),
                moved=effect.moved,
                instructions=count,
                seconds=seconds,
                snapshot=snapshot,
                first=first,
                versions=versions,
            )
        )
    return passes


@dataclass(frozen=True, slots=True)
class Effect:
    """Effect of one pass: rows of added and removed instructions, and (before, after) of rewritten ones.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> passes = explorer.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(8)).passes
        >>> effect = passes.effects[[step.name for step in passes].index("fusion")]
        >>> len(effect.born) > 0, effect.moved
        (True, False)
    """

    born: tuple[int, ...] = ()
    died: tuple[int, ...] = ()
    changed: tuple[tuple[int, int], ...] = ()
    moved: bool = False


def effect_of(versions: Versions, before: Ints, after: Ints) -> Effect:
    """Return the effect between two snapshots, given as indices into `versions.lines`.

    The effect is empty if only numbers in names differ.
    """
    gone = _only_in(before, after)
    died = _row_of_key(versions, gone)
    born = _row_of_key(versions, _only_in(after, before))
    if not died and not born:
        # An order means something once the module is scheduled; before, the printer chooses it.
        return Effect(moved=bool(len(gone)) and _scheduled(versions, after) != _scheduled(versions, before))
    continued = _continued(versions, died, born)
    effect = Effect(
        born=_rows_without(born, continued.keys()),
        died=_rows_without(died, set(continued.values())),
        changed=tuple([(died[old], born[new]) for new, old in continued.items()]),
    )
    # The cheap comparison first: numbering the names applies a regular expression to each line.
    is_alike = len(effect.born) == len(effect.died) and _kinds(versions, before) == _kinds(versions, after)
    if is_alike and _numbered(versions, before) == _numbered(versions, after):
        return Effect()
    return effect


def _only_in(rows: Ints, others: Ints) -> Ints:
    """Return the `rows` that aren't in `others`, ascending; faster than `setdiff1d` where few rows differ."""
    return np.sort(rows[np.isin(rows, others, invert=True)])


def _kinds(versions: Versions, rows: Ints) -> tuple[bytes, bytes]:
    """Return the codes of all lines' operations, and of their types, as bytes, which compare faster than texts."""
    return versions.op[rows].tobytes(), versions.type[rows].tobytes()


def _row_of_key(versions: Versions, rows: Ints) -> dict[int, int]:
    """Return a mapping from key to row for the instructions among `rows`; other lines are left out."""
    instructions = rows[versions.key[rows] >= 0]
    return dict(zip(versions.key[instructions].tolist(), instructions.tolist(), strict=True))


def _continued(versions: Versions, died: Mapping[int, int], born: Mapping[int, int]) -> dict[int, int]:
    """Return a mapping from a key in `born` to the key in `died` of the same instruction.

    Instructions that did not exist before are left out.
    """
    # A computation that was renamed, or an instruction that moved to another, keeps the instruction's name.
    left = {versions.names[key]: key for key in died if key not in born}
    old_key = {key: left.get(versions.names[key], key) for key in born}
    return {key: old for key, old in old_key.items() if old in died}


def _rows_without(row_of_key: Mapping[int, int], keys: AbstractSet[int]) -> tuple[int, ...]:
    return tuple([row for key, row in row_of_key.items() if key not in keys])


def _scheduled(versions: Versions, rows: Ints) -> bool:
    return any(["is_scheduled=true" in versions.lines[row] for row in rows[:3].tolist()])


_ANY_NAME = re.compile(r"%[\w.\-]+|(?<=[(, ])[\w.\-]+(?=: )")


def _numbered(versions: Versions, rows: Ints) -> list[str]:
    """Return the lines with each name replaced by a number, in order of first appearance.

    The lines of two snapshots are equal if the snapshots differ only in names.
    """
    numbers: dict[str, int] = {}

    def number(name: re.Match[str]) -> str:
        return f"%{numbers.setdefault(name[0].lstrip('%'), len(numbers))}"

    at: list[int] = rows.tolist()
    return [_ANY_NAME.sub(number, versions.lines[row]) for row in at]
