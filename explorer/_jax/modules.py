"""Compiled modules in binary form → the text that everybody reads. No device is needed, and nothing is compiled."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from hashlib import blake2b

from explorer._jax import binary_reader
from explorer.errors import OpenError

_PATIENCE = 300.0  # seconds for a file of hundreds of megabytes


def hlo_text(data: bytes) -> str:
    """The text of a serialized `HloModuleProto`, `HloProto` or `HloSnapshot`.

    Raises:
        OpenError: The bytes are none of these, or this JAX has no reader for them.
    """
    try:
        return _read_apart("hlo_text", data)
    except ValueError as error:
        raise OpenError(f"these {len(data):,} bytes are no serialized HLO module: {error}.") from error


def mlir_text(data: bytes) -> str:
    """The text of MLIR bytecode, with its locations: StableHLO, or a portable artifact of it.

    Raises:
        OpenError: It can't be read, because it is damaged or newer than this JAX.
    """
    try:
        return _read_apart("mlir_text", data)
    except ValueError as error:
        raise OpenError(f"this MLIR bytecode can't be read: {error}.") from error


def printed_again(text: str, *, is_hlo: bool) -> str:
    """A text of any spelling as its compiler prints it: HLO by XLA, other text by MLIR.

    Raises:
        ValueError: The compiler's parser refuses it; the message has the line.
    """
    return _read_apart("printed_hlo" if is_hlo else "printed_mlir", text.encode("utf-8", "replace"))


_MOST_KNOWN = 256
_known_targets: dict[bytes, frozenset[str]] = {}  # by digest: a process to read the same program again helps nobody


def called_targets(artifact: bytes, *, is_own: bool = False) -> frozenset[str]:
    """What a portable artifact of StableHLO calls outside of itself: the targets of its custom calls.

    Args:
        artifact: The program.
        is_own: Whether this process wrote it: it is read here then.

    Raises:
        ValueError: It can't be read, or has operations of another dialect than what JAX exports.
    """
    digest = blake2b(artifact, digest_size=16).digest()
    if (targets := _known_targets.get(digest)) is None:
        read = binary_reader.called_targets(artifact) if is_own else _read_apart("called_targets", artifact)
        targets = frozenset(map(ast.literal_eval, read.splitlines()))
        if len(_known_targets) >= _MOST_KNOWN:
            _known_targets.clear()
        _known_targets[digest] = targets
    return targets


def _read_apart(reader: str, data: bytes) -> str:
    """What a reader of `binary_reader` makes of bytes, in a process of its own: a crash of the compiler's is an error.

    Raises:
        ValueError: What the reader raised, or how its process ended.
    """
    command = [sys.executable, "-I", "-S", binary_reader.__file__, reader, "\n".join(filter(None, sys.path))]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=_PATIENCE, check=False)
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"reading it took more than {_PATIENCE:.0f} s") from error
    except OSError:  # no process may be started here: it is read as safely as the compiler does
        return binary_reader.READERS[reader](data)
    answer = done.stdout.decode("utf-8", "surrogatepass")
    if done.returncode < 0 or done.returncode >= 128:
        raise ValueError("the compiler's own reader crashes on it")
    if done.returncode or answer[:2] not in ("ok", "no"):
        raise ValueError(f"its reader failed: {done.stderr.decode('utf-8', 'replace').strip()[-200:]}")
    if answer.startswith("no"):
        raise ValueError(answer[2:])
    return answer[2:]


@cache
def stable_targets() -> frozenset[str]:
    """The targets of custom calls that JAX itself exports without being told to; none where it doesn't say."""
    try:
        # Non-public: JAX checks what it exports against it, and doesn't check what it reads.
        from jax._src.export import _export  # pyright: ignore

        return frozenset(map(str, _export._CUSTOM_CALL_TARGETS_GUARANTEED_STABLE))  # pyright: ignore
    except (ImportError, AttributeError):  # pragma: no cover - every JAX we know has it
        return frozenset()
