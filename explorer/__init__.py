"""See what the compiler did to your JAX function, and why."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from explorer.errors import (
    ArchiveError,
    ArgumentsError,
    CaptureFileError,
    DuplicateArgumentError,
    ExploreError,
    ExplorerError,
    ExpressionError,
    ExtraArgumentError,
    InputDeviceError,
    InputDtypeError,
    InputError,
    InputInfoError,
    InputRankError,
    InputShapeError,
    InputStructureError,
    LeakedStateError,
    MissingArgumentError,
    MissingPackageError,
    NotAnArrayError,
    NotCallableError,
    NotRecordedError,
    OpenError,
    OptionError,
    OutputError,
    QueryError,
    RecompilationWarning,
    StateError,
    TracedPerShapeWarning,
    TracedValueError,
    TransformationError,
    UnreadableTextError,
    UnwrittenStateWarning,
    ViewError,
)
from explorer.model.capture import Capture
from explorer.model.diff import Diff, diff
from explorer.view import HtmlViewer
from explorer.view.diff import HtmlDiffViewer

if TYPE_CHECKING:
    from explorer.aot import Compiler, DimensionInputInfo, Executable, InputInfo, NamedDimension, OutputInfo, compile
    from explorer.capture.explore import explore
    from explorer.capture.open import open_hlo
    from explorer.jitted import Jitted, disable_compile, enable_compile, jit
    from explorer.notebook import load_ipython_extension, unload_ipython_extension

Capture.viewer = HtmlViewer()  # the model knows that it can be shown; here it learns by whom
Diff.viewer = HtmlDiffViewer()
load = Capture.load

__all__ = [
    "ArchiveError",
    "ArgumentsError",
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
    "MissingArgumentError",
    "MissingPackageError",
    "NamedDimension",
    "NotAnArrayError",
    "NotCallableError",
    "NotRecordedError",
    "OpenError",
    "OptionError",
    "OutputError",
    "OutputInfo",
    "QueryError",
    "RecompilationWarning",
    "StateError",
    "TracedPerShapeWarning",
    "TracedValueError",
    "TransformationError",
    "UnreadableTextError",
    "UnwrittenStateWarning",
    "ViewError",
    "compile",
    "diff",
    "disable_compile",
    "enable_compile",
    "explore",
    "jit",
    "load",
    "load_ipython_extension",
    "open_hlo",
    "unload_ipython_extension",
]
__version__ = "0.1.0"

# Loaded at first use: a report opens where no JAX is installed, and a script pays only for what it names.
_ROOM = {
    "Compiler": "explorer.aot",
    "DimensionInputInfo": "explorer.aot",
    "Executable": "explorer.aot",
    "InputInfo": "explorer.aot",
    "Jitted": "explorer.jitted",
    "NamedDimension": "explorer.aot",
    "OutputInfo": "explorer.aot",
    "compile": "explorer.aot",
    "disable_compile": "explorer.jitted",
    "enable_compile": "explorer.jitted",
    "explore": "explorer.capture.explore",
    "jit": "explorer.jitted",
    "load_ipython_extension": "explorer.notebook",
    "open_hlo": "explorer.capture.open",
    "unload_ipython_extension": "explorer.notebook",
}


def __getattr__(name: str) -> object:
    if name not in _ROOM:
        raise AttributeError(f"module 'explorer' has no attribute {name!r}")
    value: object = getattr(import_module(_ROOM[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOM})
