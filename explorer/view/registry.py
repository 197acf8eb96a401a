"""Which view shows which class; the one place that names both.

Views are loaded when something of their class is shown first: a script that shows nothing pays nothing. So this module
imports by name, the only one of the view that does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from explorer.view.interface import View

_VIEWS = {
    "Answer": "explorer.view.answer:AnswerView",
    "Capture": "explorer.view.capture:CaptureView",
    "CheckResult": "explorer.view.check:CheckView",
    "Collectives": "explorer.view.collectives:CollectivesView",
    "Diff": "explorer.view.diff:DiffView",
    "DynamicReport": "explorer.view.padding:DynamicReportView",
    "Executable": "explorer.view.executable:ExecutableView",
    "Estimates": "explorer.view.estimates:EstimatesView",
    "Finding": "explorer.view.findings:FindingView",
    "Findings": "explorer.view.findings:FindingsView",
    "AutoCompile": "explorer.view.hotpath:AutoCompileView",
    "HotPaths": "explorer.view.hotpath:HotPathsView",
    "Ledger": "explorer.view.ledger:LedgerView",
    "ProcessLedger": "explorer.view.ledger.processes:ProcessLedgerView",
    "ProcessProfile": "explorer.view.measure.process_profile:ProcessProfileView",
    "Session": "explorer.view.sessions:SessionView",
    "SessionReport": "explorer.view.sessions:SessionReportView",
    "Timing": "explorer.view.measure.timing:TimingView",
    "Comparison": "explorer.view.measure.comparison:ComparisonView",
    "Profile": "explorer.view.measure.profile:ProfileView",
    "Roofline": "explorer.view.measure.roofline:RooflineView",
    "MachineCode": "explorer.view.machine_code:MachineCodeView",
    "MemoryUse": "explorer.view.measure.memory:MemoryView",
    "OperationTimeline": "explorer.view.hotpath.log:OperationTimelineView",
    "Peaks": "explorer.view.measure.peaks:PeaksView",
    "Sweep": "explorer.view.measure.sweep:SweepView",
    "LargestFit": "explorer.view.largest_fit:LargestFitView",
    "TargetComparison": "explorer.view.target_comparison:TargetComparisonView",
    "Targets": "explorer.view.targets:TargetsView",
    "WhatIf": "explorer.view.measure.what_if:WhatIfView",
}


# What a terminal shows, as a function that gives text or what rich draws; of the others their repr.
_TERMINAL: dict[str, str] = {
    "Capture": "explorer.view.capture.terminal:tree",
    "CheckResult": "explorer.view.check:check_text",
    "Collectives": "explorer.view.collectives:collectives_text",
    "Estimates": "explorer.view.estimates:estimates_text",
    "Finding": "explorer.view.findings.terminal:finding_tree",
    "Findings": "explorer.view.findings.terminal:tree",
    "Ledger": "explorer.view.ledger.terminal:tree",
    "MachineCode": "explorer.view.machine_code:machine_code_text",
    "Peaks": "explorer.view.measure.peaks:peaks_text",
    "ProcessLedger": "explorer.view.ledger.processes:process_text",
    "ProcessProfile": "explorer.view.measure.process_profile:process_profile_text",
    "Profile": "explorer.view.measure.profile.terminal:tree",
    "LargestFit": "explorer.view.largest_fit:largest_fit_text",
    "TargetComparison": "explorer.view.target_comparison:comparison_text",
    "Targets": "explorer.view.targets:targets_text",
}
# What `to_text` gives where that is not what a terminal shows, by class: a function of the value and a width.
_TEXT = {
    "Finding": "explorer.view.findings.text:finding_text",
    "Findings": "explorer.view.findings.text:to_text",
    "Session": "explorer.view.sessions.text:session_text",
    "SessionReport": "explorer.view.sessions.text:report_text",
}


@cache
def view_of(kind: type) -> View[Any]:
    """The view of a class, or of the nearest of its bases that has one."""
    view = _first(_VIEWS, kind)
    if view is None:
        raise LookupError(f"{kind.__name__} has no view")
    return view()


@cache
def terminal_drawing_of(kind: type) -> Callable[[Any], Any]:
    """The function from a value of a class to text, or to what rich draws."""
    return _first(_TERMINAL, kind) or repr


@cache
def text_of(kind: type) -> Callable[[Any, int], str] | None:
    """The function from a value of a class and a width to its text, where that is not what a terminal shows."""
    return _first(_TEXT, kind)


def _first(table: Mapping[str, str], kind: type) -> Any:
    """What a table names for a class, or for the nearest of its bases that it lists."""
    for base in kind.__mro__:
        if base.__name__ in table:
            module, _, name = table[base.__name__].partition(":")
            return getattr(import_module(module), name)
    return None
