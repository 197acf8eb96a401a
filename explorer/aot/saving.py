"""An executable as a file, and back: its description in JSON, beside StableHLO, constants and native code."""

from __future__ import annotations

import inspect
import os
import platform
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp

from explorer._jax import Native, load_native, native_code, with_fast_path
from explorer.aot.arguments import Parameter, is_input, parameter_of
from explorer.aot.arrays import array_from_bytes, array_to_bytes
from explorer.aot.binaries import Binaries, Binary, Plan
from explorer.aot.exported import ExportedProgram, Part, parts_of
from explorer.aot.inputs import DimensionInputInfo, InputInfo, OutputInfo, dtype_named
from explorer.aot.levels import check_saved
from explorer.aot.program import Outputs
from explorer.aot.symbols import Symbols
from explorer.aot.trees import tree_from_json, tree_to_json
from explorer.capture.explore import environment
from explorer.capture.readers.hlo import read_hlo
from explorer.errors import ArchiveError
from explorer.files.executable_archive import read_archive, write_archive
from explorer.files.validate import integer, texts
from explorer.model.capture import Capture
from explorer.model.compilation import Durations
from explorer.model.specialization import Specialization
from explorer.model.stage import Stage

if TYPE_CHECKING:
    from explorer.aot.executable import Executable

Json = dict[str, Any]

_KINDS = {
    kind.name: kind
    for kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    )
}


def save(
    executable: Executable,
    path: str | PathLike[str],
    *,
    platforms: Sequence[str] | None,
    native: bool,
    derivatives: int,
) -> None:
    """Write an executable; see `Executable.save`."""
    plan = executable.plan
    program = plan.program
    capture = executable.explore()
    if isinstance(program, ExportedProgram):
        parts = program.parts
    else:
        parts = parts_of(program, [sizes for sizes, _ in executable.binaries], platforms, derivatives)
    members: dict[str, bytes] = {}
    about: Json = {
        "function": {"name": program.name, "file": capture.file, "line": capture.line},
        "parameters": [_parameter_to_json(parameter) for parameter in plan.parameters],
        "options": dict(plan.options),
        "donated": list(plan.donated),
        "limit": plan.limit,
        "why_each_shape": program.why_each_shape,
        "parts": [_part_to_json(i, part, members) for i, part in enumerate(parts)],
        "machine": _machine(),
        "native": _native_to_json(executable, members) if native else [],
    }
    write_archive(path, about, members)


def load(
    kind: type[Executable], path: str | PathLike[str], *, trust_native_code: bool, types: Sequence[type]
) -> Executable:
    """Read an executable; see `Executable.load`."""
    archive = read_archive(path)
    try:
        plan = _plan(archive.about, archive.members, types, trust_native_code)
        ready: list[tuple[dict[str, int], Binary]] = []
        if trust_native_code and archive.about["machine"] == _machine():
            with suppress(
                cast(type[Exception], jax.errors.JaxRuntimeError)
            ):  # it calls an extension that isn't loaded: compiling tells
                ready = [_native_from_json(encoded, plan, archive.members) for encoded in archive.about["native"]]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        if isinstance(error, ArchiveError):
            raise
        raise ArchiveError(f"{Path(path).name} is no executable: {type(error).__name__}: {error}.") from error
    return kind(plan, ready)


