"""See what the compiler did to your JAX function, and why."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from explorer import errors
from explorer.errors import *  # noqa: F403 - every error is public, and errors.__all__ lists them
from explorer.model.capture import Capture
from explorer.model.declared import define_with

if TYPE_CHECKING:
    from explorer.analysis.diff.diff import Diff, Fusion, Value, diff
    from explorer.analysis.diff.stage_diff import StageDiff
    from explorer.aot import Compiler, DimensionInputInfo, Executable, InputInfo, NamedDimension, OutputInfo, compile
    from explorer.aot.binaries import Binary
    from explorer.aot.inputs import Bounds, ShapeBounds
    from explorer.capture.call import Call
    from explorer.capture.explore import explore
    from explorer.capture.explore_all import explore_all
    from explorer.capture.open import open_hlo
    from explorer.golden.record import check, record
    from explorer.hardware.table import target, targets
    from explorer.hotpath.auto import AutoCompile, auto_compile
    from explorer.hotpath.signals import Signal, signal
    from explorer.jitted import Jitted, disable_compile, enable_compile, jit
    from explorer.ledger.guards import Guard, assert_no_recompiles, max_compiles
    from explorer.ledger.processes import gather_ledgers, merge_ledgers
    from explorer.ledger.watch import Watch, watch
    from explorer.measure.compare import compare
    from explorer.measure.compare_targets import compare_targets
    from explorer.measure.largest_that_fits import largest_that_fits
    from explorer.measure.memory import memory
    from explorer.measure.merge_profiles import merge_profiles
    from explorer.measure.peaks import peaks
    from explorer.measure.profile import profile
    from explorer.measure.roofline import roofline
    from explorer.measure.sweep import sweep
    from explorer.measure.time import time
    from explorer.measure.what_if import what_if
    from explorer.model.answers import Answer, Fact, Facts
    from explorer.model.attributes import AttributeColumns, Attributes
    from explorer.model.attribution import Attribution, SourceLine
    from explorer.model.bookmark import Bookmark, Note
    from explorer.model.events.event import Event, Place, Reason, Running
    from explorer.model.events.family_counts import Cause, FamilyCounts, Prediction, Storm, Summary, Totals
    from explorer.model.events.ledger import Ledger
    from explorer.model.events.process_ledger import ProcessDifference, ProcessLedger, ProcessProgram
    from explorer.model.events.variations import StackTree, Variation, Variations
    from explorer.model.fates import Fate, FateRow, Fates, FateTable
    from explorer.model.findings import Finding, Findings, Fix
    from explorer.model.golden import Change, CheckResult, Golden, LineRecord, ProgramRecord
    from explorer.model.graph import ComputationCall, Frame, Graph, Group, Hierarchy, Node, Paths
    from explorer.model.line_table import LineRow, LineTable
    from explorer.model.links import Links
    from explorer.model.live_memory import Buffer, LiveMemory
    from explorer.model.machine_code import KernelCode, MachineCode
    from explorer.model.passes import Effect, History, HistoryEvent, Pass, Passes, PassLink
    from explorer.model.results.dynamic_report import (
        DynamicBinary,
        DynamicReport,
        PaddedSizes,
        PaddingRefusal,
        Specialization,
    )
    from explorer.model.results.estimates import Collective, Collectives, Estimate, Estimates
    from explorer.model.results.hot_paths import (
        CallTimes,
        HeldValue,
        HotEvent,
        HotPaths,
        HotRow,
        LeftStatement,
        ProposedFunction,
    )
    from explorer.model.results.memory_use import MemoryRow, MemoryUse
    from explorer.model.results.profile import (
        EquationTime,
        LineTime,
        OpPart,
        OpTime,
        ProcessOp,
        ProcessProfile,
        Profile,
    )
    from explorer.model.results.profile_events import Flame
    from explorer.model.results.roofline import Loss, Peaks, Roofline
    from explorer.model.results.session import SessionItem, SessionReport, SessionRow
    from explorer.model.results.sweep import Series, Sweep, SweepRow, Variant, WhatIf
    from explorer.model.results.targets import LargestFit, TargetComparison, TargetResult, TargetRow, Targets, Trial
    from explorer.model.results.timing import Comparison, Ratio, Samples, Timing
    from explorer.model.shardings import DeviceMesh, Shardings, Spread
    from explorer.model.stage import Constant, Durations, Source, Stage, WrittenLine
    from explorer.model.target import Hardware, Target
    from explorer.model.types import TypeSizes
    from explorer.notebook import load_ipython_extension, unload_ipython_extension
    from explorer.pitfalls.lint import lint
    from explorer.sessions.session import Session, session


def _define_methods() -> None:
    import_module("explorer.methods")


define_with(_define_methods)
load = Capture.load

__all__ = [
    "Answer",
    "AttributeColumns",
    "Attributes",
    "Attribution",
    "AutoCompile",
    "Binary",
    "Bookmark",
    "Bounds",
    "Buffer",
    "Call",
    "CallTimes",
    "Capture",
    "Cause",
    "Change",
    "CheckResult",
    "Collective",
    "Collectives",
    "Comparison",
    "Compiler",
    "ComputationCall",
    "Constant",
    "DeviceMesh",
    "Diff",
    "DimensionInputInfo",
    "Durations",
    "DynamicBinary",
    "DynamicReport",
    "Effect",
    "EquationTime",
    "Estimate",
    "Estimates",
    "Event",
    "Executable",
    "Fact",
    "Facts",
    "FamilyCounts",
    "Fate",
    "FateRow",
    "FateTable",
    "Fates",
    "Finding",
    "Findings",
    "Fix",
    "Flame",
    "Frame",
    "Fusion",
    "Golden",
    "Graph",
    "Group",
    "Guard",
    "Hardware",
    "HeldValue",
    "Hierarchy",
    "History",
    "HistoryEvent",
    "HotEvent",
    "HotPaths",
    "HotRow",
    "InputInfo",
    "Jitted",
    "KernelCode",
    "LargestFit",
    "Ledger",
    "LeftStatement",
    "LineRecord",
    "LineRow",
    "LineTable",
    "LineTime",
    "Links",
    "LiveMemory",
    "Loss",
    "MachineCode",
    "MemoryRow",
    "MemoryUse",
    "NamedDimension",
    "Node",
    "Note",
    "OpPart",
    "OpTime",
    "OutputInfo",
    "PaddedSizes",
    "PaddingRefusal",
    "Pass",
    "PassLink",
    "Passes",
    "Paths",
    "Peaks",
    "Place",
    "Prediction",
    "ProcessDifference",
    "ProcessLedger",
    "ProcessOp",
    "ProcessProfile",
    "ProcessProgram",
    "Profile",
    "ProgramRecord",
    "ProposedFunction",
    "Ratio",
    "Reason",
    "Roofline",
    "Running",
    "Samples",
    "Series",
    "Session",
    "SessionItem",
    "SessionReport",
    "SessionRow",
    "ShapeBounds",
    "Shardings",
    "Signal",
    "Source",
    "SourceLine",
    "Specialization",
    "Spread",
    "StackTree",
    "Stage",
    "StageDiff",
    "Storm",
    "Summary",
    "Sweep",
    "SweepRow",
    "Target",
    "TargetComparison",
    "TargetResult",
    "TargetRow",
    "Targets",
    "Timing",
    "Totals",
    "Trial",
    "TypeSizes",
    "Value",
    "Variant",
    "Variation",
    "Variations",
    "Watch",
    "WhatIf",
    "WrittenLine",
    "assert_no_recompiles",
    "auto_compile",
    "check",
    "compare",
    "compare_targets",
    "compile",
    "diff",
    "disable_compile",
    "enable_compile",
    "explore",
    "explore_all",
    "gather_ledgers",
    "jit",
    "largest_that_fits",
    "lint",
    "load",
    "load_ipython_extension",
    "max_compiles",
    "memory",
    "merge_ledgers",
    "merge_profiles",
    "open_hlo",
    "peaks",
    "profile",
    "record",
    "roofline",
    "session",
    "signal",
    "sweep",
    "target",
    "targets",
    "time",
    "unload_ipython_extension",
    "watch",
    "what_if",
]
__all__ += errors.__all__
__version__ = "0.2.0"

# Loaded at first use: a report opens where no JAX is installed, and a script pays only for what it names.
_NAMES = {
    "explorer.analysis.diff.diff": "Diff Fusion Value diff",
    "explorer.analysis.diff.stage_diff": "StageDiff",
    "explorer.model.passes": "Effect History HistoryEvent Pass PassLink Passes",
    "explorer.aot": "Compiler DimensionInputInfo Executable InputInfo NamedDimension OutputInfo compile",
    "explorer.aot.binaries": "Binary",
    "explorer.aot.inputs": "Bounds ShapeBounds",
    "explorer.capture.call": "Call",
    "explorer.capture.explore": "explore",
    "explorer.capture.explore_all": "explore_all",
    "explorer.capture.open": "open_hlo",
    "explorer.golden.record": "check record",
    "explorer.model.golden": "Change CheckResult Golden LineRecord ProgramRecord",
    "explorer.hotpath.auto": "AutoCompile auto_compile",
    "explorer.hotpath.signals": "Signal signal",
    "explorer.jitted": "Jitted disable_compile enable_compile jit",
    "explorer.ledger.guards": "Guard assert_no_recompiles max_compiles",
    "explorer.ledger.processes": "gather_ledgers merge_ledgers",
    "explorer.ledger.watch": "Watch watch",
    "explorer.measure.compare": "compare",
    "explorer.measure.compare_targets": "compare_targets",
    "explorer.measure.largest_that_fits": "largest_that_fits",
    "explorer.measure.memory": "memory",
    "explorer.measure.merge_profiles": "merge_profiles",
    "explorer.measure.peaks": "peaks",
    "explorer.measure.profile": "profile",
    "explorer.measure.roofline": "roofline",
    "explorer.measure.sweep": "sweep",
    "explorer.measure.time": "time",
    "explorer.measure.what_if": "what_if",
    "explorer.model.attributes": "AttributeColumns Attributes",
    "explorer.model.bookmark": "Bookmark Note",
    "explorer.model.capture": "Constant Durations",
    "explorer.model.events.event": "Event Place Reason Running",
    "explorer.model.events.ledger": "Ledger",
    "explorer.model.events.family_counts": "Cause FamilyCounts Prediction Storm Summary Totals",
    "explorer.model.events.variations": "StackTree Variation Variations",
    "explorer.model.events.process_ledger": "ProcessDifference ProcessLedger ProcessProgram",
    "explorer.model.answers": "Answer Fact Facts",
    "explorer.model.fates": "Fate FateRow FateTable Fates",
    "explorer.model.findings": "Finding Findings Fix",
    "explorer.model.graph": "ComputationCall Frame Graph Group Hierarchy Node Paths",
    "explorer.model.line_table": "LineRow LineTable",
    "explorer.model.attribution": "Attribution SourceLine",
    "explorer.model.links": "Links",
    "explorer.model.live_memory": "Buffer LiveMemory",
    "explorer.model.results.timing": "Comparison Ratio Samples Timing",
    "explorer.model.machine_code": "KernelCode MachineCode",
    "explorer.model.results.estimates": "Collective Collectives Estimate Estimates",
    "explorer.model.shardings": "DeviceMesh Shardings Spread",
    "explorer.model.results.dynamic_report": "DynamicBinary DynamicReport PaddedSizes PaddingRefusal Specialization",
    "explorer.model.results.profile_events": "Flame",
    "explorer.model.results.hot_paths": "CallTimes HeldValue HotEvent HotPaths HotRow LeftStatement ProposedFunction",
    "explorer.model.results.memory_use": "MemoryRow MemoryUse",
    "explorer.model.results.roofline": "Loss Peaks Roofline",
    "explorer.model.results.profile": "EquationTime LineTime OpPart OpTime ProcessOp ProcessProfile Profile",
    "explorer.model.results.session": "SessionItem SessionReport SessionRow",
    "explorer.model.results.sweep": "Series Sweep SweepRow Variant WhatIf",
    "explorer.model.results.targets": "LargestFit TargetComparison TargetResult TargetRow Targets Trial",
    "explorer.model.stage": "Source Stage WrittenLine",
    "explorer.model.target": "Hardware Target",
    "explorer.model.types": "TypeSizes",
    "explorer.notebook": "load_ipython_extension unload_ipython_extension",
    "explorer.pitfalls.lint": "lint",
    "explorer.hardware.table": "target targets",
    "explorer.sessions.session": "Session session",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'explorer' has no attribute {name!r}")
    value: object = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def _watch_if_requested() -> None:
    """A session that the environment wants a log of is watched from here on; that must not cost the user's program."""
    if any(map(os.environ.get, ("EXPLORER_INSTRUCTION_LOG", "EXPLORER_DEBUG_COMPILE"))):
        try:
            import_module("explorer.ledger.watch").watch_if_requested()
        except Exception as error:
            print(f"explorer: there will be no log: {type(error).__name__}: {error}", file=sys.stderr)


def _compile_if_requested() -> None:
    """Hot paths are on from here on if the environment says so; a value that it can't have is an error."""
    names = ("AUTO_COMPILE", "COMPILE", "COMPILE_THRESHOLD", "CONFIG")
    if any(os.environ.get(f"EXPLORER_{name}") for name in names):
        import_module("explorer.hotpath.auto").start_if_requested()


_watch_if_requested()
_compile_if_requested()
