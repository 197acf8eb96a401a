"""An executable as a file, and back: its description in JSON, with StableHLO, constants and native code."""

from __future__ import annotations

import inspect
import os
import platform
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from hashlib import blake2b
from importlib.metadata import version
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any, cast, get_args

import jax
import numpy as np
from jax import export

from explorer._jax.dispatch import with_fast_path
from explorer._jax.native import Native, load_native, native_code
from explorer.aot.arguments import Parameter, is_input, parameter_of
from explorer.aot.binaries import Binaries, Binary, Plan
from explorer.aot.encoding import ConstantMembers, join, shared_reader, tree_from_json, tree_to_json
from explorer.aot.exported import ExportedProgram, Part, parts_of
from explorer.aot.inputs import Bounds, DimensionInputInfo, InputInfo, OutputInfo, dtype_named
from explorer.aot.levels import check_saved
from explorer.aot.padded_calls import PaddedCalls
from explorer.aot.program import Outputs
from explorer.aot.symbols import Symbols, sizes_text
from explorer.aot.verdict import Buckets, Dynamic, PaddedProgram, SavedBucket
from explorer.capture.backends import environment
from explorer.capture.readers.hlo import read_hlo
from explorer.errors import ArchiveError, TracedPerShapeWarning
from explorer.files.container import boolean, integer, text, texts
from explorer.files.disk import read_text
from explorer.files.executable_archive import read_archive, write_archive
from explorer.model.capture import Capture
from explorer.model.results.dynamic_report import DynamicChoice, Specialization
from explorer.model.stage import Durations, Stage
from explorer.padding.interpreter import Fill
from explorer.padding.program import Proof

Json = dict[str, Any]

# Marks native code whose constants are stored separately. Older releases skip such code: the machine differs to them.
_SPLIT = "without constants"

_KINDS = {
    kind.name: kind
    for kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    )
}


def save(
    path: str | PathLike[str],
    plan: Plan,
    binaries: Binaries,
    padded: PaddedCalls | None,
    capture: Capture,
    *,
    platforms: Sequence[str] | None,
    native: bool,
    derivatives: int,
) -> None:
    """Write an executable's parts; see `Executable.save`."""
    program = plan.program
    if isinstance(program, ExportedProgram):
        parts, why_each_shape = program.parts, program.why_each_shape
    else:
        # The shape to optimize for comes first: its outputs describe the whole, and loading compiles it.
        opt = program.symbols.opt
        kept = [opt, *(sizes for sizes, _ in binaries.by_sizes if sizes != opt)]
        parts, why_each_shape = parts_of(program, kept, platforms, derivatives)
    if why_each_shape:
        how = "each shape was traced separately" if program.why_each_shape else why_each_shape
        _warn_of_missing(program.name, program.symbols, [part.sizes for part in parts], how)
    file = ConstantMembers({})
    about = _described(plan, capture, parts, why_each_shape, file)
    compiled = binaries.by_sizes if native else []
    about["native"] = _natives_to_json("native", compiled, binaries.compile, file)
    if padded is not None and plan.padded is not None:
        about["padding"] = padding_to_json(plan.dynamic, plan.padded, padded, platforms, file)
        compiled = [(padded.buckets.named(each.bucket), each.binary) for each in padded.ready] if native else []
        recompile = partial(binaries.compile_padded, plan.padded)
        about["padding"]["native"] = _natives_to_json("padded", compiled, recompile, file)
    if any("constants" in each for each in (*about["native"], *about.get("padding", {"native": ()})["native"])):
        about["machine"]["native"] = _SPLIT
    write_archive(path, about, file.members)


def _described(plan: Plan, capture: Capture, parts: Sequence[Part], why_each_shape: str, file: ConstantMembers) -> Json:
    """Return a description in JSON of all but binaries and padding; the programs become members of `file`."""
    program = plan.program
    return {
        "function": {"name": program.name, "file": capture.file, "line": capture.line},
        "parameters": [
            {
                "name": parameter.name,
                "kind": parameter.kind.name,
                "tree": tree_to_json(parameter.structure),
                "inputs": [[i, info.to_json()] for i, info in zip(parameter.positions, parameter.infos, strict=True)],
                "is_whole": parameter.is_whole,
            }
            for parameter in plan.parameters
        ],
        "options": dict(plan.options),
        "donated": list(plan.donated),
        "limit": plan.limit,
        "why_each_shape": why_each_shape,
        "why_apart": program.why_apart,
        "least": dict(program.symbols.least),
        "parts": [
            {
                "sizes": dict(part.sizes),
                **_store(part, f"program-{i}.stablehlo", file),
                "tree": tree_to_json(part.outputs.structure),
                "outputs": [[name, list(info.shape), str(info.dtype)] for name, info in part.outputs.infos.items()],
            }
            for i, part in enumerate(parts)
        ],
        "machine": dict(_machine()),
    }


