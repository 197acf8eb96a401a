"""A program that reads compiler modules with the compilers' own parsers: bytes in, text out.

XLA's and MLIR's readers end the process on some damaged bytes (7 of 8,000 programs with up to 20 bytes changed) and on
some damaged text (MLIR aborts on 1 of 33,348 texts with a few words changed, and on any nested deep enough). So
`explorer._jax.native` runs this file as a subprocess. It imports only jaxlib, which takes a sixth of a second.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

_SECONDS = 6  # of processors, for any file; loading jaxlib takes a fraction of one
_BYTES_IN_A_SECOND = 200_000  # at least
_MESSAGES = 3  # a module is in an HloProto, which may be in an HloSnapshot
_SPARSE = re.compile(r"<\{\n\s*+([^\n]*)\n\s*+\}>")  # the only attribute that MLIR prints over several lines
# The start of a line inside an instruction: XLA copies a configuration as it is.
_INSIDE = re.compile(
    r"\n(?! *(?:ROOT )?%[\w.\-]+ |ENTRY |\}(?:, execution_thread.*)?(?:\n|\Z)|\n|\Z"
    r"|HloModule |File|Function|Stack|\d+ )\s*"
)
_DIALECTS = ("builtin.", "func.", "stablehlo.", "chlo.", "sdy.", "shape.")


def hlo_text(data: bytes) -> str:
    """Return the text of a serialized `HloModuleProto`, `HloProto` or `HloSnapshot`; raise ValueError for others."""
    # Non-public: the only way from a serialized HloModuleProto to its text. It parses; it never touches a backend.
    hlo = _jaxlib("_hlo")
    reason = ""
    for message in _nested(data):
        try:
            text: str = hlo.XlaComputation(message).get_hlo_module().to_string()
        except Exception as error:  # XLA's own, of any kind: the next inner message may be the module
            reason = reason or str(error).partition("\n")[0]
            continue
        return text
    raise ValueError(reason)


def _nested(data: bytes) -> Iterator[bytes]:
    """Yield `data`, the content of its first field, and the first field of that content, as far as they exist.

    `HloProto` and `HloSnapshot` have the module there.
    """
    for _ in range(_MESSAGES):
        yield data
        size, at = _varint(data, 1)
        if data[:1] != b"\x0a" or not size or at + size > len(data):
            return
        data = data[at : at + size]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the varint at `at` and the position after it; the number is 0 if the bytes end first or it is too long."""
    value = 0
    # A length has 32 bits: five bytes of seven.
    for shift in range(0, 35, 7):
        if at >= len(data):
            break
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
    return 0, at


def mlir_text(data: bytes) -> str:
    """Return MLIR bytecode (StableHLO or a portable artifact) as text with locations; raise ValueError if damaged."""
    with _context():
        module: Any = _read(_jaxlib("mlir.ir").Module.parse, data)
        if "!vhlo." in str(module)[:100_000]:  # a portable artifact, in the dialect that versions are kept in
            module = _artifact(data)
        text: str = module.operation.get_asm(enable_debug_info=True, large_elements_limit=64)
        return text


def printed_hlo(text: bytes) -> str:
    """Return HLO text as XLA prints it; raise ValueError if XLA's parser refuses it."""
    hlo = _jaxlib("_hlo")
    options = hlo.HloPrintOptions()
    options.print_large_constants = b"{...}" not in text  # else XLA would make numbers up
    try:
        printed: str = hlo.hlo_module_from_text(text.decode()).to_string(options)
    except Exception as error:  # XLA's own
        raise ValueError(_refusal(error, "XLA")) from error
    return _INSIDE.sub(" ", printed)


def printed_mlir(text: bytes) -> str:
    """Return MLIR text as MLIR prints it; raise ValueError if MLIR's parser refuses it."""
    with _context() as context:
        context.allow_unregistered_dialects = True
        try:
            module: Any = _jaxlib("mlir.ir").Module.parse(text.decode())
        except Exception as error:  # MLIR's own
            raise ValueError(_refusal(error, "MLIR")) from error
        printed: str = module.operation.get_asm(enable_debug_info=b" loc(" in text)
        return _SPARSE.sub(r"<{ \1 }>", printed)


def _refusal(error: Exception, whose: str) -> str:
    place = re.search(r"(\d+):\d+: (?:error: )?(.*)", str(error))
    reason = f"of line {place[1]}: {place[2]}" if place else str(error).partition("\n")[0]
    return f"{whose}'s parser says {re.sub('[^ -~]', '?', reason):.200}"  # words of the text may be in it


def called_targets(artifact: bytes) -> str:
    """Return the targets of the custom calls in a portable StableHLO artifact, sorted, one quoted target per line.

    Raises ValueError for bytes that are no artifact, and for an operation that JAX doesn't export.
    """
    targets: set[str] = set()
    with _context():
        module = _artifact(artifact)  # its operations are gone with it
        todo: list[Any] = [module.operation]
        while todo:
            operation = todo.pop()
            if not operation.name.startswith(_DIALECTS):
                raise ValueError(f"it has the operation {operation.name!r:.80}, which JAX doesn't export")
            if operation.name.endswith(".custom_call"):
                targets.add(str(operation.attributes["call_target_name"].value))
            todo += [each.operation for region in operation.regions for block in region for each in block]
    return "".join(f"{target!r}\n" for target in sorted(targets))


def _context() -> Any:
    """Return a new MLIR context with the dialects of `jax.interpreters.mlir.make_ir_context`, without importing JAX."""
    ir = _jaxlib("mlir.ir")
    context = ir.Context()
    registry = ir.DialectRegistry()
    _jaxlib("mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in ("sdy", "chlo", "stablehlo"):
        _jaxlib(f"mlir.dialects.{dialect}").register_dialect(context)
    return context


def _artifact(data: bytes) -> Any:
    context = _jaxlib("mlir.ir").Context.current
    stablehlo = _jaxlib("mlir.dialects.stablehlo")
    return _read(lambda data: stablehlo.deserialize_portable_artifact(context, data), data)


def _jaxlib(module: str) -> Any:
    return import_module(f"jaxlib.{module}")


def _read(reader: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        return reader(data)
    except Exception as error:  # MLIR's own
        reason = (str(error).partition("error: ")[2] or str(error)).partition("\n")[0].removeprefix('"-":0:0: ')
        raise ValueError(reason) from error


READERS: dict[str, Callable[[bytes], str]] = {
    each.__name__: each for each in (hlo_text, mlir_text, called_targets, printed_hlo, printed_mlir)
}


def main(name: str) -> None:
    """Run the reader `name` on standard input; write `ok` and the text, or `no` and the reason."""
    data = sys.stdin.buffer.read()
    _limit_processor_seconds(_SECONDS + len(data) // _BYTES_IN_A_SECOND)
    try:
        # Any other error ends the process; the parent process then shows the end of its traceback.
        answer = "ok" + READERS[name](data)
    except (ValueError, ImportError, AttributeError) as error:
        answer = f"no{error}"
    sys.stdout.buffer.write(answer.encode("utf-8", "surrogatepass"))


def _limit_processor_seconds(seconds: int) -> None:
    """End the process with SIGXCPU after so many seconds of processors: MLIR reads some damaged bytes for minutes."""
    try:
        import resource
    except ImportError:  # pragma: no cover - on Windows only the parent's patience ends it
        return
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = seconds if hard == resource.RLIM_INFINITY else min(seconds, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


if __name__ == "__main__":
    sys.path[:] = sys.argv[2].split("\n")  # the parent process's path to jaxlib
    main(sys.argv[1])
