"""See what the compiler did to your JAX function, and why."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from explorer.analysis.diff.diff import Diff, diff
from explorer.attachments import attach_methods
from explorer.errors import (
    AmbiguousOptionWarning,
    ArchiveError,
    ArgumentsError,
    CaptureFileError,
    DuplicateArgumentError,
    ExploreError,
    ExplorerError,
    ExpressionError,
    ExtraArgumentError,
    ForeignNodeError,
    InputDeviceError,
    InputDtypeError,
    InputError,
    InputInfoError,
    InputRankError,
    InputShapeError,
    InputStructureError,
    LeakedStateError,
    LedgerFileError,
    MissingArgumentError,
    MissingPackageError,
    NotAnArrayError,
    NotCallableError,
    NotRecordedError,
    OpenError,
    OptionError,
    OutOfRangeError,
    OutputError,
    ProfilerBusyError,
    QueryError,
    RecompilationError,
    RecompilationWarning,
    StateError,
    TracedPerShapeWarning,
    TracedValueError,
    TransformationError,
    UnknownNameError,
    UnreadableTextError,
    UnwrittenStateWarning,
    ViewError,
)
from explorer.model.capture import Capture
from explorer.model.events.ledger import Ledger
from explorer.model.findings.finding import Finding
from explorer.model.findings.findings import Findings

if TYPE_CHECKING:
    from explorer.aot import Compiler, DimensionInputInfo, Executable, InputInfo, NamedDimension, OutputInfo, compile
    from explorer.capture.call import Call
    from explorer.capture.explore import explore
    from explorer.capture.open import open_hlo
    from explorer.jitted import Jitted, disable_compile, enable_compile, jit
    from explorer.ledger.guards import assert_no_recompiles, max_compiles
    from explorer.ledger.watch import Watch, watch
    from explorer.measure.compare import compare
    from explorer.measure.memory import memory
    from explorer.measure.peaks import peaks
    from explorer.measure.profile import profile
    from explorer.measure.roofline import roofline
    from explorer.measure.sweep import sweep
    from explorer.measure.time import time
    from explorer.measure.what_if import what_if
    from explorer.notebook import load_ipython_extension, unload_ipython_extension
    from explorer.pitfalls.lint import lint


attach_methods()
load = Capture.load

__all__ = [
    "AmbiguousOptionWarning",
    "ArchiveError",
    "ArgumentsError",
    "Call",
    "Capture",
    "CaptureFileError",
    "Compiler",
    "Diff",
    "DimensionInputInfo",
    "DuplicateArgumentError",
    "Executable",
    "ExploreError",
    "ExplorerError",
    "ExpressionError",
    "ExtraArgumentError",
    "Finding",
    "Findings",
    "ForeignNodeError",
    "InputDeviceError",
    "InputDtypeError",
    "InputError",
    "InputInfo",
    "InputInfoError",
    "InputRankError",
    "InputShapeError",
    "InputStructureError",
    "Jitted",
    "LeakedStateError",
    "Ledger",
    "LedgerFileError",
    "MissingArgumentError",
    "MissingPackageError",
    "NamedDimension",
    "NotAnArrayError",
    "NotCallableError",
    "NotRecordedError",
    "OpenError",
    "OptionError",
    "OutOfRangeError",
    "OutputError",
    "OutputInfo",
    "ProfilerBusyError",
    "QueryError",
    "RecompilationError",
    "RecompilationWarning",
    "StateError",
    "TracedPerShapeWarning",
    "TracedValueError",
    "TransformationError",
    "UnknownNameError",
    "UnreadableTextError",
    "UnwrittenStateWarning",
    "ViewError",
    "Watch",
    "assert_no_recompiles",
    "compare",
    "compile",
    "diff",
    "disable_compile",
    "enable_compile",
    "explore",
    "jit",
    "lint",
    "load",
    "load_ipython_extension",
    "max_compiles",
    "memory",
    "open_hlo",
    "peaks",
    "profile",
    "roofline",
    "sweep",
    "time",
    "unload_ipython_extension",
    "watch",
    "what_if",
]
__version__ = "0.1.0"

# Loaded at first use: a report opens where no JAX is installed, and a script pays only for what it names.
_ROOM = {
    "Call": "explorer.capture.call",
    "Compiler": "explorer.aot",
    "DimensionInputInfo": "explorer.aot",
    "Executable": "explorer.aot",
    "InputInfo": "explorer.aot",
    "Jitted": "explorer.jitted",
    "NamedDimension": "explorer.aot",
    "OutputInfo": "explorer.aot",
    "Watch": "explorer.ledger.watch",
    "assert_no_recompiles": "explorer.ledger.guards",
    "compare": "explorer.measure.compare",
    "compile": "explorer.aot",
    "disable_compile": "explorer.jitted",
    "enable_compile": "explorer.jitted",
    "explore": "explorer.capture.explore",
    "jit": "explorer.jitted",
    "lint": "explorer.pitfalls.lint",
    "load_ipython_extension": "explorer.notebook",
    "max_compiles": "explorer.ledger.guards",
    "open_hlo": "explorer.capture.open",
    "memory": "explorer.measure.memory",
    "peaks": "explorer.measure.peaks",
    "profile": "explorer.measure.profile",
    "sweep": "explorer.measure.sweep",
    "roofline": "explorer.measure.roofline",
    "time": "explorer.measure.time",
    "unload_ipython_extension": "explorer.notebook",
    "watch": "explorer.ledger.watch",
    "what_if": "explorer.measure.what_if",
}


def __getattr__(name: str) -> object:
    if name not in _ROOM:
        raise AttributeError(f"module 'explorer' has no attribute {name!r}")
    value: object = getattr(import_module(_ROOM[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOM})


def _watch_as_asked() -> None:
    """A session that the environment wants a log of is watched from here on; that must not cost the user's program."""
    if any(map(os.environ.get, ("EXPLORER_INSTRUCTION_LOG", "EXPLORER_DEBUG_COMPILE"))):
        try:
            import_module("explorer.ledger.session").watch_as_asked()
        except Exception as error:
            print(f"explorer: there will be no log: {type(error).__name__}: {error}", file=sys.stderr)


_watch_as_asked()
