"""For each format a few hundred files, made by hand or by seed."""

from __future__ import annotations

import base64
import gzip
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import jax
import numpy as np

import explorer as ex
from explorer.files import results
from explorer.files.container import VERSION, Blobs
from explorer.files.executable_archive import read_archive, write_archive
from tests.corpus_hostile import texts
from tests.corpus_hostile.mutations import (
    ESCAPE,
    KNOWN,
    MARKUP,
    OUTSIDE,
    SECRET,
    SEEDS,
    VALUES,
    Case,
    dumps,
    mutated,
    with_suffix,
)
from tests.support.functions import FUNCTIONS, compiled_text

SUFFIXES = (MARKUP, ESCAPE, "javascript:hacked=1", "\u202e\u2028")
SAVED = Path(__file__).parents[1] / "support" / "saved_0_1_0"


# Captures -------------------------------------------------------------------------------------------------------------


def wire(header: bytes, blobs: bytes, claimed: int | None = None) -> bytes:
    """A container whose checksum fits, whatever is in it."""
    header += b" " * (-(4 + len(header)) % 4)
    return wire_of(struct.pack("<I", len(header)) + header + blobs, claimed)


def wire_of(raw: bytes, claimed: int | None = None) -> bytes:
    payload = gzip.compress(raw, 6, mtime=0)
    digest = blake2b(payload, digest_size=16).digest()
    size = len(raw) if claimed is None else claimed
    return struct.pack("<8sIQQ16s", b"EXPLORER", VERSION, size, len(payload), digest) + payload


@cache
def capture_parts(name: str = "chain") -> tuple[dict[str, Any], bytes]:
    capture = ex.explore(*FUNCTIONS[name])
    assert len(capture.passes)
    raw = gzip.decompress(capture.wire[44:])
    (size,) = struct.unpack_from("<I", raw)
    return json.loads(raw[4 : 4 + size]), raw[4 + size :]


def columns(header: Any, way: str = "") -> Iterator[tuple[dict[str, Any], str, str]]:
    """Each place of a column: its owner, its name, and the way there."""
    if isinstance(header, dict):
        for name, value in header.items():
            if isinstance(value, list) and len(value) == 2 and all(type(each) is int for each in value):
                yield header, name, f"{way}.{name}"
            else:
                yield from columns(value, f"{way}.{name}")
    elif isinstance(header, list):
        for i, value in enumerate(header):
            if isinstance(value, dict):
                yield from columns(value, f"{way}.{i}")