def _warn_of_missing(name: str, symbols: Symbols, there: Sequence[Mapping[str, int]], why: str) -> None:
    # If each shape is traced separately, the file has only the shapes that were called.
    bounds = symbols.bounds
    if len(there) < prod(each.max - each.min + 1 for each in bounds.values()):
        sizes = "; ".join(map(sizes_text, there))
        within = ", ".join(f"{each.min} ≤ {symbol} ≤ {each.max}" for symbol, each in bounds.items())
        warnings.warn(
            f"the file of {name} has programs for these sizes alone: {sizes}.\n"
            f"  Of {within}, a loaded one refuses the others: {why.rstrip('.')}.\n"
            "  Hint: call it once with every size that is needed, and save it then.",
            TracedPerShapeWarning,
            # The line that calls `Executable.save`.
            stacklevel=4,
        )


def load(
    path: str | PathLike[str], *, trust_native_code: bool, types: Sequence[type]
) -> tuple[Plan, list[tuple[dict[str, int], Binary]], list[tuple[dict[str, int], Binary]]]:
    """Return a file's plan, and the binaries and padded binaries as pairs `(sizes, binary)`; see `Executable.load`.

    Both lists are empty unless native code is trusted and was made for this machine.
    """
    archive = read_archive(path)
    ready: list[tuple[dict[str, int], Binary]] = []
    padded: list[tuple[dict[str, int], Binary]] = []
    try:
        plan = _plan(archive.about, archive.members, types, trust_native_code)
        made_for = dict(archive.about["machine"])
        is_readable = made_for.pop("native", _SPLIT) == _SPLIT
        if trust_native_code and is_readable and made_for == _machine():
            # If the code calls an extension that isn't loaded, compiling the program gives the better error.
            with suppress(cast(type[Exception], jax.errors.JaxRuntimeError)):
                ready = [_native_from_json(encoded, plan, archive.members) for encoded in archive.about["native"]]
                if plan.padded is not None:
                    natives = archive.about["padding"]["native"]
                    padded = [_native_from_json(encoded, plan, archive.members, plan.padded) for encoded in natives]
    # A damaged file may have anything in any place.
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        if isinstance(error, ArchiveError):
            raise
        raise ArchiveError(f"{Path(path).name} is no executable: {type(error).__name__}: {error!s:.300}.") from error
    return plan, ready, padded


@cache
def _machine() -> Json:
    """Return the properties that native code was compiled for. It is used only if all of them are the same."""
    device = _device()
    try:
        processor = read_text("/proc/cpuinfo", errors="replace")
        flags = re.findall(r"^(?:flags|Features)\s*: (.*)$", processor, re.MULTILINE)[:1]
    except OSError:  # not Linux
        flags = [platform.processor()]
    return {
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "platform": f"{device.platform} {device.client.platform_version}",
        "device": device.device_kind,
        "machine": f"{platform.machine()} {blake2b(' '.join(flags).encode(), digest_size=8).hexdigest()}",
        "flags": os.environ.get("XLA_FLAGS", ""),
        "x64": jax.dtypes.canonicalize_dtype(int) == np.int64,  # making an array to see its dtype would compile
    }


def _device() -> Any:
    return cast(list[Any], jax.devices())[0]


def _natives_to_json(
    prefix: str,
    compiled: Sequence[tuple[Mapping[str, int], Binary]],
    recompile: Callable[[Mapping[str, int], str], Binary],
    file: ConstantMembers,
) -> list[Json]:
    """Return a description of each binary in JSON; its native code becomes a member of `file`."""
    described: list[Json] = []
    for i, (sizes, binary) in enumerate(compiled):
        native = native_code(binary.compiled)
        if isinstance(native, str) and "serializ" in native:
            # XLA can't serialize a sort's comparison after it has run, but it can right after the compile.
            native = native_code(recompile(sizes, "saved").compiled)
        if isinstance(native, str):
            raise ArchiveError(
                f"{binary.capture.function} has no native code that can be saved: {native}.\n"
                "  Hint: leave out native=True: it is then compiled when it is loaded."
            )
        member = f"{prefix}-{i}.bin"
        file.members[member], cuts = file.split(native.code)
        described.append(
            {
                "member": member,
                **({"constants": cuts, "size": len(native.code)} if cuts else {}),
                "sizes": dict(sizes),
                "seconds": binary.specialization.seconds,
                "name": native.name,
                "inputs": _structs_to_json(native.inputs),
                "outputs": _structs_to_json(native.outputs),
                "kept": list(native.kept),
                "donated": list(native.donated),
                "committed": native.committed,
            }
        )
    return described


