"""Compiled programs as bytes and back, without pickle."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Any, cast

import jax

from explorer._jax import binary_reader
from explorer._jax.arguments import struct_of
from explorer._jax.dispatch import internals
from explorer.errors import OpenError


@dataclass(frozen=True)
class Native:
    """A compiled program as the runtime serializes it, without pickle, with what is needed to call it.

    The program takes only those of the `inputs` whose positions are in `kept`; a call may overwrite those that are
    `donated`; its results are on the device for good if `committed`.
    """

    code: bytes
    name: str
    inputs: tuple[jax.ShapeDtypeStruct, ...]
    outputs: tuple[jax.ShapeDtypeStruct, ...]
    kept: tuple[int, ...]
    donated: tuple[bool, ...]
    committed: bool


def native_code(compiled: Any) -> Native | str:
    """Return a `jax.stages.Compiled` as bytes with all that a call needs, or a text: why it can't be serialized.

    JAX's own serialize_executable pickles, and unpickling runs what it reads. So the fields are written one by one.
    """
    try:
        program = compiled._executable._unloaded_executable
        loaded = program.xla_executable
        obstacle = next((text for text, is_there in _obstacles(compiled, program) if is_there), None)
        if obstacle is not None:
            return obstacle
        return Native(
            loaded.client.serialize_executable(loaded) if hasattr(loaded, "client") else loaded.serialize(),
            program.name,
            tuple(map(struct_of, program.input_avals)),
            tuple(map(struct_of, program.output_avals)),
            tuple(sorted(program.kept_var_idx)),
            tuple(
                info.donated
                for info in jax.tree.leaves(compiled.args_info, is_leaf=lambda leaf: hasattr(leaf, "donated"))
            ),
            bool(program.committed),
        )
    except Exception as error:  # a runtime or a JAX without it
        return f"{type(error).__name__}: {error}"


def _obstacles(compiled: Any, program: Any) -> Iterator[tuple[str, bool]]:
    """Yield a sentence for each property that `load_native` can't restore, and True if the program has the property.

    Lazy, because a program on several devices may lack the later fields.
    """
    yield "it runs on several devices", len(program.device_list) != 1
    first = jax.sharding.SingleDeviceSharding(cast(list[Any], jax.devices())[0])
    placed = [*program.input_shardings, *program.output_shardings]
    text = "its arrays are on another device than the first, in another memory, or in a mesh"
    yield text, any(sharding != first for sharding in placed)
    effects = (program.keepalive, program.host_callbacks, program.ordered_effects, program.unordered_effects)
    yield "it calls back to the host", any(effects)
    has_more = program.mut is not None or bool(compiled._params.const_args) or any(program.dispatch_in_layouts)
    yield "it has mutable arrays, hoisted constants or layouts of its own", has_more


def load_native(native: Native, arguments: Any, out_tree: Any, device: Any) -> Any:
    """Return a `jax.stages.Compiled` from its bytes, field by field, as JAX's deserialize_and_load unpickles it."""
    if b"lapack_" in native.code:  # lowering does this otherwise; without it the code calls address 0
        internals.initialize_lapack()
    devices = internals.devices((device,))
    where = jax.sharding.SingleDeviceSharding(device)

    def avals(structs: Sequence[jax.ShapeDtypeStruct]) -> list[Any]:
        return [internals.aval(struct.shape, struct.dtype, weak_type=struct.weak_type) for struct in structs]

    inputs, outputs = avals(native.inputs), avals(native.outputs)
    fields: dict[str, Any] = {
        "xla_executable": device.client.deserialize_executable(native.code, executable_devices=devices),
        "device_list": devices,
        "backend": device.client,
        "input_avals": inputs,
        "input_shardings": [where] * len(inputs),
        "output_avals": outputs,
        "output_shardings": [where] * len(outputs),
        "committed": native.committed,
        "name": native.name,
        "unordered_effects": [],
        "ordered_effects": [],
        "keepalive": [],
        "host_callbacks": [],
        "kept_var_idx": set(native.kept),
        "mut": None,
        "xla_in_layouts": [None] * len(inputs),
        "dispatch_in_layouts": [None] * len(inputs),
        "xla_out_layouts": [None] * len(outputs),
        "all_args_info": None,
        "pgle_profiler": None,
    }
    executable = internals.executable(**fields).load()
    structs, tree = cast(tuple[list[Any], Any], jax.tree.flatten((arguments, {})))
    infos = [internals.argument(aval, donated) for aval, donated in zip(avals(structs), native.donated, strict=True)]
    return jax.stages.Compiled(executable, [], tree.unflatten(infos), out_tree, no_kwargs=True)


