"""Definitions of the methods that values declare; each calls one function of another room.

The rooms are imported inside the methods: a script loads those that it uses, and no room below imports this module.
Documentation is in the declarations, which these classes override.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from explorer.model.answers import Answer, Facts
from explorer.model.attribution import Attribution
from explorer.model.bookmark import Bookmark
from explorer.model.capture import Capture
from explorer.model.declared import Charted, Displayable, Framed, Pictured, Saved, adopt, cached_property
from explorer.model.events.event import Event
from explorer.model.events.family_counts import STORM, Storm, Which
from explorer.model.events.ledger import EventFile, Ledger
from explorer.model.events.process_ledger import ProcessLedger
from explorer.model.events.variations import StackTree, Variations
from explorer.model.fates import Fates, FateTable
from explorer.model.findings import Finding, Findings, Fix
from explorer.model.golden import CheckResult, Golden
from explorer.model.graph import Graph, Hierarchy, Ints, Node, Paths
from explorer.model.line_table import LineTable
from explorer.model.links import Links
from explorer.model.live_memory import LiveMemory
from explorer.model.passes import History, Passes, PassLink
from explorer.model.results.dynamic_report import DynamicReport
from explorer.model.results.estimates import Collectives, Estimates
from explorer.model.results.hot_paths import HotPaths
from explorer.model.results.profile import EquationTime, Kind, OpPart, ProcessProfile, Profile
from explorer.model.results.profile_events import By, Flame
from explorer.model.results.roofline import Peaks
from explorer.model.results.session import SessionReport
from explorer.model.results.sweep import Measured, Sweep, Variant, WhatIf
from explorer.model.results.timing import Comparison, Samples, Timing
from explorer.model.shardings import Shardings
from explorer.model.stage import Stage, WrittenLine

if TYPE_CHECKING:
    import pandas as pd

    from explorer.analysis.diff.diff import Diff


class CaptureMethods(Capture):
    def _attribute(self, stage: str, graph: Graph) -> Attribution:
        from explorer.analysis.attribution import attribute_in

        return attribute_in(self, stage, graph)

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
        from explorer.analysis.fates.fates import fate_table

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
        from explorer.analysis.questions.questions import answer_question

        return answer_question(self, question, node)

    def lines(self) -> LineTable:
        from explorer.analysis.analysis import analyze

        return analyze(self).lines

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
        from explorer.files.model_explorer import write_capture

        return write_capture(self, path)

    def what_if(
        self,
        *,
        donate: Any = None,
        remat: Any = None,
        precision: Any = None,
        dtype: Any = None,
        options: Any = None,
        grad: bool = False,
        time: bool = True,
        seconds: float = 0.3,
        progress: Callable[[float, str], None] | None = None,
    ) -> Any:
        from explorer.measure.what_if import what_if_of

        return what_if_of(
            self,
            donate=donate,
            remat=remat,
            precision=precision,
            dtype=dtype,
            options=options,
            grad=grad,
            time=time,
            seconds=seconds,
            progress=progress,
        )

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


class DisplayableMethods(Displayable):
    def to_text(self, width: int = 100) -> str:
        from explorer.view.display import to_text

        return to_text(self, width)

    def to_html(self, path: str | PathLike[str]) -> Path:
        from explorer.view.display import to_html

        return to_html(self, path)

    def __rich__(self) -> Any:
        from explorer.view.display import rich

        return rich(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        from explorer.view.display import mimebundle

        return mimebundle(self, include, exclude)


class PicturedMethods(Pictured):
    def to_svg(self, path: str | PathLike[str]) -> Path:
        from explorer.view.display import to_svg

        return to_svg(self, path)

    def to_png(self, path: str | PathLike[str], scale: float = 2) -> Path:
        from explorer.view.display import to_png

        return to_png(self, path, scale)


class ChartedMethods(Charted):
    def chart(self) -> Any:
        from explorer.view.display import chart

        return chart(self)


class FramedMethods(Framed):
    def to_frame(self) -> pd.DataFrame:
        from explorer.files.frames import to_frame

        return to_frame(self)


class SavedMethods(Saved):
    def save(self, path: str | PathLike[str]) -> None:
        from explorer.files.results import save

        return save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        from explorer.files.results import load

        return load(cls, path)


class LedgerMethods(Ledger):
    @staticmethod
    def _open_spill(path: str | PathLike[str]) -> EventFile:
        from explorer.files.ledger_lines import Spill

        return Spill(path)

    @property
    def storms(self) -> tuple[Storm, ...]:
        from explorer.analysis.recompiles.ledger_views import storms

        return storms(self)

    def storm_of(self, event: Event) -> Storm | None:
        from explorer.analysis.recompiles.ledger_views import storm_of

        return storm_of(self, event)

    def varying(self, function: Which | None = None, *, calls: int | None = None) -> Variations:
        from explorer.analysis.recompiles.ledger_views import varying

        return varying(self, function, calls=calls)

    def tree(self) -> StackTree:
        from explorer.analysis.recompiles.ledger_views import stack_tree

        return stack_tree(self)

    def to_frame(self) -> pd.DataFrame:
        from explorer.files.frames import ledger_frame

        return ledger_frame(self)

    def save(self, path: str | PathLike[str]) -> None:
        from explorer.files.ledger_lines import save

        return save(self, path)

    @staticmethod
    def load(path: str | PathLike[str], *, storm: int = STORM) -> Ledger:
        from explorer.files.ledger_lines import load

        return load(path, storm=storm)

    @staticmethod
    def merge(*ledgers: Ledger, names: Iterable[str] | None = None, storm: int = STORM) -> Ledger:
        from explorer.analysis.recompiles.ledger_views import merge

        return merge(*ledgers, names=names, storm=storm)

    def _ipython_display_(self) -> None:
        from explorer.view.ledger import display_live

        return display_live(self)

    def __repr__(self) -> str:
        from explorer.analysis.recompiles.ledger_views import ledger_repr

        return ledger_repr(self)


class ProcessLedgerMethods(ProcessLedger):
    def __repr__(self) -> str:
        from explorer.analysis.recompiles.process_programs import process_ledger_text

        return process_ledger_text(self)


class FixMethods(Fix):
    def apply(self) -> None:
        from explorer.view.findings.html import apply_fix

        return apply_fix(self)


class FindingsMethods(Findings):
    def recheck(self) -> Findings:
        from explorer.pitfalls.rules.outside_state import recheck

        return recheck(self)

    def fix(self, finding: Finding | int) -> Fix:
        from explorer.pitfalls.fixes.fixing import fix

        return fix(self, finding)

    def can_fix(self, finding: Finding) -> bool:
        from explorer.pitfalls.fixes.fixing import can_fix

        return can_fix(self, finding)

    def to_sarif(self) -> str:
        from explorer.files.findings import to_sarif

        return to_sarif(self)

    def to_json(self) -> str:
        from explorer.files.findings import to_json

        return to_json(self)

    @staticmethod
    def from_json(text: str) -> Findings:
        from explorer.files.findings import from_json

        return from_json(text)

    def to_dict(self) -> dict[str, Any]:
        from explorer.files.findings import to_dict

        return to_dict(self)

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Findings:
        from explorer.files.findings import from_dict

        return from_dict(values)

    @staticmethod
    def of_trace(
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        traced: Any,
        error: Exception | None,
        capture: Any = None,
    ) -> Findings:
        from explorer.pitfalls.lint import check

        return check(function, args, kwargs, traced, error, capture)


class GoldenMethods(Golden):
    def save(self, path: str | PathLike[str]) -> None:
        from explorer.files.golden import save

        return save(self, path)

    @staticmethod
    def load(path: str | PathLike[str]) -> Golden:
        from explorer.files.golden import load

        return load(path)


class CheckResultMethods(CheckResult):
    def to_json(self) -> str:
        from explorer.files.findings import check_json

        return check_json(self)

    def to_sarif(self) -> str:
        from explorer.files.findings import check_sarif

        return check_sarif(self)

    def to_markdown(self) -> str:
        from explorer.files.findings import check_markdown

        return check_markdown(self)


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
        from explorer.files.model_explorer import write_graph

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
        from explorer.analysis.cost.kernels import kernel_of

        return kernel_of(self)

    @cached_property
    def kernel_words(self) -> Mapping[int, str]:
        from explorer.analysis.cost.kernels import kernel_words

        return kernel_words(self)

    @cached_property
    def hierarchy(self) -> Hierarchy:
        from explorer.analysis.outline.hierarchy import nest

        return nest(self)


class PassesMethods(Passes):
    @cached_property
    def links(self) -> Sequence[PassLink]:
        from explorer.analysis.passes.links import pass_links

        return pass_links(self)

    def history(self, name: str) -> History:
        from explorer.analysis.passes.history import history

        return history(self, name)


class DynamicReportMethods(DynamicReport):
    @property
    def headline(self) -> str:
        from explorer.analysis.padding_summary import headline

        return headline(self)

    def to_frame(self) -> pd.DataFrame:
        from explorer.files.frames import dynamic_frame

        return dynamic_frame(self)

    def __repr__(self) -> str:
        from explorer.analysis.padding_summary import report_text

        return report_text(self)


class HotPathsMethods(HotPaths):
    @property
    def headline(self) -> str:
        from explorer.analysis.session_summary import headline

        return headline(self)

    def __repr__(self) -> str:
        from explorer.analysis.session_summary import hot_paths_text

        return hot_paths_text(self)


class ProfileMethods(Profile):
    @cached_property
    def op_parts(self) -> Sequence[OpPart]:
        from explorer.analysis.profile.views import op_parts

        return op_parts(self)

    @cached_property
    def equations(self) -> Sequence[EquationTime]:
        from explorer.analysis.profile.views import equation_times

        return equation_times(self)

    def with_peaks(self, peaks: Peaks) -> Profile:
        from explorer.analysis.profile.roofline import with_peaks

        return with_peaks(self, peaks)

    def to_frame(self, kind: Kind = "lines") -> pd.DataFrame:
        from explorer.files.frames import profile_frame

        return profile_frame(self, kind)

    def to_perfetto(self, path: str | PathLike[str]) -> Path:
        from explorer.files.profile_export import write_perfetto

        return write_perfetto(self, path)

    def to_xprof(self, folder: str | PathLike[str]) -> Path:
        from explorer.files.profile_export import write_xprof

        return write_xprof(self, folder)

    def flame(self, by: By = "stack") -> Flame:
        from explorer.analysis.profile.views import flame_of_profile

        return flame_of_profile(self, by)

    def flame_chart(self, by: By = "stack") -> Any:
        from explorer.view.measure.profile.chart import flame_chart

        return flame_chart(self, by)

    def __repr__(self) -> str:
        from explorer.analysis.profile.views import profile_text

        return profile_text(self)


class ProcessProfileMethods(ProcessProfile):
    def __repr__(self) -> str:
        from explorer.analysis.profile.views import process_profile_text

        return process_profile_text(self)


class SessionReportMethods(SessionReport):
    @property
    def summary(self) -> tuple[str, ...]:
        from explorer.analysis.session_summary import summary

        return summary(self)


class SweepMethods(Sweep):
    @property
    def headline(self) -> str:
        from explorer.analysis.measure_summary import headline

        return headline(self)

    def to_frame(self) -> pd.DataFrame:
        from explorer.files.frames import sweep_frame

        return sweep_frame(self)


class VariantMethods(Variant):
    @cached_property
    def diff(self) -> Diff:
        from explorer.analysis.measure_summary import variant_diff

        return variant_diff(self)

    def verdict(self, plain: Measured) -> str:
        from explorer.analysis.measure_summary import verdict

        return verdict(self, plain)


class WhatIfMethods(WhatIf):
    @property
    def headline(self) -> str:
        from explorer.analysis.measure_summary import what_if_headline

        return what_if_headline(self)

    def to_frame(self) -> pd.DataFrame:
        from explorer.files.frames import to_frame

        return to_frame(self)


class TimingMethods(Timing):
    def to_frame(self, samples: bool = False) -> pd.DataFrame:
        from explorer.files.frames import timing_frame

        return timing_frame(self, samples)


class ComparisonMethods(Comparison):
    def to_frame(self, samples: bool = False) -> pd.DataFrame:
        from explorer.files.frames import comparison_frame

        return comparison_frame(self, samples)


class StageMethods(Stage):
    @cached_property
    def written_lines(self) -> Sequence[WrittenLine]:
        from explorer.capture.readers.stage_text import written_lines

        return written_lines(self)


adopt(
    CaptureMethods,
    DisplayableMethods,
    PicturedMethods,
    ChartedMethods,
    FramedMethods,
    SavedMethods,
    LedgerMethods,
    ProcessLedgerMethods,
    FixMethods,
    FindingsMethods,
    GoldenMethods,
    CheckResultMethods,
    GraphMethods,
    PassesMethods,
    DynamicReportMethods,
    HotPathsMethods,
    ProfileMethods,
    ProcessProfileMethods,
    SessionReportMethods,
    SweepMethods,
    VariantMethods,
    WhatIfMethods,
    TimingMethods,
    ComparisonMethods,
    StageMethods,
)
