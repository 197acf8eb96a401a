"""A file holds no value that this Explorer can read."""

from __future__ import annotations

from explorer.errors.base import ExplorerError


class ArchiveError(ExplorerError, ValueError):
    """An executable can't be in a file, or a file holds none that this Explorer can read.

    What to do:
        Save the executable again, with this Explorer and this JAX; a file that was cut off has to be copied again.

    Example:
        >>> import explorer
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "double.explorer")
        ...     _ = path.write_bytes(b"something else")
        ...     explorer.Executable.load(path)
        Traceback (most recent call last):
            ...
        explorer.errors.documents.ArchiveError: double.explorer is no executable: it starts with b'somethin'.
          Hint: Executable.save writes one.
    """


class CaptureFileError(ExplorerError, ValueError):
    """A file or its bytes hold no capture that this Explorer can read.

    What to do:
        Save the capture again with this Explorer; for a saved executable take `Executable.load`, for HLO
        `open_hlo`.

    Example:
        >>> import explorer
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "step.explorer")
        ...     _ = path.write_bytes(b"something else")
        ...     explorer.load(path)
        Traceback (most recent call last):
            ...
        explorer.errors.documents.CaptureFileError: this is no capture: it starts with b'somethin', a capture
            with b'EXPLORER'. Hint: captures are what Capture.save(path) writes.
    """


class GoldenFileError(ExplorerError, ValueError):
    """A golden file can't be read, or says what can't be.

    What to do:
        Write it anew with `python -m explorer record`, or `check --update`; after a merge conflict too.

    Example:
        >>> import explorer
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "step.golden")
        ...     _ = path.write_text("something else")
        ...     explorer.Golden.load(path)
        Traceback (most recent call last):
            ...
        explorer.errors.documents.GoldenFileError: .../step.golden: it is no TOML: Expected '=' after a key in a
            key/value pair (at line 1, column 11)
    """


class LedgerFileError(ExplorerError, ValueError):
    """A file holds no ledger that this Explorer can read, or is in the way of one.

    What to do:
        Save the ledger again; a path that another file has needs another name.

    Example:
        >>> import explorer
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "run.jsonl")
        ...     _ = path.write_text("something else")
        ...     explorer.Ledger.load(path)
        Traceback (most recent call last):
            ...
        explorer.errors.documents.LedgerFileError: this is no ledger: it starts with 'something else', a ledger
            with '{"explorer":"ledger"'. Hint: ledgers are what Ledger.save(path) writes.
    """


class ResultFileError(ExplorerError, ValueError):
    """A file holds no measured result that this Explorer can read, or one of another kind.

    What to do:
        Save the result again; load it with the class that saved it.

    Example:
        >>> import explorer
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "step.json")
        ...     _ = path.write_text("{}")
        ...     explorer.Timing.load(path)
        Traceback (most recent call last):
            ...
        explorer.errors.documents.ResultFileError: this is no saved result: it starts with b'{}'. Hint: results
            are what save writes.
    """


class SignalsError(ExplorerError, ValueError):
    """A file of signals can't be read, has a mistake, or asks for what this machine or this function can't do.

    What to do:
        Mend the line that the message names.

    Example:
        >>> import explorer
        >>> from explorer.files.signals import read_signals
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "signals.yaml")
        ...     _ = path.write_text("forward: {shard: 4}")
        ...     read_signals(path)  # what EXPLORER_CONFIG=signals.yaml does
        Traceback (most recent call last):
            ...
        explorer.errors.documents.SignalsError: .../signals.yaml, line 1: 4 is given; expected is a mapping of
            axis, workers.
    """
