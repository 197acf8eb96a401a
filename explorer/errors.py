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

from typing import Any

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


class ExplorerError(Exception):
    """Base of every error that Explorer raises on purpose."""


class ArchiveError(ExplorerError, ValueError):
    """An executable can't be in a file, or a file holds none that this Explorer can read."""


class ArgumentsError(ExplorerError, TypeError):
    """The arguments given to explore(), compile(), sweep() or diff() do not fit their signature."""


class CaptureFileError(ExplorerError, ValueError):
    """A file or its bytes hold no capture that this Explorer can read."""


class ChangedFunctionError(ExplorerError, ValueError):
    """An executable needs its function again, for another shape or a derivative, and what that reads has changed."""


class ExploreError(ExplorerError):
    """Tracing, lowering or compiling the user's function failed; the cause is their own error.

    Args:
        capture: The `Capture` of the steps that worked. (This file is below the model, and can't name its types.)
    """

    def __init__(self, message: str, capture: Any) -> None:
        super().__init__(message)
        self.capture = capture


class TracedValueError(ExploreError, TypeError):
    """The user's function asks for the value of something that has none while it is traced: `if x > 0`, `float(x)`."""


class ExpressionError(ExplorerError, ValueError):
    """A magic was given an option or an expression that it can't take."""


class ForeignNodeError(ExplorerError, ValueError):
    """A node was given that belongs to another capture, or to a stage that the question can't be asked of."""


class GoldenFileError(ExplorerError, ValueError):
    """A golden file can't be read, or says what can't be."""


class HotPathsError(ExplorerError, RuntimeError):
    """Hot paths were turned on, or a signal was entered, where that is so already."""


class InputError(ExplorerError):
    """An executable was called with something that it was not compiled for."""


class DonatedInputError(InputError, RuntimeError):
    """An array that was donated to an earlier call, which may have overwritten it."""


class DuplicateArgumentError(InputError, TypeError):
    """One argument was given by position and by name."""


class ExtraArgumentError(InputError, TypeError):
    """An argument too many, or one of a name that the executable doesn't have."""


class InputDeviceError(InputError, ValueError):
    """An array on another device, or spread over others, than the executable was compiled for."""


class InputDtypeError(InputError, TypeError):
    """An array of another dtype."""


class InputRankError(InputError, ValueError):
    """An array of another number of dimensions."""


class InputShapeError(InputError, ValueError):
    """An array of another size."""


class InputStructureError(InputError, ValueError):
    """A list, dict or object lacks what the executable was compiled for."""


class MissingArgumentError(InputError, TypeError):
    """An argument is not there."""


class NotAnArrayError(InputError, TypeError):
    """An array was expected."""


class InputInfoError(ExplorerError, ValueError):
    """A shape or dtype that no input can have."""


class LeakedStateError(ExplorerError, ValueError):
    """An outer trace doesn't capture some state: it would be a constant there, or be left with a traced value."""


class LedgerFileError(ExplorerError, ValueError):
    """A file holds no ledger that this Explorer can read, or is in the way of one."""


class MissingPackageError(ExplorerError, ImportError):
    """What was asked for needs a package that is not installed."""


class MissingCompilerError(ExplorerError):
    """The compiler for some hardware is not installed, or can't run here."""


class NotCallableError(ExplorerError, TypeError):
    """A function was expected."""


class NotRecordedError(ExplorerError, LookupError):
    """A capture, a dump or a ledger lacks what was asked of it."""


class OpenError(ExplorerError, ValueError):
    """What open_hlo() was given can't be opened, is empty, or holds no module or several."""


class OptionError(ExplorerError, ValueError):
    """An option of compile(), lint(), time(), sweep(), watch(), … is out of range, or one in pyproject.toml."""


class OutOfRangeError(ExplorerError, IndexError):
    """There is no step, or position, of this number."""


class OutputError(ExplorerError, TypeError):
    """A function to compile returns something that is no array."""


class ResultFileError(ExplorerError, ValueError):
    """A file holds no measured result that this Explorer can read, or one of another kind."""


class SignalsError(ExplorerError, ValueError):
    """A file of signals can't be read, has a mistake, or asks for what this machine or this function can't do."""


class PaddingError(ExplorerError, ValueError):
    """A function can't be padded, and `compile` was to do nothing else."""


class StateError(ExplorerError, TypeError):
    """`inputs` or `outputs` of jit() is nothing whose arrays could be captured."""


class StaticArgumentError(ExplorerError, ValueError):
    """A static argument of jit() has no hash, or can't be compared."""


class TargetCompileError(ExplorerError):
    """The compiler of hardware that is not here refused a program, ended, or took longer than it may."""


class TransformationError(ExplorerError, TypeError):
    """An executable from a file is under a transformation that it can't follow: it has no Python to trace anew."""


class ProfilerBusyError(ExplorerError):
    """A trace is being recorded in this process already, and it has one profiler."""


class QueryError(ExplorerError, ValueError):
    """A query of a graph's nodes can't be read, or asks for something that is not known of them."""


class UnknownNameError(ExplorerError, KeyError):
    """There is no stage, node, pass or variant of this name; the message lists those that there are, or close ones."""

    __str__ = Exception.__str__  # a KeyError would show the repr of its message


class UnknownTargetError(ExplorerError, ValueError):
    """`target=` names no hardware that is known, or a number or topology that it has not."""


class UnreadableTextError(ExplorerError, ValueError):
    """The text holds no module of the expected kind, or no findings."""


class ViewError(ExplorerError, ValueError):
    """A view was told to show something that is not of its capture."""


class WorkerError(ExplorerError, RuntimeError):
    """The processes of `executor=` end as they start, or can't read what they are sent."""


class RecompilationError(ExplorerError, AssertionError):
    """A guard saw more compiles than it allows; `.events` has the `Event`s of the calls that were too many."""

    def __init__(self, message: str, events: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.events = events


class AmbiguousOptionWarning(UserWarning):
    """A keyword of time(), lint(), … is the name of an option and of a parameter of the function, which gets it."""


class ProcessWarning(UserWarning):
    """A process compiles another program for a function than the first one does, over devices of both."""


class RecompilationWarning(UserWarning):
    """A function is traced or compiled again and again, which takes longer than running it."""


class TracedPerShapeWarning(UserWarning):
    """A function can't be traced for all its shapes at once; each that comes is traced for itself."""


class UnknownSignalWarning(UserWarning):
    """A signal isn't in the file of signals, which has one of nearly that name: nothing is done for it."""


class UnwrittenStateWarning(UserWarning):
    """A function changed state that is captured as `inputs` only: the change is dropped."""
