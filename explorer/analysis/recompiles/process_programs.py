"""Programs of many processes, folded event by event: memory holds only distinct programs and their processes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from explorer.model.events.event import Event, spread_text
from explorer.model.events.family_counts import BUILDING
from explorer.model.events.key import Key, Leaf
from explorer.model.events.process_ledger import ProcessDifference, ProcessLedger, ProcessProgram, Ranges, ranges_of

_MAX_PROGRAMS = 50_000  # at a kilobyte each, 50 MB
_MAX_DIFFERENCES = 1_000
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # in reprs of static arguments; belongs to the process
_MAX_OPERATIONS = 4  # of a line, in a sentence
_MISSING = "not there"

_Family = tuple[str, str, int]
_Identity = tuple[object, ...]
_Known = tuple[Key, str, ProcessProgram]


@dataclass
class _Row:
    program: ProcessProgram
    # Bit n is process n, so that thousands of processes take one integer.
    compiled_by: int = 0
    compiles: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    slowest_process: int = 0

    def add(self, processes: int, compiles: int, seconds: float, slowest: float, slowest_process: int) -> None:
        self.compiled_by |= processes
        self.compiles += compiles
        self.seconds += seconds
        if slowest > self.slowest:
            self.slowest, self.slowest_process = slowest, slowest_process


@dataclass
class ProcessFold:
    """Accumulator of the events of one process after another, or of process ledgers.

    Args:
        local_devices: Number of devices of the events' process; 0 for as many as each event names.
    """

    local_devices: int = 0
    names: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    events: int = 0
    _rows: dict[_Identity, _Row] = field(default_factory=dict[_Identity, _Row])
    _pending: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    _spent: dict[_Identity, float] = field(default_factory=dict[_Identity, float])
    _known: dict[int, tuple[Key, str, ProcessProgram]] = field(
        default_factory=dict[int, tuple[Key, str, ProcessProgram]]
    )
    _dropped: int = 0

    def begin(self, name: str) -> None:
        self._end()
        self.names.append(name)

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            self.events += 1
            if event.kind not in BUILDING:
                continue
            spent = self._pending.setdefault(event.call or -self.events, [])
            spent.append(event.seconds)
            if event.kind in ("compile", "cache-hit") and not event.error:
                self._compiled(event, sum(self._pending.pop(event.call or -self.events, spent)))
            elif len(self._pending) > _MAX_PROGRAMS:  # traced and never compiled
                self._pending.clear()

    def _compiled(self, event: Event, seconds: float) -> None:
        row = self._row(self._program(event))
        if row is None:
            return
        at = len(self.names) - 1
        row.add(1 << at, 1, seconds, 0.0, at)
        identity = _identity(row.program)
        self._spent[identity] = self._spent.get(identity, 0.0) + seconds

    def _end(self) -> None:
        at = len(self.names) - 1
        for identity, seconds in self._spent.items():
            row = self._rows[identity]
            if seconds > row.slowest:
                row.slowest, row.slowest_process = seconds, at
        self._spent.clear()
        self._pending.clear()
        self._known.clear()

    def add_ledger(self, ledger: ProcessLedger, names: Sequence[str] | None = None) -> None:
        self._end()
        first = len(self.names)
        self.names += names or ledger.processes
        self.events += ledger.events
        self.notes += ledger.notes
        for program in ledger.rows:
            row = self._row(program)
            if row is not None:
                bits = _bits(program.processes) << first
                slowest = first + program.slowest_process
                row.add(bits, program.compiles, program.seconds, program.slowest, slowest)

    def _row(self, program: ProcessProgram) -> _Row | None:
        identity = _identity(program)
        row = self._rows.get(identity)
        if row is None:
            if len(self._rows) >= _MAX_PROGRAMS:
                self._dropped += 1
                return None
            plain = replace(program, processes=(), compiles=0, seconds=0.0, slowest=0.0, slowest_process=0)
            row = self._rows[identity] = _Row(plain)
        elif program.is_shared and not row.program.is_shared:
            row.program = replace(row.program, is_shared=True)
        return row

    def _program(self, event: Event) -> ProcessProgram:
        key = event.key
        # By identity, because hashing a key reads all its leaves. The entry keeps the key alive, so no id is reused.
        seen = self._known.get(id(key))
        if seen is not None and seen[0] is key and seen[1] == event.program:
            return seen[2]
        program = _program_of(event, self.local_devices)
        if key is not None:
            if len(self._known) > 1_000:
                self._known.clear()
            self._known[id(key)] = key, event.program, program
        return program

    def ledger(self) -> ProcessLedger:
        self._end()
        rows = sorted(self._rows.values(), key=lambda row: -row.seconds)
        programs = tuple(
            replace(
                row.program,
                processes=ranges_of(_indices(row.compiled_by)),
                compiles=row.compiles,
                seconds=row.seconds,
                slowest=row.slowest,
                slowest_process=row.slowest_process,
            )
            for row in rows
        )
        notes = list(self.notes)
        if self._dropped:
            notes.append(f"{self._dropped:,} compiles of more than {_MAX_PROGRAMS:,} distinct programs are left out")
        whole = ProcessLedger(tuple(self.names), programs, (), self.events, tuple(notes))
        differences = sorted(
            _differences(whole, [row.compiled_by for row in rows]),
            # First those that may deadlock, then those of the fewest processes.
            key=lambda difference: (not difference.is_shared, _bits(difference.processes).bit_count()),
        )
        if len(differences) > _MAX_DIFFERENCES:
            notes.append(f"{len(differences) - _MAX_DIFFERENCES:,} more differences are left out")
        return replace(whole, differences=tuple(differences[:_MAX_DIFFERENCES]), notes=tuple(notes))


def _differences(ledger: ProcessLedger, compiled_by: Sequence[int]) -> Iterator[ProcessDifference]:
    """Yield a difference for each group of processes that compiled another program than most, or lack one."""
    families: dict[_Family, list[int]] = defaultdict(list)
    for at, row in enumerate(ledger.rows):
        if not row.eager:
            families[row.function, row.file, row.line].append(at)
    everyone = (1 << len(ledger.processes)) - 1
    for rows in families.values():
        callers = 0
        for at in rows:
            callers |= compiled_by[at]
        # A function that only some processes call, such as a log writer, is no difference. If its arrays are spread
        # over devices of several processes, every process must take part.
        is_shared = any(ledger.rows[at].is_shared for at in rows)
        concerned = everyone if is_shared else callers
        usual = [at for at in rows if 2 * compiled_by[at].bit_count() > concerned.bit_count()]
        if not usual:  # two processes with one program each: compare the second with the first
            usual = [min(rows, key=lambda at: (-compiled_by[at].bit_count(), compiled_by[at] & -compiled_by[at]))]
        for others, missing in _without(usual, rows, compiled_by, concerned).items():
            yield _difference(ledger, others, missing, is_shared)


def _without(
    usual: Sequence[int], rows: Sequence[int], compiled_by: Sequence[int], concerned: int
) -> dict[tuple[int, int | None], int]:
    groups: dict[tuple[int, int | None], int] = {}
    rest = [at for at in rows if at not in usual]
    taken: dict[int, int] = defaultdict(int)
    for at in usual:
        lacking = concerned & ~compiled_by[at]
        for other in rest:
            those = lacking & compiled_by[other] & ~taken[other]
            if those:
                groups[at, other] = those
                taken[other] |= those
                lacking &= ~those
        if lacking:
            groups[at, None] = lacking
    for other in rest:  # an additional program
        those = compiled_by[other] & ~taken[other]
        if those and usual:
            groups[usual[0], other] = groups.get((usual[0], other), 0) | those
    return groups


def _difference(
    ledger: ProcessLedger, pair: tuple[int, int | None], processes: int, is_shared: bool
) -> ProcessDifference:
    at, other = pair
    program = ledger.rows[at]
    ranges = ranges_of(_indices(processes))
    who = ledger.named(ranges)
    most = ledger.named(program.processes) if program.count <= 2 else f"{program.count:,} others"
    waits = "; its arrays span several processes, which may deadlock" * is_shared
    if other is None:
        text = f"{who} compiled no program for {program.place} where {most} did{waits}"
        return ProcessDifference(at, None, ranges, program.line, "", "", "", is_shared, text)
    line, what, usual, here = _what_differs(program, ledger.rows[other])
    text = f"{who} compiled a different program for {program.place}: {what} is {here}, {usual} with {most}{waits}"
    return ProcessDifference(at, other, ranges, line, what, usual, here, is_shared, text)


def _what_differs(program: ProcessProgram, other: ProcessProgram) -> tuple[int, str, str, str]:
    for ours, theirs in ((program.arguments, other.arguments), (program.settings, other.settings)):
        first = _first_difference(dict(ours), dict(theirs))
        if first is not None:
            return program.line, first[0], first[1], first[2]
    ours = {str(line): text for line, text in program.lines}
    theirs = {str(line): text for line, text in other.lines}
    first = _first_difference(ours, theirs)
    if first is None:
        return program.line, "something that its arguments don't show", "one thing", "another"
    line, usual, here = first[0], _operations(first[1]), _operations(first[2])
    if usual == here:
        usual, here = f"{usual} of one kind", f"{here} of another kind or number"
    return int(line), f"line {line}", usual, here


def _first_difference(ours: dict[str, str], theirs: dict[str, str]) -> tuple[str, str, str] | None:
    for name in [*ours, *(name for name in theirs if name not in ours)]:
        if ours.get(name) != theirs.get(name):
            return name, ours.get(name, _MISSING), theirs.get(name, _MISSING)
    return None


def _operations(text: str) -> str:
    """Return up to four operations of a line without their digest: `mul float32[8], add float32[8], …`."""
    if text == _MISSING:
        return text
    words = [word.replace(":", " ", 1) for word in text.split() if not word.startswith("#")]
    return ", ".join(words[:_MAX_OPERATIONS]) + ", …" * (len(words) > _MAX_OPERATIONS)


def _identity(program: ProcessProgram) -> _Identity:
    return (
        program.function, program.file, program.line, program.arguments, program.settings, program.lines, program.eager,
    )  # fmt: skip


def _program_of(event: Event, local_devices: int) -> ProcessProgram:
    key = event.key
    pairs = [line.partition(" ") for line in event.program.splitlines()]
    lines = tuple((int(number) if number.isdigit() else 0, text) for number, _, text in pairs)
    if key is None:
        return ProcessProgram(event.function, call_site=str(event.call_site or ""), lines=lines)
    function = key.function
    return ProcessProgram(
        function.name,
        PurePath(function.file).name,
        function.line,
        str(event.call_site or ""),
        tuple((leaf.path, _type(leaf)) for leaf in key.leaves),
        tuple(_settings(key)),
        lines,
        # True if an array is spread over more devices than the process has.
        any(len(leaf.devices) > (local_devices or _count_devices(event.device)) for leaf in key.leaves),
        function.eager,
    )


def _type(leaf: Leaf) -> str:
    """Return a leaf's type and sharding, without its devices, which differ between processes."""
    spread = spread_text(leaf.spread) if leaf.spread else leaf.sharding
    text = f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]{' weak' * leaf.weak}"
    return " ".join(filter(None, [text, spread, leaf.layout]))