def _native_from_json(
    encoded: Json, plan: Plan, members: Mapping[str, bytes], padded: PaddedProgram | None = None
) -> tuple[dict[str, int], Binary]:
    """Return the sizes of a binary, and the binary from its native code. Its capture has only the HLO."""
    program = cast(ExportedProgram, plan.program)
    sizes = {symbol: int(encoded["sizes"][symbol]) for symbol in program.symbols.bounds}
    code = members[encoded["member"]]
    native = Native(
        join(code, encoded["constants"], members, integer(encoded["size"])) if "constants" in encoded else code,
        str(encoded["name"]),
        _structs(encoded["inputs"]),
        _structs(encoded["outputs"]),
        tuple(encoded["kept"]),
        tuple(encoded["donated"]),
        bool(encoded["committed"]),
    )
    binaries = Binaries(plan, lambda: None)
    if padded is None:
        arguments, structure = binaries.arguments(program.symbols.structs(sizes)), program.outputs_at(sizes).structure
    else:
        arguments, structure = binaries.padded_arguments(sizes), padded.structure
    compiled = load_native(native, arguments, structure, _device())

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
    inspect.Signature([inspect.Parameter(p.name, p.kind) for p in parameters])  # raises ValueError if it is invalid
    read = shared_reader(members)
    parts = [_part_from_json(encoded, members, read, types) for encoded in about["parts"]]
    function = about["function"]
    program = ExportedProgram(
        str(function["name"]),
        str(function["file"]),
        int(function["line"]),
        _symbols(parameters, about.get("least", {})),  # 0.1.0 had no `least`
        parts,
        str(about["why_each_shape"]),
        str(about.get("why_apart", "")),
        is_trusted,
        str(about["machine"]["jax"]),
    )
    limit = integer(about["limit"])
    if not 1 <= limit < 2**31:
        raise ValueError(f"it keeps {limit} binaries")
    dynamic, padded = Dynamic(why="the file has no padded binary"), None
    if "padding" in about:
        dynamic, padded = padding_from_json(about["padding"], program, members, read)
    donated = tuple(texts(about["donated"]))
    return Plan(parameters, program, check_saved(about["options"]), donated, limit, dynamic, padded)


def _symbols(parameters: Sequence[Parameter], encoded: Json) -> Symbols:
    symbols = Symbols({name: info for p in parameters for name, info in zip(p.names, p.infos, strict=True)})
    least = {symbol: integer(size) for symbol, size in encoded.items()}
    if any(not symbols.least[symbol] <= size <= max(1, symbols.bounds[symbol].max) for symbol, size in least.items()):
        raise ValueError(f"{least} aren't the smallest sizes")
    symbols.least |= least
    return symbols


def _parameter_from_json(encoded: Json, types: Sequence[type]) -> Parameter:
    tree = tree_from_json(encoded["tree"], types)
    leaves: list[Any] = [0] * tree.num_leaves  # placeholders of constants
    for position, info in encoded["inputs"]:
        leaves[position] = (DimensionInputInfo if "value" in info else InputInfo).from_json(info)
    parameter = parameter_of(encoded["name"], _KINDS[encoded["kind"]], jax.tree.unflatten(tree, leaves))
    if len(parameter.infos) != len(encoded["inputs"]) or not all(map(is_input, parameter.infos)):
        raise ValueError(f"the inputs of `{encoded['name']}` do not fit its tree")
    return parameter


def _store(program: Part | SavedBucket, member: str, file: ConstantMembers) -> Json:
    file.members[member] = program.module()
    return {"module": member, "constants": [file.to_json(constant) for constant in program.constants()]}


def _stored(
    encoded: Json, members: Mapping[str, bytes], read: Callable[[Json], Any]
) -> tuple[Callable[[], bytes], Callable[[], list[Any]]]:
    """Return two functions that read a stored program when they are called: its module's bytes, and the list of its
    constants.
    """
    return lambda: members[encoded["module"]], lambda: [read(entry) for entry in encoded["constants"]]