def with_column(seed: int) -> Case:
    """A capture one of whose columns of numbers is another one: out of range, in a circle, longer, shorter."""
    chance = Random(seed)
    header, old = json.loads(json.dumps(capture_parts()[0])), capture_parts()[1]
    owner, name, way = chance.choice([each for each in columns(header) if each[1] not in ("text", "lines")])
    offset, size = owner[name]
    planes = np.frombuffer(old[offset : offset + size // 4 * 4], np.uint8).reshape(4, -1)
    zigzag = np.ascontiguousarray(planes.T).view("<u4").ravel()
    values = np.cumsum((zigzag >> 1).astype(np.int32) ^ -(zigzag & 1).astype(np.int32), dtype=np.int32)
    kind = chance.choice(("own index", "next index", "one", "all", "reversed", "longer", "shorter", "huge", "odd"))
    match kind:
        case "own index":
            values = np.arange(len(values), dtype=np.int32)
        case "next index":
            values = (np.arange(len(values), dtype=np.int32) + 1) % max(len(values), 1)
        case "one" if len(values):
            values = values.copy()
            values[chance.randrange(len(values))] = chance.choice((-2, -1, 0, 1, 10**6, 2**31 - 1, -(2**31)))
        case "all":
            values = np.full(len(values), chance.choice((-1, 0, 1, 2**31 - 1)), np.int32)
        case "reversed":
            values = values[::-1]
        case "longer":
            values = np.concatenate([values, values, values[:1]])
        case "huge":
            values = np.resize(values if len(values) else np.zeros(1, np.int32), 1_000_000)
        case _:
            values = values[: len(values) // 2]
    blobs = Blobs()
    place = blobs.column(values)
    owner[name] = [len(old) + place[0], place[1] - (kind == "odd")]
    return f"{kind} {way}", wire(dumps(header), old + b"".join(blobs.parts))


def one_capture(seed: int) -> Case:
    if seed % 2:
        return with_column(seed)
    header, blobs = capture_parts()
    changed, done = mutated(header, Random(seed))
    return done, wire(dumps(changed), blobs)


def captures() -> Iterator[Case]:
    header, blobs = capture_parts()
    yield "as it was", wire(dumps(header), blobs)
    stages = [stage["name"] for stage in header["stages"]]
    for suffix in SUFFIXES:
        changed = with_suffix(header, suffix)
        for stage, name in zip(changed["stages"], stages, strict=True):
            stage["name"] = name
        yield f"{suffix!r} after each text", wire(dumps(changed), blobs)
    yield from map(one_capture, range(SEEDS))
    zeros = bytes(64 * 2**20)
    yield "bomb", wire_of(bytes(2**30))
    yield "bomb that claims little", wire_of(zeros, 1000)
    yield "bomb that claims more than any memory", wire_of(b"", 2**63)
    yield "bomb in a header", wire(b"[" + b"[]," * 15_000_000 + b"[]]", b"")
    yield "wide header", wire(b"[" + b"{}," * 4_000_000 + b"{}]", b"")
    yield "header beyond the end", wire_of(struct.pack("<I", 2**32 - 1) + b"{}")
    yield "no header", wire_of(b"")
    for value in VALUES:
        yield f"header is {value!r:.40}", wire(dumps(value), blobs)
    many = json.loads(json.dumps(header))
    many["stages"] = many["stages"] * 2000
    yield "thousands of stages", wire(dumps(many), blobs)
    again = json.loads(json.dumps(header))
    place = [len(blobs), 4 * 10**6]
    again["stages"][-1]["measures"] = {f"m{i}": place for i in range(20_000)}
    yield "one column under many names", wire(dumps(again), blobs + bytes(4 * 10**6))
    yield "stacks as deep as the table", wire(*_with_frames(header, blobs, 200_000))
    yield "snapshots without end", wire(*_with_snapshots(header, blobs, 400_000))


def _with_frames(header: dict[str, Any], old: bytes, count: int) -> tuple[bytes, bytes]:
    header, blobs = json.loads(json.dumps(header)), Blobs()
    frames = header["stages"][-1]["frames"]
    for name, table in frames.items():
        values = np.arange(-1, count - 1) if name == "parent" else np.zeros(count, np.int32)
        offset, size = blobs.column(values.astype(np.int32))
        if name in ("file", "function"):
            table["codes"] = [len(old) + offset, size]
        else:
            frames[name] = [len(old) + offset, size]
    return dumps(header), old + b"".join(blobs.parts)


def _with_snapshots(header: dict[str, Any], old: bytes, count: int) -> tuple[bytes, bytes]:
    """Each takes the whole one before it, of as many lines as there are."""
    header, blobs = json.loads(json.dumps(header)), Blobs()
    passes = header["passes"]
    lines = 2_000
    runs = np.tile(np.asarray([0, lines], np.int32), count)
    runs[:2] = (-1, lines)
    for name, values in {
        "runs": runs,
        "run_counts": np.full(count, 2, np.int32),
        "firsts": np.asarray([0] + [lines] * (count - 1), np.int32),
    }.items():
        offset, size = blobs.column(values)
        passes[name] = [len(old) + offset, size]
    text = b"\n" * (lines - 1)
    passes["lines"] = [len(old) + blobs.size, len(text)]
    blobs.add(text)
    for name in ("key", "op", "type", "frame"):
        offset, size = blobs.column(np.full(lines, -1, np.int32))
        passes["columns"][name] = [len(old) + offset, size]
    offset, size = blobs.column(np.zeros(lines + 1, np.int32))
    passes["columns"]["operand_start"] = [len(old) + offset, size]
    offset, size = blobs.column(np.zeros(0, np.int32))
    passes["columns"]["operand"] = [len(old) + offset, size]
    passes.pop("equations", None)
    return dumps(header), old + b"".join(blobs.parts)


# Results --------------------------------------------------------------------------------------------------------------


def sealed(content: dict[str, Any]) -> bytes:
    """A result whose checksum fits."""
    content = {name: value for name, value in content.items() if name != "blake2b"}
    data = dumps(content)[:-1] + b',"blake2b":"'
    digest = blake2b(data[: -len(b',"blake2b":"')], digest_size=16).hexdigest().encode()
    return data + digest + b'"}'


@cache
def result_contents() -> tuple[dict[str, Any], ...]:
    function, *arguments = FUNCTIONS["chain"]
    made = (
        ex.time(function, *arguments, seconds=0.02),
        ex.profile(function, *arguments, seconds=0.02),
        ex.memory(function, *arguments),
        ex.Peaks("a machine", 10e9, {"f32": 1e11}, caches={32768: 3e11}),
    )
    return tuple(json.loads(results.encode(result)) for result in made)


def packed(data: bytes, size: int | None = None) -> dict[str, Any]:
    content = base64.b64encode(zlib.compress(data)).decode()
    return {"size": len(data) if size is None else size, "zlib": content}


def one_result(seed: int) -> Case:
    content = result_contents()[seed % len(result_contents())]
    if seed % 5 == 0:
        changed, done = mutated(content, Random(seed))
        changed |= {name: content[name] for name in ("explorer", "format", "kind") if seed % 2}
    else:
        value, done = mutated(content["value"], Random(seed))
        changed = {**content, "value": value}
    return f"{content['kind']}: {done}", sealed({"explorer": "result", **changed})


def result_files() -> Iterator[Case]:
    yield from map(one_result, range(SEEDS))
    yield from ((f"{content['kind']} as it was", sealed(content)) for content in result_contents())
    for content in result_contents():
        for suffix in SUFFIXES:
            value = with_suffix(content["value"], suffix)
            yield f"{content['kind']}: {suffix!r} after each text", sealed({**content, "value": value})
    timing, profile, *_ = result_contents()
    hostile = {**capture_parts()[0], "function": MARKUP}
    for size in (None, 10, 2**40, -1):
        yield f"bomb of a capture that says {size}", sealed({**profile, "captures": [packed(bytes(2**28), size)]})
    small = base64.b64encode(zlib.compress(wire_of(bytes(15 * 2**20)))).decode()
    many = [{"size": len(wire_of(bytes(15 * 2**20))), "zlib": small}] * 500
    yield "500 captures of 15 MB each", sealed({**profile, "captures": many})
    yield "a capture of another hand", sealed({**profile, "captures": [packed(wire(dumps(hostile), b""))]})
    yield "no checksum", dumps({name: value for name, value in timing.items() if name != "blake2b"})
    yield "another checksum", dumps(timing)
    yield "deep", b'{"explorer":"result",' + b'"value":' + b"[" * 10**6


# Ledgers --------------------------------------------------------------------------------------------------------------


@cache
def ledger_lines() -> tuple[Any, ...]:
    return tuple(json.loads(line) for line in (SAVED / "ledger.jsonl").read_text().splitlines())


def one_ledger(seed: int) -> Case:
    chance = Random(seed)
    changed, done = list(ledger_lines()), list[str]()
    for _ in range(chance.choice((1, 1, 2, 4))):
        i = chance.randrange(len(changed))
        match chance.choice(("line", "line", "line", "line", "swap", "delete", "again")):
            case "swap":
                k = chance.randrange(1, len(changed))
                changed[i], changed[k] = changed[k], changed[i]
            case "delete":
                del changed[i]
            case "again":
                changed[i:i] = [changed[i]] * 200
            case _:
                changed[i], what = mutated(changed[i], chance)
                done.append(f"{i + 1}: {what}")
    return "; ".join(done), b"\n".join(map(dumps, changed)) + b"\n"


def ledgers() -> Iterator[Case]:
    lines = list(ledger_lines())
    yield "as it was", b"\n".join(map(dumps, lines)) + b"\n"
    for suffix in SUFFIXES:
        changed = [lines[0], *(with_suffix(line, suffix) for line in lines[1:])]
        yield f"{suffix!r} after each text", b"\n".join(map(dumps, changed)) + b"\n"
    yield from map(one_ledger, range(SEEDS))
    head = b'{"explorer":"ledger","version":2}\n'
    leaf = '{"tree":{"kind":"leaf"}}'
    doubled = [leaf, *(_tree("tuple", i, i) for i in range(64))]
    yield "a tree of 2**64", head + "\n".join(doubled).encode() + b"\n"
    deep = [leaf, *(_tree("list", i) for i in range(100_000))]
    yield "a tree 100,000 deep", head + "\n".join(deep).encode() + b"\n"
    yield "a line of 20 MB", head + b'{"place":"' + b"x" * 20_000_000 + b'"}\n'
    yield "lists in lists", head + b"[" * 10**6 + b"\n"
    for value in VALUES:
        yield f"a line is {value!r:.40}", head + dumps(value) + b"\n"


def _tree(kind: str, *children: int) -> str:
    steps = ",".join(f'"[{i}]"' for i in range(len(children)))
    return f'{{"tree":{{"kind":"{kind}","steps":[{steps}],"children":[{",".join(map(str, children))}]}}}}'


# Executables ----------------------------------------------------------------------------------------------------------


@cache
def archive_parts() -> tuple[dict[str, Any], dict[str, bytes]]:
    # Large enough to be left out of the native code; the program for no rows has the same one.
    weights = np.random.default_rng(0).standard_normal((3, 6000), np.float32)
    executable = ex.compile(
        lambda x, scale: {"y": (x * scale).sum(0), "n": (x, x), "w": (x @ weights).sum()},
        args=[ex.InputInfo((ex.NamedDimension("rows", 0, 4, 8), 3), "float32"), ex.InputInfo((3,), "float32")],
    )
    with TemporaryDirectory() as folder:
        executable.save(Path(folder, "good"), native=True)
        archive = read_archive(Path(folder, "good"))
        return archive.about, dict(archive.members)


def archived(about: Any, members: Any) -> bytes:
    with TemporaryDirectory() as folder:
        write_archive(Path(folder, "made"), about, members)
        return Path(folder, "made").read_bytes()


def one_executable(seed: int) -> Case:
    about, members = archive_parts()
    changed, done = mutated(about, Random(seed))
    try:
        return done, archived(changed, members)
    except ex.errors.ArchiveError:  # what no JSON of this kind can say: NaN, a surrogate
        return f"{done}, as text", dumps(changed)


def executables() -> Iterator[Case]:
    """With valid checksums: the archive is written by who writes them, its content by another hand."""
    about, members = archive_parts()
    written = archived
    (constant,) = (name for name in members if name.startswith("constant"))
    assert [entry["member"] for part in about["parts"] for entry in part["constants"]] == [constant] * 2
    assert about["native"][0]["constants"]

    yield "as it was", written(about, members)
    yield from map(one_executable, range(SEEDS))
    options = (
        *({"xla_dump_to": OUTSIDE, "xla_dump_hlo_as_text": True}, {"xla_dump_hlo_pass_re": ".*"}),
        *({"xla_gpu_dump_autotune_results_to": OUTSIDE}, {"xla_gpu_cuda_data_dir": OUTSIDE}),
        *(
            {"xla_backend_extra_options": f"xla_dump_to={OUTSIDE}"},
            {"env_option_overrides": [["xla_dump_to", OUTSIDE]]},
        ),
        *({"xla_gpu_kernel_cache_file": OUTSIDE}, {"xla_embed_ir_in_executable": True}, {"": 1}),
        *({"xla_backend_optimization_level": value} for value in (99, -1, "3", True, 3.0, None, [], 2**70)),
    )
    for each in options:
        yield f"options {each!r:.60}", written({**about, "options": each}, members)
    program = next(name for name in members if name.endswith(".stablehlo"))
    yield "a constant that is a program", written(_with_constants(about, {"member": program}), members)
    yield "a constant that is none", written(_with_constants(about, {"member": "constant-9.bin"}), members)
    yield "a constant of other shape", written(_with_constants(about, {"shape": [6000, 4]}), members)
    yield "a constant of other type", written(_with_constants(about, {"dtype": "int32"}), members)
    yield "a constant that is keys", written(_with_constants(about, {"key": "threefry2x32"}), members)
    yield "a constant thousands of times", written(_with_constants(about, {}, 30_000), members)
    yield "a constant of another file", written(about, {**members, constant: bytes(len(members[constant]))})
    yield "a constant that is shorter", written(about, {**members, constant: members[constant][:-4]})
    for done, data in (_damaged(members[program], seed) for seed in range(60)):
        yield f"program, {done}", written(about, {**members, program: data})
    yield "a program of zeros", written(about, {**members, program: bytes(40 * 2**20)})
    yield "a pickle", written(about, {**members, program: b"cos\nsystem\n(S'touch hacked'\ntR."})
    function = {"name": MARKUP, "file": SECRET, "line": 1}
    yield "a function elsewhere", written({**about, "function": function}, members)
    yield from (("not an archive " + name, data) for name, data in _zips(written(about, members)))


def _with_constants(about: Any, entry: dict[str, Any], count: int = 1) -> Any:
    """The first program with other constants than its own."""
    first, *others = about["parts"]
    constants = [{**each, **entry} for each in first["constants"]] * count
    return {**about, "parts": [{**first, "constants": constants}, *others]}


def _zips(good: bytes) -> Iterator[Case]:
    for seed in range(20):
        chance, data = Random(seed), bytearray(good)
        for _ in range(3):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        yield f"bits, seed {seed}", bytes(data)


# Modules --------------------------------------------------------------------------------------------------------------


_WRITTEN = """HloModule conv
ENTRY e {
  a = f32[2,16,3] parameter(0)
  k = f32[4,3,5] parameter(1)
  c = f32[2,6,5] convolution(a, k), window={size=4 stride=2 pad=1_2 lhs_dilate=1 rhs_dilate=2}, dim_labels=b0f_0io->b0f
  d = f32[2,6,7] dot(c, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  w = f32[5,7] constant({...})
  s = (f32[2,6,7]) sort(d), dimensions={2}, to_apply=less
  g = f32[2,6,7]{2,1,0:T(8,128)} all-reduce(d), replica_groups={{0,1},{2,3}}, to_apply=less
  v = c64[2,16,3] fft(a), fft_type=FFT, fft_length={3}
  q = f32[4,4] custom-call(a), custom_call_target="lapack_sgetrf_ffi", backend_config={"n":{"a":1}}
  ROOT r = (f32[2,6,7], f32[2,6,7]) tuple(d, g)
}
"""


@cache
def module_texts() -> tuple[str, ...]:
    names = ("chain", "while", "solve", "sort", "gradient")
    mlir = jax.jit(FUNCTIONS["while"][0]).lower(*FUNCTIONS["while"][1:]).as_text()
    return (*(compiled_text(*FUNCTIONS[name]) for name in names), mlir, _WRITTEN, _WRITTEN, _WRITTEN)


def one_module(seed: int) -> Case:
    chance = Random(seed)
    text = chance.choice(module_texts())
    if chance.random() < 0.3:
        return texts.one_text(text, chance)
    lines = text.split("\n")
    names = [word for line in lines for word in line.replace(",", " ").split() if word.startswith("%")]
    done = list[str]()
    for _ in range(chance.choice((1, 2, 5, 20))):
        i = chance.randrange(len(lines))
        kind = chance.choice(("operand", "name", "type", "place", "frame", "double", "move", "calls"))
        done.append(f"{kind} {i + 1}")
        lines[i] = _altered(lines, i, kind, names, chance)
    return "; ".join(done), "\n".join(lines).encode()


def modules() -> Iterator[Case]:
    yield from map(one_module, range(SEEDS))
    good = module_texts()[0].encode()
    yield "as it was", good
    yield "gzip bomb", gzip.compress(good + b"\n" * 2**29)
    yield "gzip, damaged", gzip.compress(good)[:-9]
    place = f'metadata={{source_file="{SECRET}" source_line=1}}'
    yield "names a secret", _entry(f"  p = f32[] parameter(0), {place}")
    calls = "".join(f"c{i} {{\n  ROOT r = f32[] call(), to_apply=c{(i + 1) % 3000}\n}}\n" for i in range(3000))
    yield "computations in a circle", calls.encode() + _entry("  ROOT r = f32[] call(), to_apply=c0")
    operands = "\n".join(f"  x{i} = f32[] add(x{(i + 1) % 3000}, x{(i + 2) % 3000})" for i in range(3000))
    yield "operands in a circle", _entry(operands)
    yield "deep type", _entry("  p = " + "(" * 50_000 + "f32[]" + ")" * 50_000 + " parameter(0)")
    yield "huge dimensions", _entry("  p = f32[9999999999999,9999999999999,99999999] parameter(0)")


@cache
def binary_modules() -> tuple[bytes, bytes]:
    """MLIR's bytecode of StableHLO, and XLA's `HloModuleProto`."""
    function = jax.jit(FUNCTIONS["while"][0])
    compiled = function.lower(*FUNCTIONS["while"][1:]).compile()
    proto = compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto()
    return jax.export.export(function)(*FUNCTIONS["while"][1:]).mlir_module_serialized, proto


def _damaged(good: bytes, seed: int) -> Case:
    """Bytes of which a few are others, or the last are missing."""
    chance, data = Random(seed), bytearray(good)
    for _ in range(chance.choice((1, 3, 20))):
        data[chance.randrange(len(data))] = chance.randrange(256)
    del data[chance.choice((len(data), chance.randrange(len(data)))) :]
    return f"seed {seed}", bytes(data)


def one_binary(seed: int) -> Case:
    return _damaged(binary_modules()[seed % 2], seed)


def binaries() -> Iterator[Case]:
    yield from (("as it was", good) for good in binary_modules())
    yield from map(one_binary, range(SEEDS))


def _entry(lines: str) -> bytes:
    return f"ENTRY e {{\n{lines}\n}}\n".encode()


def _altered(lines: list[str], i: int, kind: str, names: list[str], chance: Random) -> str:
    line, other = lines[i], lines[chance.randrange(len(lines))]
    match kind:
        case "operand" if "(%" in line and names:
            return line.replace("(%", f"({chance.choice(names)}, %", 1)
        case "name" if " = " in line and names:
            return f"  {chance.choice(names)} = " + line.partition(" = ")[2]
        case "type":
            return line.replace("f32[", chance.choice(("f32[9999999999,", "bogus[", "(f32[", "f32[-1,", "f32[<=8,")), 1)
        case "place":
            return line + f', metadata={{op_name="{MARKUP}" source_file="{SECRET}" source_line=1}}'
        case "frame":
            return line.replace("=1", f"={chance.choice((0, -1, 99999, 2**40))}")
        case "calls":
            return line.replace("calls=%", "calls=%entry", 1).replace(
                "to_apply=%", f"to_apply={chance.choice(names or ['%x'])} ", 1
            )
        case "double":
            return "\n".join([line] * 50)
        case _:
            return other


# Findings -------------------------------------------------------------------------------------------------------------


@cache
def finding_contents() -> tuple[dict[str, Any], ...]:
    file = {
        "rule": "large-constant", "message": "a message", "severity": "warning", "file": SECRET, "line": 1,
        "text": KNOWN, "column": 0, "end_line": 9, "end_column": 99,
        "fix": {"text": "write it so"}, "documentation": "javascript:hacked=1",
    }  # fmt: skip
    good = json.loads(ex.explore(*FUNCTIONS["chain"]).findings.to_json()) | {"findings": []}
    report = ex.lint(lambda x: x.at[0].set(1.0) and x, np.ones(3, np.float32)).to_json()
    return json.loads(report), {**good, "findings": [file]}


def one_finding(seed: int) -> Case:
    changed, done = mutated(finding_contents()[seed % 2], Random(seed // 2))
    return done, dumps(changed)


def findings() -> Iterator[Case]:
    report, hostile = finding_contents()
    yield "as it was", dumps(report)
    for suffix in SUFFIXES:
        yield f"{suffix!r} after each text", dumps(with_suffix(report, suffix))
    yield "asks for the lines of a file", dumps(hostile)
    yield from map(one_finding, range(SEEDS))


ONE: dict[str, Callable[[int], Case]] = {
    "captures": one_capture,
    "results": one_result,
    "ledgers": one_ledger,
    "executables": one_executable,
    "modules": one_module,
    "binaries": one_binary,
    "dumps": one_module,
    "findings": one_finding,
    "signals": texts.one(texts.SIGNALS),
    "goldens": texts.one(texts.GOLDEN),
    "settings": texts.one(texts.SETTINGS),
    "logs": texts.one(texts.LOG),
    "queries": texts.one(texts.QUERIES),
}
FORMATS: dict[str, Callable[[], Iterator[Case]]] = {
    "captures": captures,
    "results": result_files,
    "ledgers": ledgers,
    "executables": executables,
    "modules": modules,
    "binaries": binaries,
    "dumps": modules,
    "findings": findings,
    "signals": texts.signals,
    "goldens": texts.goldens,
    "settings": texts.settings,
    "logs": texts.logs,
    "queries": texts.queries,
}