@cache
def _machine() -> Json:
    """What native code was made for: it is used only where all of this is the same."""
    device = _device()
    try:
        flags = re.findall(r"^(?:flags|Features)\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[:1]
    except OSError:  # not Linux
        flags = [platform.processor()]
    return {
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "platform": f"{device.platform} {device.client.platform_version}",
        "device": device.device_kind,
        "machine": f"{platform.machine()} {blake2b(' '.join(flags).encode(), digest_size=8).hexdigest()}",
        "flags": os.environ.get("XLA_FLAGS", ""),
        "x64": jnp.zeros((), int).dtype == jnp.int64,
    }


def _device() -> Any:
    return cast(list[Any], jax.devices())[0]


def _native_to_json(executable: Executable, members: dict[str, bytes]) -> list[Json]:
    natives: list[Json] = []
    for i, (sizes, binary) in enumerate(executable.binaries):
        native = native_code(binary.compiled)
        if isinstance(native, str) and "serializ" in native:
            # XLA can't write a sort's comparison once it has run. One that was just compiled it can.
            native = native_code(executable.recompile(sizes))
        if isinstance(native, str):
            raise ArchiveError(
                f"{executable.__name__} has no native code that can be saved: {native}.\n"
                "  Hint: leave out native=True: it is then compiled when it is loaded."
            )
        name = f"native-{i}.bin"
        members[name] = native.code
        natives.append(
            {
                "member": name,
                "sizes": sizes,
                "seconds": binary.specialization.seconds,
                "name": native.name,
                "inputs": _structs_to_json(native.inputs),
                "outputs": _structs_to_json(native.outputs),
                "kept": list(native.kept),
                "donated": list(native.donated),
                "committed": native.committed,
            }
        )
    return natives


def _native_from_json(encoded: Json, plan: Plan, members: Mapping[str, bytes]) -> tuple[dict[str, int], Binary]:
    """A binary from its native code. Its capture has the HLO alone: nothing else was seen."""
    program = plan.program
    sizes = {symbol: int(encoded["sizes"][symbol]) for symbol in program.symbols.bounds}
    native = Native(
        members[encoded["member"]],
        str(encoded["name"]),
        _structs(encoded["inputs"]),
        _structs(encoded["outputs"]),
        tuple(encoded["kept"]),
        tuple(encoded["donated"]),
        bool(encoded["committed"]),
    )
    arguments = Binaries(plan, lambda: None).arguments(program.symbols.structs(sizes))
    compiled = load_native(native, arguments, program.outputs_at(sizes).structure, _device())

    def read() -> tuple[str, Any]:
        text = compiled.as_text()
        return text, read_hlo(text)

    code = program.function.__code__
    capture = Capture(
        function=program.name,
        file=code.co_filename,
        line=code.co_firstlineno,
        stages=(Stage("hlo", read),),
        durations=Durations(),
        environment=environment(),
    )
    specialization = Specialization(program.symbols.shapes(sizes), "native code from a file", 0.0, capture=capture)
    return sizes, Binary(with_fast_path(compiled), compiled, capture, specialization)


def _structs_to_json(structs: Sequence[jax.ShapeDtypeStruct]) -> list[Any]:
    return [[list(struct.shape), str(struct.dtype), struct.weak_type] for struct in structs]


def _structs(encoded: Sequence[Any]) -> tuple[jax.ShapeDtypeStruct, ...]:
    return tuple(
        jax.ShapeDtypeStruct(tuple(shape), dtype_named(dtype), weak_type=weak) for shape, dtype, weak in encoded
    )


def _plan(about: Json, members: Mapping[str, bytes], types: Sequence[type], is_trusted: bool) -> Plan:
    parameters = tuple(_parameter_from_json(encoded, types) for encoded in about["parameters"])
    inputs = {name: info for p in parameters for name, info in zip(p.names, p.infos, strict=True)}
    parts = [_part_from_json(encoded, members, types) for encoded in about["parts"]]
    function = about["function"]
    program = ExportedProgram(
        str(function["name"]),
        str(function["file"]),
        int(function["line"]),
        Symbols(inputs),
        parts,
        str(about["why_each_shape"]),
        is_trusted,
    )
    limit = integer(about["limit"])
    if not 1 <= limit < 2**31:
        raise ValueError(f"it keeps {limit} binaries")
    return Plan(parameters, program, check_saved(about["options"]), tuple(texts(about["donated"])), limit)


def _parameter_to_json(parameter: Parameter) -> Json:
    return {
        "name": parameter.name,
        "kind": parameter.kind.name,
        "tree": tree_to_json(parameter.structure),
        "inputs": [[i, info.to_json()] for i, info in zip(parameter.positions, parameter.infos, strict=True)],
        "is_whole": parameter.is_whole,
    }


def _parameter_from_json(encoded: Json, types: Sequence[type]) -> Parameter:
    tree = tree_from_json(encoded["tree"], types)
    leaves: list[Any] = [0] * tree.num_leaves  # what stands for a constant
    for position, info in encoded["inputs"]:
        leaves[position] = (DimensionInputInfo if "value" in info else InputInfo).from_json(info)
    parameter = parameter_of(encoded["name"], _KINDS[encoded["kind"]], jax.tree.unflatten(tree, leaves))
    if len(parameter.infos) != len(encoded["inputs"]) or not all(map(is_input, parameter.infos)):
        raise ValueError("an input stands twice in one place")
    return parameter


def _part_to_json(i: int, part: Part, members: dict[str, bytes]) -> Json:

    module = f"program-{i}.stablehlo"
    members[module] = part.module()
    constants: list[Json] = []
    for j, constant in enumerate(part.constants()):
        encoded, content = array_to_bytes(constant)
        name = f"program-{i}-constant-{j}.bin"
        members[name] = content
        constants.append({"member": name, **encoded})
    return {
        "sizes": dict(part.sizes),
        "module": module,
        "constants": constants,
        "tree": tree_to_json(part.outputs.structure),
        "outputs": [[name, list(info.shape), str(info.dtype)] for name, info in part.outputs.infos.items()],
    }


def _part_from_json(encoded: Json, members: Mapping[str, bytes], types: Sequence[type]) -> Part:

    def constants() -> list[Any]:
        return [array_from_bytes(entry, members[entry["member"]]) for entry in encoded["constants"]]

    infos = {name: OutputInfo(tuple(shape), dtype_named(dtype)) for name, shape, dtype in encoded["outputs"]}
    tree = tree_from_json(encoded["tree"], types)
    if tree.num_leaves != len(infos):
        raise ValueError("the outputs don't fit their tree")
    sizes = {str(symbol): int(size) for symbol, size in cast(Json, encoded["sizes"]).items()}
    return Part(sizes, lambda: members[encoded["module"]], constants, Outputs(tree, infos))
