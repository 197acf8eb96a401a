"""Compiled modules in binary form → the text that everybody reads. No device is needed, and nothing is compiled."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from explorer.errors import OpenError

_hlo: Any
_parse: Any
try:
    # Non-public: the only way from a serialized HloModuleProto to its text. It parses; it never touches a backend.
    from jaxlib import _hlo as _bindings  # pyright: ignore

    _hlo = _bindings.XlaComputation  # pyright: ignore
    _parse = _bindings.hlo_module_from_text  # pyright: ignore
except (ImportError, AttributeError):  # pragma: no cover - said when a proto is opened
    _hlo = _parse = None

_MESSAGES = 3  # a module is in an HloProto, which may be in an HloSnapshot


def hlo_text(data: bytes) -> str:
    """The text of a serialized `HloModuleProto`, `HloProto` or `HloSnapshot`.

    Raises:
        OpenError: The bytes are none of these, or this JAX has no reader for them.
    """
    if _hlo is None:  # pragma: no cover - every JAX we know has it
        raise OpenError("this JAX can't read serialized HLO. Hint: dump it as text, --xla_dump_hlo_as_text.")
    reason = ""
    for message in _nested(data):
        try:
            text: str = _hlo(message).get_hlo_module().to_string()
        except Exception as error:  # XLA's own, of whatever kind: the next one inside may be the module
            reason = reason or str(error).partition("\n")[0]
            continue
        return text
    raise OpenError(f"these {len(data):,} bytes are no serialized HLO module: {reason}.")


def printed_hlo(text: str) -> str:
    """A module's text as XLA prints it, an instruction a line; empty where its parser refuses it or isn't there."""
    try:
        printed: str = _parse(text).to_string()
    except Exception:  # XLA's own, of whatever kind
        return ""
    return printed


def is_hlo_text(text: str) -> bool:
    """Whether XLA's own parser takes a text; where there is none, it can't be told and counts as taken."""
    return _parse is None or bool(printed_hlo(text))


def _nested(data: bytes) -> Iterator[bytes]:
    """The message, and what its first field holds, and that one's: each of the messages around a module has it so."""
    for _ in range(_MESSAGES):
        yield data
        size, at = _varint(data, 1)
        if data[:1] != b"\x0a" or not size or at + size > len(data):
            return
        data = data[at : at + size]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A protocol buffer's number, and where it ends; 0 where there is none."""
    value = 0
    for shift in range(0, 35, 7):
        if at >= len(data):
            break
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
    return 0, at


def mlir_text(data: bytes) -> str:
    """The text of MLIR bytecode, with its locations: StableHLO, or a portable artifact of it.

    Raises:
        OpenError: It can't be read, because it is damaged or newer than this JAX.
    """
    try:
        # Public, yet outside what JAX promises to keep.
        from jax.extend.mlir import ir
        from jax.extend.mlir.dialects import stablehlo
        from jax.interpreters.mlir import make_ir_context

        context: Any = make_ir_context()
    except (ImportError, AttributeError) as error:  # pragma: no cover - every JAX we know has them
        raise OpenError(f"this JAX can't read MLIR bytecode: {error}.") from error
    with context:
        try:
            module: Any = ir.Module.parse(data)
            if "!vhlo." in str(module)[:100_000]:  # a portable artifact, in the dialect that versions are kept in
                module = stablehlo.deserialize_portable_artifact(context, data)
        except Exception as error:  # MLIR's own
            reason = (str(error).partition("error: ")[2] or str(error)).partition("\n")[0].removeprefix('"-":0:0: ')
            raise OpenError(f"this MLIR bytecode can't be read: {reason}.") from error
        text: str = module.operation.get_asm(enable_debug_info=True, large_elements_limit=64)
        return text


_DIALECTS = ("builtin.", "func.", "stablehlo.", "chlo.", "sdy.", "shape.")


def called_targets(artifact: bytes) -> frozenset[str]:
    """What a portable artifact of StableHLO calls outside of itself: the targets of its custom calls.

    Raises:
        ValueError: It can't be read, or has operations of another dialect than what JAX exports.
    """
    from jax.extend.mlir.dialects import stablehlo
    from jax.interpreters.mlir import make_ir_context

    context: Any = make_ir_context()
    targets: set[str] = set()
    with context:
        try:
            module: Any = stablehlo.deserialize_portable_artifact(context, artifact)
        except Exception as error:  # MLIR's own
            raise ValueError(str(error).partition("\n")[0]) from error
        todo = [module.operation]
        while todo:
            operation = todo.pop()
            if not operation.name.startswith(_DIALECTS):
                raise ValueError(f"it has the operation {operation.name!r:.80}, which JAX doesn't export")
            if operation.name.endswith(".custom_call"):
                targets.add(str(operation.attributes["call_target_name"].value))
            todo += [each.operation for region in operation.regions for block in region for each in block]
    return frozenset(targets)


@cache
def stable_targets() -> frozenset[str]:
    """The targets of custom calls that JAX itself exports without being told to; none where it doesn't say."""
    try:
        # Non-public: JAX checks what it exports against it, and doesn't check what it reads.
        from jax._src.export import _export  # pyright: ignore

        return frozenset(map(str, _export._CUSTOM_CALL_TARGETS_GUARANTEED_STABLE))  # pyright: ignore
    except (ImportError, AttributeError):  # pragma: no cover - every JAX we know has it
        return frozenset()
