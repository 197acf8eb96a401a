"""Definitions of the methods of ledgers, findings and results, and of those that most values share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from explorer.model.declared import Charted, Displayable, Framed, Pictured, Saved, adopt, cached_property
from explorer.model.events.event import Event
from explorer.model.events.family_counts import STORM, Storm, Which
from explorer.model.events.ledger import EventFile, Ledger
from explorer.model.events.process_ledger import ProcessLedger
from explorer.model.events.variations import StackTree, Variations
from explorer.model.findings import Finding, Findings, Fix
from explorer.model.golden import CheckResult, Golden
from explorer.model.results.dynamic_report import DynamicReport
from explorer.model.results.hot_paths import HotPaths
from explorer.model.results.profile import EquationTime, Kind, OpPart, ProcessProfile, Profile
from explorer.model.results.profile_events import By, Flame
from explorer.model.results.roofline import Peaks
from explorer.model.results.session import SessionReport
from explorer.model.results.sweep import Measured, Sweep, Variant, WhatIf
from explorer.model.results.timing import Comparison, Timing

if TYPE_CHECKING:
    import pandas as pd

    from explorer.analysis.diff.diff import Diff


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
        from explorer.pitfalls.rule_outside_state import recheck

        return recheck(self)

    def fix(self, finding: Finding | int) -> Fix:
        from explorer.pitfalls.fixing import fix

        return fix(self, finding)

    def can_fix(self, finding: Finding) -> bool:
        from explorer.pitfalls.fixing import can_fix

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
    def of_trace(*trace: Any, **more: Any) -> Findings:
        from explorer.pitfalls.lint import check

        return check(*trace, **more)


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
        from explorer.analysis.profile_trees import op_parts

        return op_parts(self)

    @cached_property
    def equations(self) -> Sequence[EquationTime]:
        from explorer.analysis.profile_trees import equation_times

        return equation_times(self)

    def with_peaks(self, peaks: Peaks) -> Profile:
        from explorer.analysis.roofline import with_peaks

        return with_peaks(self, peaks)

    def to_frame(self, kind: Kind = "lines") -> pd.DataFrame:
        from explorer.files.frames import profile_frame

        return profile_frame(self, kind)

    def to_perfetto(self, path: str | PathLike[str]) -> Path:
        from explorer.files.exports import write_perfetto

        return write_perfetto(self, path)

    def to_xprof(self, folder: str | PathLike[str]) -> Path:
        from explorer.files.exports import write_xprof

        return write_xprof(self, folder)

    def flame(self, by: By = "stack") -> Flame:
        from explorer.analysis.profile_trees import flame_of_profile

        return flame_of_profile(self, by)

    def flame_chart(self, by: By = "stack") -> Any:
        from explorer.view.measure.profile.chart import flame_chart

        return flame_chart(self, by)

    def __repr__(self) -> str:
        from explorer.analysis.profile_trees import profile_text

        return profile_text(self)


class ProcessProfileMethods(ProcessProfile):
    def __repr__(self) -> str:
        from explorer.analysis.profile_trees import process_profile_text

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


adopt(
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
)