def _count_devices(text: str) -> int:
    bounds = [part.split("-") for part in text.partition(":")[2].split(",")]
    return sum(int(part[-1]) - int(part[0]) + 1 if part[0].isdigit() and part[-1].isdigit() else 1 for part in bounds)


def _settings(key: Key) -> Iterator[tuple[str, str]]:
    for static in key.statics:
        yield static.path, _ADDRESS.sub("", static.value)
    if key.donated:
        yield "donated", ", ".join(key.donated)
    for pairs in (key.context, key.options, key.wrapping):
        for name, value in pairs:
            yield name, _ADDRESS.sub("", value)


def _bits(ranges: Ranges) -> int:
    bits = 0
    for first, last in ranges:
        bits |= ((1 << (last - first + 1)) - 1) << first
    return bits


def _indices(bits: int) -> list[int]:
    # Lowest bit first. Shifting a long integer bit by bit would take quadratic time.
    text = bin(bits)[:1:-1]
    return [at for at, bit in enumerate(text) if bit == "1"]


def process_ledger_text(ledger: ProcessLedger) -> str:
    return "\n".join([f"ProcessLedger({headline(ledger)})", *(f"  {row.text}" for row in ledger.differences[:5])])


def headline(ledger: ProcessLedger) -> str:
    programs, processes = len(ledger.rows), len(ledger.processes)
    whole = sum(row.count == processes for row in ledger.rows)
    text = f"{programs:,} program{'s' * (programs != 1)} of {processes:,} process{'es' * (processes != 1)}"
    text += f", {whole:,} compiled by all"
    if not ledger.differences:
        return f"{text}; no process compiled a different program"
    differing = Counter(index for row in ledger.differences for index in _indices(_bits(row.processes)))
    return f"{text}; {ledger.named(ranges_of(sorted(differing)))} compiled a different program from most"
