"""Table of classes and their views.

A view is loaded when a value of its class is first shown, so a script that shows nothing pays nothing. Only this module
imports views by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from explorer.view.interface import View

_VIEWS = {
    "Answer": "explorer.view.results:AnswerView",
    "Capture": "explorer.view.capture:CaptureView",
    "CheckResult": "explorer.view.results:CheckView",
    "Diff": "explorer.view.diff:DiffView",
    "DynamicReport": "explorer.view.padding:DynamicReportView",
    "Finding": "explorer.view.findings:FindingView",
    "Findings": "explorer.view.findings:FindingsView",
    "AutoCompile": "explorer.view.hotpath.html:AutoCompileView",
    "HotPaths": "explorer.view.hotpath.html:HotPathsView",
    "Ledger": "explorer.view.ledger:LedgerView",
    "Session": "explorer.view.sessions:SessionView",
    "SessionReport": "explorer.view.sessions:SessionReportView",
    "Timing": "explorer.view.measure.timing:TimingView",
    "Comparison": "explorer.view.measure.timing:ComparisonView",
    "Profile": "explorer.view.measure.profile:ProfileView",
    "Roofline": "explorer.view.measure.roofline:RooflineView",
    "MemoryUse": "explorer.view.measure.memory:MemoryView",
    "OperationTimeline": "explorer.view.hotpath.log:OperationTimelineView",
    "Sweep": "explorer.view.measure.sweep:SweepView",
    "WhatIf": "explorer.view.measure.what_if:WhatIfView",
}

# Classes shown as a sheet, also in a terminal, with the name of the function that returns the sheet of a value.
_SHEETS = {
    "Collectives": "collectives",
    "Estimates": "estimates",
    "Executable": "executable",
    "LargestFit": "largest_fit",
    "MachineCode": "machine_code",
    "Peaks": "peaks",
    "ProcessLedger": "process_ledger",
    "ProcessProfile": "process_profile",
    "TargetComparison": "target_comparison",
    "Targets": "targets",
}
_RESULTS = "explorer.view.results"
# Terminal output by class, as a function that returns text or a rich renderable; other classes show their repr.
_TERMINAL: dict[str, str] = {
    "Capture": "explorer.view.capture.terminal:tree",
    "CheckResult": "explorer.view.results:check_text",
    "Finding": "explorer.view.findings.terminal:finding_tree",
    "Findings": "explorer.view.findings.terminal:tree",
    "Ledger": "explorer.view.ledger.terminal:tree",
    "Profile": "explorer.view.measure.profile.terminal:tree",
}
# `to_text` by class, if it differs from the terminal output: a function of the value and a width.
_TEXT = {
    "Finding": "explorer.view.findings.text_parts:finding_text",
    "Findings": "explorer.view.findings.text_parts:to_text",
    "Session": "explorer.view.sessions:session_text",
    "SessionReport": "explorer.view.sessions:report_text",
}


@cache
def view_of(kind: type) -> View[Any]:
    """Return the view of a class, or of its nearest base class with a view.

    Raises:
        LookupError: Neither the class nor a base class has a view.
    """
    sheet = _sheet_of(kind)
    if sheet is not None:
        return import_module(_RESULTS).SheetView(sheet)
    view = _first(_VIEWS, kind)
    if view is None:
        raise LookupError(f"{kind.__name__} has no view")
    return view()


@cache
def terminal_drawing_of(kind: type) -> Callable[[Any], Any]:
    """Return the function that converts a value of `kind` to text or a rich renderable; `repr` by default."""
    sheet = _sheet_of(kind)
    return (lambda value: sheet(value).text) if sheet is not None else _first(_TERMINAL, kind) or repr


@cache
def text_of(kind: type) -> Callable[[Any, int], str] | None:
    """Return the function that converts a value of `kind` and a width to text.

    Return None if `terminal_drawing_of` gives the text too.
    """
    return _first(_TEXT, kind)


def _sheet_of(kind: type) -> Callable[[Any], Any] | None:
    name = next((_SHEETS[base.__name__] for base in kind.__mro__ if base.__name__ in _SHEETS), None)
    return None if name is None else getattr(import_module(_RESULTS), name)


def _first(table: Mapping[str, str], kind: type) -> Any:
    """Return the object that the entry of a class or its nearest base class names; None if there is no entry."""
    for base in kind.__mro__:
        # By name, because a class as a key would load its module.
        if base.__name__ in table:
            module, _, name = table[base.__name__].partition(":")
            return getattr(import_module(module), name)
    return None