def _part_from_json(
    encoded: Json, members: Mapping[str, bytes], read: Callable[[Json], Any], types: Sequence[type]
) -> Part:
    infos = {name: OutputInfo(tuple(shape), dtype_named(dtype)) for name, shape, dtype in encoded["outputs"]}
    tree = tree_from_json(encoded["tree"], types)
    if tree.num_leaves != len(infos):
        raise ValueError("the outputs don't fit their tree")
    sizes = {str(symbol): int(size) for symbol, size in cast(Json, encoded["sizes"]).items()}
    return Part(sizes, *_stored(encoded, members, read), Outputs(tree, infos))


_MAX_BUCKETS = 1024  # in a file


def padding_to_json(
    dynamic: Dynamic,
    program: PaddedProgram,
    padded: PaddedCalls,
    platforms: Sequence[str] | None,
    file: ConstantMembers,
) -> Json:
    """Return the padding decision in JSON; its programs, compiled or from a file, become members of `file`."""
    compiled = [padded.buckets.named(binary.bucket) for binary in padded.ready]
    programs = [
        {"bucket": bucket, **_store(program.save(bucket, platforms), f"padded-{i}.stablehlo", file)}
        for i, bucket in enumerate(compiled if program.buckets is None else program.buckets)
    ]
    return {
        "choice": dynamic.choice,
        "why": dynamic.why,
        "is_chosen": padded.buckets.is_chosen,
        "rules": dict(dynamic.proof.rules),
        "masks": dynamic.proof.masks,
        "relayouts": dynamic.proof.relayouts,
        "fills": [None if fill is None else repr(fill) for fill in program.fills],
        "programs": programs,
    }


def padding_from_json(
    encoded: Json,
    program: ExportedProgram,
    members: Mapping[str, bytes],
    read_constant: Callable[[Json], Any],
) -> tuple[Dynamic, PaddedProgram]:
    """Return the decision and padded program from `padding_to_json`; each bucket's is read when it is first needed."""
    bounds = program.symbols.traced_bounds
    saved = [_saved_bucket(entry, bounds, members, read_constant) for entry in encoded["programs"]]
    largest = {symbol: its.max for symbol, its in bounds.items()}
    if not 0 < len(saved) <= _MAX_BUCKETS or largest not in [bucket for bucket, _ in saved]:
        raise ValueError("the largest bucket isn't there")
    ladder = {symbol: sorted({bucket[symbol] for bucket, _ in saved}) for symbol in bounds}
    choice: DynamicChoice = encoded["choice"]
    if choice not in get_args(DynamicChoice):
        raise ValueError(f"{choice!r} is no way to serve sizes")
    rules = {text(name): integer(count) for name, count in cast(Json, encoded["rules"]).items()}
    fills = [None if fill is None else _fill(text(fill)) for fill in encoded.get("fills", ())]
    proof = Proof((), rules, integer(encoded["masks"]), integer(encoded["relayouts"]), tuple(bounds), tuple(fills))
    buckets = Buckets(bounds, ladder, boolean(encoded["is_chosen"]))
    outputs = program.outputs
    structs = [jax.ShapeDtypeStruct(_shape(info.shape), info.dtype) for info in outputs.infos.values()]
    return (
        Dynamic(choice, text(encoded["why"]), buckets, proof),
        PaddedProgram.of_file(structs, outputs.structure, saved, cache(program.read_module), fills),
    )


def _saved_bucket(
    entry: Json, bounds: Mapping[str, Bounds], members: Mapping[str, bytes], read_constant: Callable[[Json], Any]
) -> tuple[dict[str, int], SavedBucket]:
    sizes = {symbol: integer(entry["bucket"][symbol]) for symbol in bounds}
    if any(not 1 <= size <= bounds[symbol].max for symbol, size in sizes.items()):
        raise ValueError(f"{sizes} is no bucket")
    return sizes, SavedBucket(*_stored(entry, members, read_constant))


def _fill(number: str) -> Fill:
    """Return a number from its `repr`, which is used because JSON has no infinity."""
    for kind in (int, float, complex):
        with suppress(ValueError):
            return kind(number)
    return boolean({"True": True, "False": False}[number])


def _shape(shape: Sequence[int | str]) -> tuple[Any, ...]:
    """Return sizes and expressions, `("batch", "2*seq")`, as JAX's symbolic dimensions."""
    return tuple(export.symbolic_shape(",".join(map(str, shape)))) if shape else ()
