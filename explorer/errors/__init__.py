"""Every error Explorer raises, and when.

ExplorerError                  anything below
├── ArchiveError               a file of an executable is none, truncated, altered, or newer (also a ValueError)
├── ArgumentsError             the arguments of explore(), compile(), diff(), … do not fit (also a TypeError)
├── CaptureFileError           a capture file is none, truncated, altered, or newer (also a ValueError)
├── ChangedFunctionError       an executable needs its function again, and that reads something else (also a ValueError)
├── ExploreError               a step of explore() failed; `.capture` holds the steps that worked
│   └── TracedValueError         the function needs the value of something that is only traced (also a TypeError)
├── ExpressionError            a magic was given something it can't take: an option, or no call (also a ValueError)
├── ForeignNodeError           a node was given that belongs to another capture, or to another stage (also a ValueError)
├── GoldenFileError            a golden file is none, or of a newer format (also a ValueError)
├── HotPathsError              hot paths were turned on where they are on already (also a RuntimeError)
├── InputError                 an executable was called with something it was not compiled for
│   ├── DonatedInputError        an array that an earlier call was given to overwrite (also a RuntimeError)
│   ├── DuplicateArgumentError   one argument twice, by position and by name (also a TypeError)
│   ├── ExtraArgumentError       an argument too many, or of another name (also a TypeError)
│   ├── InputDeviceError         an array on another device (also a ValueError)
│   ├── InputDtypeError          an array of another dtype (also a TypeError)
│   ├── InputRankError           an array of another number of dimensions (also a ValueError)
│   ├── InputShapeError          an array of another size (also a ValueError)
│   ├── InputStructureError      a list, dict or object without what was compiled for (also a ValueError)
│   ├── MissingArgumentError     an argument is not there (also a TypeError)
│   └── NotAnArrayError          something that is no array (also a TypeError)
├── InputInfoError             a shape or dtype that no input can have (also a ValueError)
├── LeakedStateError           an outer trace doesn't capture some state that is read or written (also a ValueError)
├── LedgerFileError            a file of a ledger is none, altered, or newer; or one is in the way (also a ValueError)
├── MissingCompilerError       the compiler for some hardware is not installed, or can't run here
├── MissingPackageError        what was asked for needs a package that is not installed (also an ImportError)
├── NotCallableError           a function was expected and something else came (also a TypeError)
├── NotRecordedError           what was asked for is not in a capture, a dump or a ledger (also a LookupError)
├── OpenError                  open_hlo() was given nothing that holds a module (also a ValueError)
├── OptionError                an option of compile(), lint(), time(), watch(), … is out of range (also a ValueError)
├── OutOfRangeError            a step or position that is not there was asked for by number (also an IndexError)
├── OutputError                a function returns something that is no array (also a TypeError)
├── PaddingError               compile(dynamic="pad") of what can't be padded, line by line (also a ValueError)
├── ProfilerBusyError          a trace is being recorded already, and a process has one profiler
├── QueryError                 a query of a graph's nodes can't be read (also a ValueError)
├── RecompilationError         a guard saw more compiles than it allows (also an AssertionError)
├── ResultFileError            a file of a result is none, of another kind, altered, or newer (also a ValueError)
├── SignalsError               a file of signals has a mistake, or asks for what can't be (also a ValueError)
├── StateError                 what jit() shall capture holds no arrays that it could (also a TypeError)
├── StaticArgumentError        a static argument of jit() can't be hashed or compared (also a ValueError)
├── TargetCompileError         the compiler of other hardware refused a program, or ended
├── TransformationError        an executable from a file has no derivative, or no batch, of the kind (also a TypeError)
├── UnknownNameError           no stage, node, pass, variant, … has the name that was asked for (also a KeyError)
├── UnknownTargetError         `target=` names no hardware that is known (also a ValueError)
├── UnreadableTextError        text given as HLO, or as findings, is none (also a ValueError)
├── ViewError                  a view was told to show what it can't (also a ValueError)
└── WorkerError                no process of `executor=`, or of `mcp`, can do the work (also a RuntimeError)

And every warning:

UserWarning
├── AmbiguousOptionWarning     a keyword is the name of an option, and of a parameter of the function, which gets it
├── ProcessWarning             a process compiles another program than the first one does: both may wait for ever
├── RecompilationWarning       a function is traced or compiled again and again
├── TracedPerShapeWarning      a function can't be traced for all its shapes at once
├── UnknownSignalWarning       a signal isn't in the file of signals, which has one of nearly that name
└── UnwrittenStateWarning      a function changed state that is captured as inputs only: the change is dropped
"""

from __future__ import annotations

from explorer.errors.base import ExplorerError
from explorer.errors.cautions import (
    AmbiguousOptionWarning,
    ProcessWarning,
    RecompilationWarning,
    TracedPerShapeWarning,
    UnknownSignalWarning,
    UnwrittenStateWarning,
)
from explorer.errors.documents import (
    ArchiveError,
    CaptureFileError,
    GoldenFileError,
    LedgerFileError,
    ResultFileError,
    SignalsError,
)
from explorer.errors.functions import (
    ArgumentsError,
    ChangedFunctionError,
    ExploreError,
    NotCallableError,
    OutputError,
    PaddingError,
    RecompilationError,
    TracedValueError,
    TransformationError,
)
from explorer.errors.inputs import (
    DonatedInputError,
    DuplicateArgumentError,
    ExtraArgumentError,
    InputDeviceError,
    InputDtypeError,
    InputError,
    InputRankError,
    InputShapeError,
    InputStructureError,
    MissingArgumentError,
    NotAnArrayError,
)
from explorer.errors.machines import (
    HotPathsError,
    MissingCompilerError,
    MissingPackageError,
    ProfilerBusyError,
    TargetCompileError,
    UnknownTargetError,
    WorkerError,
)
from explorer.errors.requests import (
    ExpressionError,
    ForeignNodeError,
    InputInfoError,
    NotRecordedError,
    OpenError,
    OptionError,
    OutOfRangeError,
    QueryError,
    UnknownNameError,
    UnreadableTextError,
    ViewError,
)
from explorer.errors.state import LeakedStateError, StateError, StaticArgumentError

__all__ = [
    "AmbiguousOptionWarning",
    "ArchiveError",
    "ArgumentsError",
    "CaptureFileError",
    "ChangedFunctionError",
    "DonatedInputError",
    "DuplicateArgumentError",
    "ExploreError",
    "ExplorerError",
    "ExpressionError",
    "ExtraArgumentError",
    "ForeignNodeError",
    "GoldenFileError",
    "HotPathsError",
    "InputDeviceError",
    "InputDtypeError",
    "InputError",
    "InputInfoError",
    "InputRankError",
    "InputShapeError",
    "InputStructureError",
    "LeakedStateError",
    "LedgerFileError",
    "MissingArgumentError",
    "MissingCompilerError",
    "MissingPackageError",
    "NotAnArrayError",
    "NotCallableError",
    "NotRecordedError",
    "OpenError",
    "OptionError",
    "OutOfRangeError",
    "OutputError",
    "PaddingError",
    "ProcessWarning",
    "ProfilerBusyError",
    "QueryError",
    "RecompilationError",
    "RecompilationWarning",
    "ResultFileError",
    "SignalsError",
    "StateError",
    "StaticArgumentError",
    "TargetCompileError",
    "TracedPerShapeWarning",
    "TracedValueError",
    "TransformationError",
    "UnknownNameError",
    "UnknownSignalWarning",
    "UnknownTargetError",
    "UnreadableTextError",
    "UnwrittenStateWarning",
    "ViewError",
    "WorkerError",
]
