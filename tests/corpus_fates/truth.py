"""The pass that ended each removable operation, read from XLA's dumps of the plain program.

Nothing here comes from Explorer, and nothing is numbered: an operation is known by the prime among its dimensions and
its own name, and the pass that ended it is the first after which the dump has one less. What is in a function that is
called several times counts once for each call, so that the inlining of calls changes no count.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import jax

from tests.corpus_fates.programs import KINDS, Program

_SNAPSHOT = re.compile(r".+?\.(?P<number>\d{4,})\.(?P<pipeline>.+?)\.after_(?P<name>.+?)(?:\.before_.+)?\.txt")
_INSTRUCTION = re.compile(
    r"^\s+(?:ROOT )?%?(?P<name>[\w.\-]+) = (?P<type>\w+\[[\d,]*\])(?:\{[^}]*\})? (?P<op>[\w\-]+)\("
)
_HEAD = re.compile(r"^(?P<entry>ENTRY )?%?(?P<name>[\w.\-]+) .*\{\s*$")
_CALLED = re.compile(r"\b(?:to_apply|calls|body|condition|(?:true|false)_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"\bbranch_computations=\{([^}]*)\}")
_FUNCTION = re.compile(r"func\.func (?:public |private )?@(?P<name>[\w.\-]+|\"[^\"]+\")\(")
_FUNCTION_CALL = re.compile(r"\bcall @([\w.\-]+|\"[^\"]+\")\(")
_STABLEHLO = re.compile(r"stablehlo\.(\w+)[ (]")
_HLO_NAMES = {"broadcast_in_dim": "broadcast", "dot_general": "dot"}
_TENSOR = re.compile(r"tensor<((?:\d+x)*)[a-z]\w*>")


class Instruction(NamedTuple):
    """One line of a dump: name, operation, type, the computation it is in, and how often that is called."""

    name: str
    op: str
    type: str
    computation: str
    times: int


@dataclass(frozen=True)
class Snapshot:
    """The module after a pass: `0` is the one before all passes."""

    pass_name: str
    instructions: tuple[Instruction, ...]

    @property
    def shape(self) -> tuple[tuple[str, str], ...]:
        """The operations with their types in order: what a snapshot is known by, since names have counters."""
        return tuple((each.op, each.type) for each in self.instructions)


@dataclass(frozen=True)
class Truth:
    """What became of one strand's operations of one kind.

    Args:
        written: How many equations the jaxpr has.
        lowered: How many StableHLO has.
        ends: Of those that ended, the number of the snapshot after the pass that ended them; 0 is the import.
        left: How many the last snapshot has.
        is_known: False if a pass made more of them: what ended then can't be told by counting.
    """

    written: int
    lowered: int
    ends: Counter[int]
    left: int
    is_known: bool


@dataclass(frozen=True)
class Dump:
    """What JAX and XLA wrote of one program."""

    snapshots: tuple[Snapshot, ...]
    stablehlo: tuple[tuple[str, tuple[int, ...], int], ...]

    @property
    def final(self) -> Snapshot:
        return self.snapshots[-1]


def dump(program: Program) -> Dump:
    """Compile a program and read what is dumped after each pass."""
    lowered = jax.jit(program).lower(*program.arguments)
    with tempfile.TemporaryDirectory() as folder:
        lowered.compile(compiler_options={"xla_dump_to": folder, "xla_dump_hlo_pass_re": ".*"})
        first: list[Snapshot] = []
        numbered: list[tuple[int, Snapshot]] = []
        last: list[Snapshot] = []
        for path in Path(folder).iterdir():
            match = _SNAPSHOT.fullmatch(path.name)
            if match:
                numbered.append((int(match["number"]), Snapshot(match["name"], _read(path))))
            elif path.name.endswith("before_optimizations.txt"):
                first.append(Snapshot("", _read(path)))
            elif path.name.endswith("after_optimizations.txt"):
                last.append(Snapshot("", _read(path)))
    assert len(first) == len(last) == 1
    ordered = [shot for _, shot in sorted(numbered, key=lambda pair: pair[0])]
    return Dump((*first, *ordered, *last), tuple(_stablehlo(lowered.as_text())))


def _read(path: Path) -> tuple[Instruction, ...]:
    computation, entry = "", ""
    instructions: list[re.Match[str]] = []
    of: list[str] = []
    calls: list[tuple[str, str]] = []
    for line in path.read_text().splitlines():
        if head := _HEAD.match(line):
            computation = head["name"]
            entry = computation if head["entry"] else entry
            continue
        branches = ",".join(_BRANCHES.findall(line)).replace("%", "").split(",")
        calls += ((computation, called.strip()) for called in (*_CALLED.findall(line), *branches) if called)
        if match := _INSTRUCTION.match(line):
            instructions.append(match)
            of.append(computation)
    times = _times(entry, calls)
    return tuple(
        Instruction(m["name"], m["op"], m["type"], at, times[at]) for m, at in zip(instructions, of, strict=True)
    )


def _times(entry: str, calls: Iterable[tuple[str, str]]) -> Counter[str]:
    """How often each computation or function is reached from the entry, a loop's body once; calls never go round."""
    called_by: dict[str, list[str]] = {}
    for caller, called in calls:
        called_by.setdefault(caller, []).append(called)
    times, todo = Counter[str](), [entry]
    while todo:
        at = todo.pop()
        times[at] += 1
        todo += called_by.get(at, ())
    return times


def _stablehlo(text: str) -> Iterable[tuple[str, tuple[int, ...], int]]:
    function, calls = "", list[tuple[str, str]]()
    found: list[tuple[str, tuple[int, ...], str]] = []
    for line in text.splitlines():
        if head := _FUNCTION.search(line):
            function = head["name"]
        calls += ((function, called) for called in _FUNCTION_CALL.findall(line))
        operation, types = _STABLEHLO.search(line), _TENSOR.findall(line)
        if operation and types:
            name = _HLO_NAMES.get(operation[1], operation[1].replace("_", "-"))
            found.append((name, tuple(int(size) for size in types[-1].split("x")[:-1]), function))
    times = _times("main", calls)
    return [(name, shape, times[function]) for name, shape, function in found]


def bears(shape: Iterable[int], prime: int) -> bool:
    return math.prod(shape) % prime == 0


def dimensions(type_: str) -> list[int]:
    """Those of `f32[13,17]`."""
    return [int(size) for size in re.findall(r"\d+", type_.partition("[")[2].partition("]")[0])]


def truth(dump: Dump, kind: str, prime: int, written: int) -> Truth:
    """What became of the operations of one kind in one strand, of which the jaxpr has `written`."""
    ops = KINDS[kind].instructions
    lowered = sum(times for op, shape, times in dump.stablehlo if op in ops and bears(shape, prime))
    counts = [
        sum(each.times for each in shot.instructions if each.op in ops and bears(dimensions(each.type), prime))
        for shot in dump.snapshots
    ]
    steps = list(zip([lowered, *counts], counts, strict=False))
    ends = Counter({at: before - after for at, (before, after) in enumerate(steps) if before > after})
    is_known = written >= lowered and all(before >= after for before, after in steps)
    return Truth(written, lowered, ends, counts[-1], is_known)
