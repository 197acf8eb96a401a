"""One function, one signature: what the compiler made of it, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from explorer.model.graph import Graph, Node

__all__ = ["Capture", "Durations", "Stage"]


class Stage:
    """One representation of the function: its text, and its graph linked to the text by line.

    Nothing is read until it is asked for: `read` is called at the first look, once.

    Args:
        name: `jaxpr`, `stablehlo`, `hlo`.
        read: Gives the text and its graph.
    """

    def __init__(self, name: str, read: Callable[[], tuple[str, Graph]]) -> None:
        self.name = name
        self._read = read

    @cached_property
    def _content(self) -> tuple[str, Graph]:
        return self._read()

    @property
    def text(self) -> str:
        return self._content[0]

    @property
    def graph(self) -> Graph:
        return self._content[1]

    def __repr__(self) -> str:
        return f"Stage({self.name!r})"


@dataclass(frozen=True)
class Durations:
    """Seconds spent in each step of the compilation."""

    trace: float = 0.0
    lower: float = 0.0
    compile: float = 0.0


@dataclass(frozen=True, eq=False)
class Capture:
    """What was seen of one function compiled for one signature.

    Args:
        function: The function's name.
        file: The file that defines it, empty where that is unknown.
        stages: The stages that worked, in the compiler's order.
        durations: Seconds of trace, lower and compile.
        environment: Versions, device and options it was compiled with.
        failure: The step that raised and what it raised, empty if none did.
    """

    function: str
    file: str
    stages: Sequence[Stage]
    durations: Durations
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    failure: str = ""

    def stage(self, name: str) -> Stage:
        """The stage of this name; KeyError names the ones there are."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        there = ", ".join(stage.name for stage in self.stages) or "none"
        raise KeyError(f"this capture has no stage {name!r}; it has: {there}" + self._failed())

    @property
    def jaxpr(self) -> Stage:
        return self.stage("jaxpr")

    @property
    def stablehlo(self) -> Stage:
        return self.stage("stablehlo")

    @property
    def hlo(self) -> Stage:
        return self.stage("hlo")

    def nodes_at(self, line: int, stage: str = "hlo", *, file: str | None = None) -> tuple[Node, ...]:
        """The nodes whose Python stack goes through a line of the user's source.

        Args:
            line: Line of the source, from 1.
            stage: Where to look.
            file: The source file; the one that defines the function if not given.
        """
        graph = self.stage(stage).graph
        file = self.file if file is None else file
        hit = [any(f.file == file and f.line == line for f in graph.stack(i)) for i in range(len(graph.frames))]
        return tuple(Node(graph, i) for i, frame in enumerate(graph.frame.tolist()) if frame >= 0 and hit[frame])

    def coverage(self, stage: str) -> float:
        """The share of a stage's nodes, 0 to 1, that know a place in the user's source."""
        graph = self.stage(stage).graph
        return float((graph.frame >= 0).mean()) if len(graph) else 0.0

    def _failed(self) -> str:
        return f" ({self.failure})" if self.failure else ""

    def __repr__(self) -> str:
        return f"Capture({self.function}: {' → '.join(s.name for s in self.stages) or 'nothing'}{self._failed()})"
