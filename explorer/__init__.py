"""See what the compiler did to your JAX function, and why."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from explorer import errors
from explorer.attachments import attach_methods
from explorer.errors import *  # noqa: F403 - every error is public, and errors.__all__ lists them
from explorer.model.capture import Capture

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
    from explorer.model.answers import Answer
    from explorer.model.attributes import AttributeColumns, Attributes
    from explorer.model.attribution import Attribution, SourceLine
    from explorer.model.bookmark import Bookmark, Note
    from explorer.model.compilation import Constant, Durations
    from explorer.model.events.event import Event, Place, Reason
    from explorer.model.events.family_counts import Cause, FamilyCounts, Summary, Totals
    from explorer.model.events.ledger import Ledger
    from explorer.model.events.prediction import Prediction
    from explorer.model.events.process_ledger import ProcessDifference, ProcessLedger, ProcessProgram
    from explorer.model.events.running import Running
    from explorer.model.events.stack_tree import StackTree
    from explorer.model.events.storm import Storm
    from explorer.model.events.variations import Variation, Variations
    from explorer.model.facts import Fact, Facts
    from explorer.model.fates import Fate, FateRow, Fates, FateTable
    from explorer.model.findings.finding import Finding, Fix
    from explorer.model.findings.findings import Findings
    from explorer.model.golden import Change, CheckResult, Golden, LineRecord, ProgramRecord
    from explorer.model.graph import ComputationCall, Frame, Graph, Group, Node
    from explorer.model.hierarchy import Hierarchy
    from explorer.model.line_table import LineRow, LineTable
    from explorer.model.links import Links
    from explorer.model.live_memory import Buffer, LiveMemory
    from explorer.model.machine_code import KernelCode, MachineCode
    from explorer.model.mesh import DeviceMesh
    from explorer.model.pass_history import History, HistoryEvent, PassLink
    from explorer.model.passes import Effect, Pass, Passes
    from explorer.model.paths import Paths
    from explorer.model.results.benchmark_comparison import Comparison, Ratio
    from explorer.model.results.collectives import Collective, Collectives
    from explorer.model.results.dynamic_report import DynamicBinary, DynamicReport, PaddedSizes, PaddingRefusal
    from explorer.model.results.estimates import Estimate, Estimates
    from explorer.model.results.flame import Flame
    from explorer.model.results.hot_paths import CallTimes, HeldValue, HotEvent, HotPaths, HotRow
    from explorer.model.results.largest_fit import LargestFit, Trial
    from explorer.model.results.memory_use import MemoryRow, MemoryUse
    from explorer.model.results.peaks import Peaks
    from explorer.model.results.process_profile import ProcessOp, ProcessProfile
    from explorer.model.results.profile import Profile
    from explorer.model.results.profile_rows import EquationTime, LineTime, OpPart, OpTime
    from explorer.model.results.roofline import Loss, Roofline
    from explorer.model.results.sequences import LeftStatement, ProposedFunction
    from explorer.model.results.session import SessionItem, SessionReport, SessionRow
    from explorer.model.results.sweep import Series, Sweep, SweepRow
    from explorer.model.results.target_comparison import TargetComparison, TargetResult
    from explorer.model.results.targets import TargetRow, Targets
    from explorer.model.results.timing import Samples, Timing
    from explorer.model.results.what_if import Variant, WhatIf
    from explorer.model.shardings import Shardings, Spread
    from explorer.model.source import Source
    from explorer.model.specialization import Specialization
    from explorer.model.stage import Stage, WrittenLine
    from explorer.model.target import Hardware, Target
    from explorer.model.types import TypeSizes
    from explorer.notebook import load_ipython_extension, unload_ipython_extension
    from explorer.pitfalls.lint import lint
    from explorer.sessions.session import Session, session

attach_methods()
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
    "explorer.model.pass_history": "History HistoryEvent PassLink",
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
    "explorer.model.events.event": "Event Place Reason",
    "explorer.model.events.ledger": "Ledger",
    "explorer.model.events.prediction": "Prediction",
    "explorer.model.events.stack_tree": "StackTree",
    "explorer.model.events.storm": "Storm",
    "explorer.model.events.process_ledger": "ProcessDifference ProcessLedger ProcessProgram",
    "explorer.model.events.running": "Running",
    "explorer.model.events.family_counts": "Cause FamilyCounts Summary Totals",
    "explorer.model.events.variations": "Variation Variations",
    "explorer.model.facts": "Fact Facts",
    "explorer.model.fates": "Fate FateRow FateTable Fates",
    "explorer.model.findings.finding": "Finding Fix",
    "explorer.model.findings.findings": "Findings",
    "explorer.model.graph": "ComputationCall Frame Graph Group Node",
    "explorer.model.answers": "Answer",
    "explorer.model.hierarchy": "Hierarchy",
    "explorer.model.line_table": "LineRow LineTable",
    "explorer.model.attribution": "Attribution SourceLine",
    "explorer.model.links": "Links",
    "explorer.model.paths": "Paths",
    "explorer.model.live_memory": "Buffer LiveMemory",
    "explorer.model.passes": "Effect Pass Passes",
    "explorer.model.results.benchmark_comparison": "Comparison Ratio",
    "explorer.model.machine_code": "KernelCode MachineCode",
    "explorer.model.results.collectives": "Collective Collectives",
    "explorer.model.results.estimates": "Estimate Estimates",
    "explorer.model.mesh": "DeviceMesh",
    "explorer.model.shardings": "Shardings Spread",
    "explorer.model.results.dynamic_report": "DynamicBinary DynamicReport PaddedSizes PaddingRefusal",
    "explorer.model.results.flame": "Flame",
    "explorer.model.results.hot_paths": "CallTimes HeldValue HotEvent HotPaths HotRow",
    "explorer.model.results.memory_use": "MemoryRow MemoryUse",
    "explorer.model.results.peaks": "Peaks",
    "explorer.model.results.process_profile": "ProcessOp ProcessProfile",
    "explorer.model.results.profile": "Profile",
    "explorer.model.results.profile_rows": "EquationTime LineTime OpPart OpTime",
    "explorer.model.results.roofline": "Loss Roofline",
    "explorer.model.results.sequences": "LeftStatement ProposedFunction",
    "explorer.model.results.session": "SessionItem SessionReport SessionRow",
    "explorer.model.results.sweep": "Series Sweep SweepRow",
    "explorer.model.results.largest_fit": "LargestFit Trial",
    "explorer.model.results.target_comparison": "TargetComparison TargetResult",
    "explorer.model.results.targets": "TargetRow Targets",
    "explorer.model.results.timing": "Samples Timing",
    "explorer.model.results.what_if": "Variant WhatIf",
    "explorer.model.source": "Source",
    "explorer.model.specialization": "Specialization",
    "explorer.model.stage": "Stage WrittenLine",
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
