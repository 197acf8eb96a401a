"""StableHLO text → Graph.

Read from `Lowered.as_text(debug_info=True)`: every operation is one line or opens regions that later lines close.
Functions and regions are groups; a region's arguments are nodes, so that no edge leaps into a loop.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from explorer.capture.frames import users_part
from explorer.errors import UnreadableTextError
from explorer.model.build import GraphBuilder
from explorer.model.graph import Frame, Graph, Group

__all__ = ["read_stablehlo"]

_OPERATION = re.compile(r'(?:%(\w+)(?::\d+)? = )?"?([A-Za-z_][\w$]*(?:\.[\w$]+)*)"?(?=[ (\n]|$)')
_FUNCTION = re.compile(r"func\.func (?:public |private )?@([\w.\-]+)\(")
_ARGUMENT = re.compile(r"%(\w+): ([^,()]+(?:\([^)]*\))?)")
_ITERATION = re.compile(r"%(\w+) = %(\w+)")
_REFERENCE = re.compile(r"%(\w+)")
_LOCATION = re.compile(r" loc\((#?\w+)\)\s*$")
_CALLEE = re.compile(r"\bcall @([\w.\-]+)")
_DEFINITION = re.compile(r"^#(loc\d*) = loc\((.*)\)$")
_FILE = re.compile(r'^"(.*)":(\d+):(\d+)(?: to (\d*):(\d+))?$')
_NAMED = re.compile(r'^"(.*)"\(#(loc\d*)\)$')
_CALLSITE = re.compile(r"^callsite\(#(loc\d*) at #(loc\d*)\)$")


def read_stablehlo(text: str) -> Graph:
    """Read a StableHLO module's text into a graph.

    Args:
        text: What `jax.stages.Lowered.as_text(debug_info=True)` gives; without debug info there are no sources.

    Raises:
        UnreadableTextError: The text holds no MLIR function.
    """
    if "func.func" not in text:
        raise UnreadableTextError(f"this text holds no StableHLO function: it starts with {text.strip()[:60]!r}.")
    return _Reader(text.splitlines()).read()


@dataclass
class _Region:
    """What is open: whose it is, its group, and the values known inside."""

    owner: int
    group: int
    values: dict[str, int] = field(default_factory=dict[str, int])
    iteration: list[str] = field(default_factory=list[str])  # a while's own arguments, for each of its regions


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.builder = GraphBuilder()
        self.definitions = {m[1]: m[2] for line in lines if line.startswith("#loc") and (m := _DEFINITION.match(line))}
        self.located: dict[str, tuple[str, tuple[Frame, ...]]] = {}
        self.regions: list[_Region] = []
        self.calls: list[tuple[int, str]] = []
        self.pending_iteration: list[str] = []
        self.last = -1

    def read(self) -> Graph:
        for number, line in enumerate(self.lines):
            if not line.startswith("#"):
                self.read_line(number, line.strip())
        number_of = {group.name: i for i, group in enumerate(self.builder.groups)}
        for node, callee in self.calls:
            called = number_of.get(callee, -1)
            if called >= 0 and self.builder.groups[called].caller < 0:
                parent = self.builder.group_of[node]
                self.builder.groups[called] = replace(self.builder.groups[called], caller=node, parent=parent)
        return self.builder.build()

    def read_line(self, number: int, line: str) -> None:
        if not line or line.startswith("module"):
            return
        if line.startswith("}"):
            owner, iteration = -1, list[str]()
            if self.regions:
                closed = self.regions.pop()
                owner, iteration = closed.owner, closed.iteration
            if line.endswith("{"):  # `}, {` and `} do {`: the same operation goes on
                self.open_region(number, owner, "region" if "do" not in line else "body", iteration)
            return
        function = _FUNCTION.match(line)
        if function is not None:
            kind = "entry" if function[1] == "main" else "function"
            self.regions = [_Region(-1, self.builder.add_group(Group(function[1], kind)))]
            self.add_arguments(number, line[function.end() : line.find(" -> ")])
            return
        if line.startswith("^"):
            self.add_arguments(number, line)
            return
        if line == "cond {":
            self.open_region(number, self.last, "condition", self.pending_iteration)
            return
        operation = _OPERATION.match(line)
        if operation is None or not self.regions:
            return
        self.read_operation(number, line, operation)
        if line.endswith("{"):
            self.open_region(number, self.last, "region", [])

    def read_operation(self, number: int, line: str, operation: re.Match[str]) -> None:
        location = _LOCATION.search(line)
        body = line[operation.end() : location.start() if location else len(line)]
        scope, frames = self.locate(location[1].lstrip("#")) if location else ("", ())
        frame = -1
        for outer in reversed(users_part(frames)):
            frame = self.builder.add_frame(replace(outer, parent=frame))
        arguments, _, type_ = body.rpartition(" : ")
        op = operation[2]
        name = f"%{operation[1]}" if operation[1] else op
        is_while = op == "stablehlo.while"
        pairs = _ITERATION.findall(body) if is_while else []
        used = [source for _, source in pairs] if is_while else _REFERENCE.findall(arguments or body)
        self.last = self.builder.add(
            name,
            op,
            type_.rpartition(" -> ")[2] if arguments else "",
            scope=scope,
            group=self.regions[-1].group,
            frame=frame,
            line=number,
        )
        self.builder.connect(i for i in map(self.find, used) if i >= 0)
        self.pending_iteration = [target for target, _ in pairs]
        if operation[1]:
            self.regions[-1].values[operation[1]] = self.last
        if callee := _CALLEE.match(line[operation.start(2) :].replace("func.call", "call", 1)):
            self.calls.append((self.last, callee[1]))

    def open_region(self, number: int, owner: int, kind: str, iteration: list[str]) -> None:
        parent = self.regions[-1].group if self.regions else -1
        name = self.builder.names[owner] if owner >= 0 else "region"
        group = self.builder.add_group(Group(f"{name} {kind}", kind, parent=parent, caller=owner))
        self.regions.append(_Region(owner, group, iteration=iteration))
        for argument in iteration:
            self.add_argument(number, argument, "")

    def add_arguments(self, number: int, signature: str) -> None:
        for name, type_ in _ARGUMENT.findall(signature):
            self.add_argument(number, name, type_.partition(" loc(")[0].strip())

    def add_argument(self, number: int, name: str, type_: str) -> None:
        node = self.builder.add(f"%{name}", "parameter", type_, group=self.regions[-1].group, line=number)
        self.builder.connect(())
        self.regions[-1].values[name] = node

    def find(self, name: str) -> int:
        for region in reversed(self.regions):
            if name in region.values:
                return region.values[name]
        return -1

    def locate(self, key: str) -> tuple[str, tuple[Frame, ...]]:
        """The scope path and the stack, innermost first, that a location stands for."""
        if key not in self.located:
            self.located[key] = ("", ())  # what a location that refers to itself gets
            self.located[key] = self.read_location(self.definitions.get(key, ""))
        return self.located[key]

    def read_location(self, text: str) -> tuple[str, tuple[Frame, ...]]:
        if place := _FILE.match(text):
            line, end_line = int(place[2]), int(place[4] or place[2])
            return "", (Frame(place[1], "", line, int(place[3]), end_line, int(place[5] or 0)),)
        if named := _NAMED.match(text):
            scope, frames = self.locate(named[2])
            if len(frames) == 1 and not frames[0].function:
                # JAX wraps a file location in its function's name; an operation's own name comes around that.
                return scope, (replace(frames[0], function=named[1]),)
            return named[1], frames
        if callsite := _CALLSITE.match(text):
            return "", self.locate(callsite[1])[1] + self.locate(callsite[2])[1]
        return "", ()