def physical_inputs(native: Native) -> list[jax.ShapeDtypeStruct]:
    """Return the shapes and dtypes of a program's inputs, a random key's being those of the integers that it wraps."""

    def physical(struct: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
        is_key = jax.numpy.issubdtype(struct.dtype, jax.dtypes.prng_key)
        return jax.eval_shape(jax.random.key_data, struct) if is_key else struct

    return [physical(struct) for struct in native.inputs]


def load_code(code: bytes) -> Callable[[Sequence[jax.Array]], None]:
    """Return a function that runs a serialized program on arrays, waits, and drops its results."""
    if b"lapack_" in code:
        internals.initialize_lapack()
    device = cast(Any, jax.devices()[0])
    executable = device.client.deserialize_executable(code, executable_devices=internals.devices((device,)))

    def run(arrays: Sequence[jax.Array]) -> None:
        results = executable.execute_sharded(list(arrays)).disassemble_into_single_device_arrays()
        jax.block_until_ready(results)

    return run


_XCPU = getattr(signal, "SIGXCPU", 24)  # the signal of a process that used up its seconds of processors
_PATIENCE = 300.0  # seconds for a file of hundreds of megabytes


def hlo_text(data: bytes) -> str:
    """Return the text of a serialized `HloModuleProto`, `HloProto` or `HloSnapshot`; raise OpenError for others."""
    try:
        return _read_apart("hlo_text", data)
    except ValueError as error:
        raise OpenError(f"these {len(data):,} bytes are not a serialized HLO module: {error}.") from error


def mlir_text(data: bytes) -> str:
    """Return MLIR bytecode as text with locations; raise OpenError if damaged, or newer than this JAX."""
    try:
        return _read_apart("mlir_text", data)
    except ValueError as error:
        raise OpenError(f"this MLIR bytecode can't be read: {error}.") from error


def printed_again(text: str, *, is_hlo: bool) -> str:
    """Return text as its compiler prints it; raise ValueError, with the line, if the parser refuses it."""
    return _read_apart("printed_hlo" if is_hlo else "printed_mlir", text.encode("utf-8", "replace"))


_MAX_KNOWN = 256
_known_targets: dict[bytes, frozenset[str]] = {}  # by digest: a second subprocess for the same program is wasted


def called_targets(artifact: bytes, *, is_own: bool = False) -> frozenset[str]:
    """Return the targets of an artifact's custom calls; raise ValueError if it can't be read.

    A subprocess reads it, unless this process wrote it (`is_own`).
    """
    digest = blake2b(artifact, digest_size=16).digest()
    if (targets := _known_targets.get(digest)) is None:
        read = binary_reader.called_targets(artifact) if is_own else _read_apart("called_targets", artifact)
        targets = frozenset(map(ast.literal_eval, read.splitlines()))
        if len(_known_targets) >= _MAX_KNOWN:
            _known_targets.clear()
        _known_targets[digest] = targets
    return targets


def _read_apart(reader: str, data: bytes) -> str:
    """Return the text of a `binary_reader` run in a subprocess; raise ValueError for its error or a crash."""
    # Isolated and without site: no code of the user's environment runs, so the paths are passed as text.
    command = [sys.executable, "-I", "-S", binary_reader.__file__, reader, "\n".join(filter(None, sys.path))]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=_PATIENCE, check=False)
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"reading it took more than {_PATIENCE:.0f} s") from error
    except OSError:  # no process may be started here: then the compiler's reader runs in this one
        return binary_reader.READERS[reader](data)
    answer = done.stdout.decode("utf-8", "surrogatepass")
    if done.returncode in (-_XCPU, 128 + _XCPU):
        raise ValueError("reading it took too long for its size")
    # Ended by a signal: negative from Python, 128 and its number from a shell in between.
    if done.returncode < 0 or done.returncode >= 128:
        raise ValueError("the compiler's own reader crashes on it")
    if done.returncode or answer[:2] not in ("ok", "no"):
        raise ValueError(f"its reader failed: {done.stderr.decode('utf-8', 'replace').strip()[-200:]}")
    if answer.startswith("no"):
        raise ValueError(answer[2:])
    return answer[2:]


@cache
def stable_targets() -> frozenset[str]:
    """Return the targets of custom calls that JAX exports by default; empty where unknown."""
    try:
        # Non-public: JAX checks what it exports against it, and doesn't check what it reads.
        from jax._src.export import _export  # pyright: ignore

        return frozenset(map(str, _export._CUSTOM_CALL_TARGETS_GUARANTEED_STABLE))  # pyright: ignore
    except (ImportError, AttributeError):  # pragma: no cover - every JAX we know has it
        return frozenset()
