"""Definitions of the methods that values declare; each calls one function of another room.

The rooms are imported inside the methods: a script loads those that it uses, and no room below imports this module.
Documentation, and options that a definition passes on as `**`, are in the declarations, which these classes override.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from explorer.model.answers import Answer, Facts
from explorer.model.attribution import Attribution, LineTable
from explorer.model.bookmark import Bookmark
from explorer.model.capture import Capture
from explorer.model.declared import adopt, cached_property
from explorer.model.fates import Fates, FateTable
from explorer.model.graph import Graph, Hierarchy, Ints, Node, Paths
from explorer.model.links import Links
from explorer.model.live_memory import LiveMemory
from explorer.model.passes import History, Passes, PassLink
from explorer.model.results.estimates import Collectives, Estimates
from explorer.model.results.timing import Samples
from explorer.model.shardings import Shardings
from explorer.model.stage import Stage, WrittenLine

if TYPE_CHECKING:
    import pandas as pd


class CaptureMethods(Capture):
    def _attribute(self, stage: str, graph: Graph) -> Attribution:
        from explorer.analysis.analysis import analyze
        from explorer.analysis.attribution import attribute, attribute_program
        from explorer.analysis.graphs import graph_of

        if stage != "hlo":
            return attribute(graph)
        sets = analyze(self).exact.get("hlo")
        return attribute_program(graph, None if sets is None else graph_of(self, "jaxpr"), sets)

    @cached_property
    def links(self) -> Links:
        from explorer.analysis.analysis import analyze

        return analyze(self).links

    @cached_property
    def live_memory(self) -> LiveMemory:
        from explorer.analysis.analysis import analyze

        return analyze(self).live_memory

    def nodes_at(
        self, line: int, stage: str = "hlo", *, file: str | None = None, through: bool = False
    ) -> tuple[Node, ...]:
        from explorer.analysis.attribution import nodes_at

        return nodes_at(self, line, stage, file=file, through=through)

    def coverage(self, stage: str, grade: str = "") -> float:
        from explorer.analysis.attribution import coverage

        return coverage(self, stage, grade)

    def to_frame(self, stage: str = "hlo") -> pd.DataFrame:
        from explorer.files.frames import node_frame

        return node_frame(self, stage)

    @cached_property
    def all_fates(self) -> Mapping[str, Fates]:
        from explorer.analysis.analysis import analyze

        return analyze(self).of_fates

    def fate_table(self, by: str | int | None = None, stage: str = "jaxpr") -> FateTable:
        from explorer.analysis.fates import fate_table

        return fate_table(self, by, stage)

    @cached_property
    def summary(self) -> Facts:
        from explorer.analysis.facts import summary

        return summary(self)

    @cached_property
    def collectives(self) -> Collectives:
        from explorer.hardware.names import collectives

        return collectives(self)

    @cached_property
    def shardings(self) -> Shardings:
        from explorer.analysis.sharding.propagate import shardings

        return shardings(self)

    @cached_property
    def estimates(self) -> Estimates:
        from explorer.hardware.names import estimates

        return estimates(self)

    def ask(self, question: str, node: Node | None = None) -> Answer:
        from explorer.analysis.questions import answer_question

        return answer_question(self, question, node)

    def lines(self, by: Literal["line", "stack", "scope"] = "line") -> LineTable:
        from explorer.analysis.analysis import analyze
        from explorer.analysis.folded_lines import folded

        analysis = analyze(self)
        return analysis.lines if by == "line" else folded(analysis.split, analysis.limits, by)

    def save(self, path: str | PathLike[str]) -> None:
        from explorer.files.capture import save

        return save(self, path)

    @staticmethod
    def load(path: str | PathLike[str]) -> Capture:
        from explorer.files.capture import load

        return load(path)

    @cached_property
    def wire(self) -> bytes:
        from explorer.files.capture_writing import encode

        return encode(self)

    def extract(self, node: Node, height: int = 0) -> str:
        from explorer.capture.extract import extract

        return extract(self, node, height)

    def to_model_explorer_json(self, path: str | PathLike[str]) -> Path:
        from explorer.files.exports import write_capture

        return write_capture(self, path)

    def what_if(self, **changes: Any) -> Any:
        from explorer.measure.what_if import what_if_of

        return what_if_of(self, **changes)

    def compiled_for(self, target: Any) -> Capture:
        from explorer.capture.explore import compiled_for

        return compiled_for(self, target)

    @property
    def can_change(self) -> bool:
        from explorer.capture.origins import has_origin

        return has_origin(self)

    @property
    def steady(self) -> Samples | None:
        from explorer.capture.origins import steady_of

        return steady_of(self)

    def widget(self) -> Any:
        from explorer.view.widgets import Viewer

        return Viewer(self)

    @cached_property
    def view(self) -> Any:
        from explorer.view.capture import live_view

        return live_view(self)

    def to_html(self, path: str | PathLike[str], bookmark: Bookmark | None = None) -> Path:
        from explorer.view.capture import to_html

        return to_html(self, path, bookmark)


class GraphMethods(Graph):
    def where(self, query: str) -> tuple[Node, ...]:
        from explorer.analysis.query import where

        return where(self, query)

    def paths(self, a: Node, b: Node) -> Paths:
        from explorer.analysis.graphs import paths

        return paths(self, a, b)

    def neighbourhood(self, node: Node, width: int = 1) -> tuple[Node, ...]:
        from explorer.analysis.graphs import neighbourhood

        return neighbourhood(self, node, width)

    def _attribution_alone(self) -> Attribution:
        from explorer.analysis.attribution import attribute

        return attribute(self)

    def to_model_explorer_json(self, path: str | PathLike[str], name: str = "graph") -> Path:
        from explorer.files.exports import write_graph

        return write_graph(self, path, name)

    def nodes_through(self, file: str, line: int) -> Ints:
        from explorer.analysis.attribution import nodes_through

        return nodes_through(self, file, line)

    @cached_property
    def placed(self) -> Ints:
        from explorer.analysis.graphs import placed

        return placed(self)

    def with_attributes_of(self, text: str) -> Graph:
        from explorer.capture.readers.stage_text import with_attributes_of

        return with_attributes_of(self, text)

    @cached_property
    def kernel(self) -> Ints:
        from explorer.analysis.kernel_costs import kernel_of

        return kernel_of(self)

    @cached_property
    def kernel_words(self) -> Mapping[int, str]:
        from explorer.analysis.kernel_costs import kernel_words

        return kernel_words(self)

    @cached_property
    def hierarchy(self) -> Hierarchy:
        from explorer.analysis.hierarchy import nest

        return nest(self)


class PassesMethods(Passes):
    @cached_property
    def links(self) -> Sequence[PassLink]:
        from explorer.analysis.pass_changes import pass_links

        return pass_links(self)

    def history(self, name: str) -> History:
        from explorer.analysis.pass_history import history

        return history(self, name)


class StageMethods(Stage):
    @cached_property
    def written_lines(self) -> Sequence[WrittenLine]:
        from explorer.capture.readers.stage_text import written_lines

        return written_lines(self)


adopt(CaptureMethods, GraphMethods, PassesMethods, StageMethods)
