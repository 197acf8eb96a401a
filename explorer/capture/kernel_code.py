"""The code of a program's kernels, from one more compilation that writes it to a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from explorer._jax.calls import suppress_recording
from explorer._jax.settings import nothing_cached
from explorer.analysis.kernel_costs import running_nodes
from explorer.analysis.least_time import GpuLimits, occupancy
from explorer.capture.backends import Backend
from explorer.capture.extract import operands_of
from explorer.capture.passes import dumps_in
from explorer.capture.readers import binaries
from explorer.capture.readers.hlo import read_hlo
from explorer.capture.recording import dump_place, settle
from explorer.errors import NotRecordedError
from explorer.files.disk import LARGEST_DUMP, read_bytes, read_text
from explorer.model.graph import Graph, Node
from explorer.model.machine_code import KernelCode, MachineCode
from explorer.model.stage import Stage
from explorer.model.text import install_hint

_EXECUTABLE = "executable"  # the file with what a GPU's compiler serializes
_TRITON = re.compile(r"\.(?P<kernel>[\w.\-]+)\.ttir\.txt$")
# 1795413926822760910-convolution_multiply_fusion-01-final_bundles.txt
_BUNDLES = re.compile(r"\d+-(?P<kernel>.+)-\d+-(?P<what>schedule-analysis_)?final_bundles\.txt")
_NOT_A_NAME = re.compile(r"[^\w]")
_NO_CAPSTONE = f"assembly: capstone, which disassembles it, is not installed ({install_hint('capstone', 'asm')})."
_BYTES_OF_INSTRUCTION = 16_000  # written per instruction
# Attributes without effect on the code: names and sources.
_NAMES = re.compile("metadata|calls|to_apply|backend_config|sharding|frontend_attributes|control-predecessors|root")


def code_writer(
    lowered: Any, hlo: Stage, backend: Backend, options: Mapping[str, Any] | None
) -> Callable[[], MachineCode]:
    """Return a function that compiles the lowered program once more for the code of the kernels of `hlo`."""

    def run() -> MachineCode:
        with suppress_recording():
            return _write_machine_code(lowered, hlo.graph, backend, options)

    return run


def _write_machine_code(lowered: Any, graph: Graph, backend: Backend, options: Mapping[str, Any] | None) -> MachineCode:
    """Return the code that one more compile writes; raise NotRecordedError if its program differs from `graph`."""
    place = dump_place(len(graph.names) * _BYTES_OF_INSTRUCTION) or None
    with TemporaryDirectory(prefix="explorer-code-", dir=place, ignore_cleanup_errors=True) as at:
        folder = Path(at)
        # This compile serves its dump alone: its binary isn't worth a place in JAX's persistent cache.
        with nothing_cached():
            compiled = backend.write_code(lowered, options, folder)
        settle(folder)
        again = read_hlo(compiled.text())
        if again.names != graph.names or not _have_equal_types(again, graph):
            raise NotRecordedError(
                "compiled once more for its code, the program differs: its kernels are not the capture's.\n"
                "  Hint: explore it again, and read `.machine_code` then."
            )
        return read_machine_code(folder, backend.environment()["backend"], graph, backend.gpu_limits)


def _have_equal_types(one: Graph, other: Graph) -> bool:
    pairs = ((one.op, one.ops, other.op, other.ops), (one.type, one.types, other.type, other.types))
    return all([a[i] for i in codes] == [b[i] for i in others] for codes, a, others, b in pairs)


@dataclass
class _Code:
    texts: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    facts: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])  # fields of `KernelCode`
    kernels: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    notes: list[str] = field(default_factory=list[str])

    def add(self, function: str, language: str, text: str, **facts: Any) -> None:
        self.texts.setdefault(function, {})[language] = text
        self.facts.setdefault(function, {}).update(facts)


def read_machine_code(folder: Path, platform: str, graph: Graph, limits: GpuLimits | None = None) -> MachineCode:
    """Return the code of the kernels of `graph`, from the compiler's output in `folder`; `limits` are of a GPU."""
    code = _Code()
    files = sorted(path for path in folder.iterdir() if path.is_file())
    if dumps := dumps_in(folder):  # the largest is the program; the others are constants and candidates
        files = [path for path in files if path.name.startswith(f"{dumps[0].prefix}.")]
    if platform in _READERS:
        _READERS[platform](code, folder, files)
    else:
        code.notes.append("Explorer can't read this compiler's output below HLO.")
    kernels = _kernels_of(code, graph, shares=platform == "cpu")
    rows: list[KernelCode] = []
    for function, texts in code.texts.items():
        row = KernelCode(function, kernels.get(function, ()), texts, **code.facts[function])
        if limits and row.block:
            row = replace(row, occupancy=occupancy(limits, row.block, row.registers, row.shared))
        rows.append(row)
    order = {name: at for at, name in enumerate(graph.names)}
    rows.sort(key=lambda row: (order.get(row.kernels[0], len(order)) if row.kernels else len(order), row.function))
    return MachineCode(platform, tuple(rows), (*code.notes, *_without(graph, rows)))


def _kernels_of(code: _Code, graph: Graph, shares: bool) -> Mapping[str, tuple[str, ...]]:
    """Return the names of the instructions that run each function: from its launches, else from its symbol's name.

    With `shares` the compiler makes code for one of several equal kernels, and doesn't say for which others.
    """
    running = {graph.names[int(node)] for node in running_nodes(graph)}
    symbols = _symbols(graph)
    kernels: dict[str, tuple[str, ...]] = {}
    for function in code.texts:
        launched = tuple(dict.fromkeys(name for name in code.kernels.get(function, ()) if name in running))
        kernels[function] = launched or symbols.get(_NOT_A_NAME.sub("_", function), ())
    return _with_equal_ones(code, kernels, graph) if shares else kernels


def _with_equal_ones(code: _Code, made: Mapping[str, tuple[str, ...]], graph: Graph) -> Mapping[str, tuple[str, ...]]:
    """Return the kernels of each function, and those without code that are equal to one of them."""
    maker = {name: function for function, kernels in made.items() for name in kernels}
    shared = {function: list(kernels) for function, kernels in made.items()}
    for names in {id(names): names for names in equal_kernels(graph).values()}.values():
        makers = [maker[name] for name in names if name in maker]
        # If there are several codes for equal kernels, it is unknown which one runs.
        if len({code.texts[function]["llvm"].replace(function, "") for function in makers}) == 1:
            shared[makers[0]] += [name for name in names if name not in maker]
    return {function: tuple(kernels) for function, kernels in shared.items()}


def _symbols(graph: Graph) -> Mapping[str, tuple[str, ...]]:
    """Return a kernel's name, as a 1-tuple, by each unambiguous symbol that XLA makes of its name or its callee's."""
    kernels: dict[str, tuple[str, ...]] = {}
    for node in map(int, running_nodes(graph)):
        name = graph.names[node]
        attributes = Node(graph, node).attributes
        for symbol in {name, *(attributes[role] for role in ("to_apply",) if role in attributes)}:
            key = _NOT_A_NAME.sub("_", symbol)
            kernels[key] = (*kernels.get(key, ()), name)
    return {key: names for key, names in kernels.items() if len(names) == 1}


def _text(path: Path) -> str:
    return read_text(path, largest=LARGEST_DUMP, errors="replace")


def _read_gpu(code: _Code, folder: Path, files: Sequence[Path]) -> None:
    for path in files:
        if path.suffix == ".ptx":
            for name, text in ptx_functions(_text(path)):
                matrix = ptx_matrix_instructions(text)
                code.add(name, "ptx", text, block=block_of(text), matrix_instructions=matrix, calls=ptx_calls(text))
    _add_llvm(code, files, known=set(code.texts))
    for path in files:
        if (match := _TRITON.search(path.name)) and not path.name.endswith(".before_validation.ttir.txt"):
            kernel = match["kernel"].partition(".")[2]  # after the module's name
            if (symbol := _NOT_A_NAME.sub("_", kernel)) in code.texts:
                code.texts[symbol]["triton"] = _text(path)
    _add_launches(code, files)
    _add_resources(code, folder / _EXECUTABLE)


def _add_llvm(code: _Code, files: Iterable[Path], known: set[str] | None = None) -> None:
    for path in files:
        if path.name.endswith(".ir-with-opt.ll"):
            for name, text in llvm_functions(_text(path)):
                if known is None or name in known:
                    code.add(name, "llvm", text)


def _add_launches(code: _Code, files: Sequence[Path]) -> None:
    thunks = [
        next((_text(path) for path in files if path.name.endswith(f".thunk_{what}.txt")), "")
        for what in ("sequence", "metadata")
    ]
    for launch in launches(*thunks):
        if launch.function in code.facts:
            code.facts[launch.function] |= {"grid": launch.grid, "block": launch.block, "shared": launch.shared}
            code.kernels.setdefault(launch.function, []).append(launch.kernel)


def _add_resources(code: _Code, executable: Path) -> None:
    of = binaries.resources(
        binaries.records(read_bytes(executable, LARGEST_DUMP, "machine code") if executable.is_file() else b"")
    )
    for name, facts in code.facts.items():
        if name in of:
            facts |= {"registers": of[name].registers, "stack": of[name].stack}
    if any("registers" not in facts for facts in code.facts.values()):
        code.notes.append("registers: unknown for some kernels; PTX has an unlimited number.")


def _read_cpu(code: _Code, folder: Path, files: Sequence[Path]) -> None:
    _add_llvm(code, files)
    for name, texts in code.texts.items():
        code.facts[name] |= {"vector_bits": vector_bits(texts["llvm"]), "calls": llvm_calls(texts["llvm"])}
    if find_spec("capstone") is None:
        code.notes.append(_NO_CAPSTONE)
        return
    for path in files:
        if path.suffix == ".o":
            _add_assembly(code, read_bytes(path, LARGEST_DUMP, "machine code"))
    # A function without code of its own was inlined.
    inlined = [name for name, texts in code.texts.items() if "assembly" not in texts]
    # If no function has assembly, nothing was disassembled: the IR stays.
    if len(inlined) < len(code.texts):
        for name in inlined:
            del code.texts[name]


def _add_assembly(code: _Code, data: bytes) -> None:
    try:
        for name, made in binaries.functions(data):
            if name in code.texts:
                # `vars` is the object's own dict, which `pop` would change.
                facts = vars(made).copy()
                code.add(name, "assembly", facts.pop("text"), **facts)
    except binaries.ElfError as error:
        code.notes.append(f"assembly: an object file can't be read ({error}).")


def _read_tpu(code: _Code, folder: Path, files: Sequence[Path]) -> None:
    for path in sorted(folder.iterdir()):
        match = _BUNDLES.fullmatch(path.name)
        if match is None or match["kernel"] == "TLP" or match["kernel"].startswith("<"):
            continue  # the program that calls the kernels, and what runs around it
        name = match["kernel"]
        text = _text(path)
        if match["what"]:
            code.facts.setdefault(name, {})["bundles"] = bundle_count(text)
            continue
        code.kernels[name] = [name]
        code.add(name, "bundles", text, spills=tpu_spills(text), matrix_instructions=tpu_matrix_instructions(text))
    if not code.texts:
        code.notes.append("The TPU's compiler wrote no bundles.")


_READERS: Mapping[str, Callable[[_Code, Path, Sequence[Path]], None]] = {
    "cuda": _read_gpu,
    "gpu": _read_gpu,
    "rocm": _read_gpu,
    "tpu": _read_tpu,
    "cpu": _read_cpu,
}


def _without(graph: Graph, rows: Sequence[KernelCode]) -> list[str]:
    having = {name for row in rows for name in row.kernels}
    missing: dict[str, int] = {}
    for node in running_nodes(graph).tolist():
        if graph.names[node] not in having:
            where = _library(Node(graph, node))
            missing[where] = missing.get(where, 0) + 1
    return [f"{count} of {where}." for where, count in missing.items()]


def _library(node: Node) -> str:
    """Return the reason why an instruction has no code: the library that runs it, or its kind."""
    if target := node.attributes.get("custom_call_target"):
        return f"the library behind {target.strip(chr(34))}: no code here"
    if kind := re.search(r"__(\w+?)_fusion", node.attributes.get("backend_config", "")):
        return f"the library {kind[1].upper()}: no code here"
    if node.op == "fusion":
        return "kind fusion: it is unknown which of several codes they run"
    return f"kind {node.op}: no code of their own"


def equal_kernels(graph: Graph) -> Mapping[str, Sequence[str]]:
    """Return, by the name of a fusion, the names of all fusions that compute the same from arrays of the same types.

    Code that may overwrite its input is other code: kernels that read an array last are kept apart from the others.
    """
    inside: dict[int, list[int]] = {}
    kernels = graph.kernel.tolist()
    for node, kernel in enumerate(kernels):
        if kernel != node and kernel >= 0:
            inside.setdefault(kernel, []).append(node)
    alike: dict[object, list[str]] = {}
    for node in map(int, running_nodes(graph)):
        if node in inside:
            alike.setdefault(_content(graph, node, inside[node]), []).append(graph.names[node])
    return {name: names for names in alike.values() for name in names}


def _content(graph: Graph, kernel: int, nodes: Sequence[int]) -> object:
    at = {node: index for index, node in enumerate(nodes)}
    rows = [
        (
            *_head(graph, node),
            tuple(at.get(operand, -1) for operand in operands_of(graph, node)),
            tuple((key, value) for key, value in Node(graph, node).attributes.items() if not _NAMES.fullmatch(key)),
        )
        for node in nodes
    ]
    operands = tuple((_head(graph, each)[1], _is_last_use(graph, each, kernel)) for each in operands_of(graph, kernel))
    return (_head(graph, kernel), operands, Node(graph, kernel).attributes.get("kind", ""), tuple(rows))


def _is_last_use(graph: Graph, operand: int, kernel: int) -> bool:
    """Return True if a kernel is the last to read an array that the program made itself."""
    while (op := _head(graph, operand)[0]) == "bitcast":
        operand = operands_of(graph, operand)[0]
    start, users = graph.user_columns
    return op != "parameter" and int(users[start[operand] : start[operand + 1]].max(initial=kernel)) <= kernel


def _head(graph: Graph, node: int) -> tuple[str, str]:
    return graph.ops[int(graph.op[node])], graph.types[int(graph.type[node])]


# Text that compilers write about kernels ------------------------------------------------------------------------------

_ENTRY = re.compile(r"^\.visible \.entry ([\w$.]+)\(", re.MULTILINE)
_REQUIRED = re.compile(r"^\.reqntid (\d+)(?:, (\d+))?(?:, (\d+))?", re.MULTILINE)
# `mma.sync` of Ampere on, `wgmma` of Hopper, `tcgen05.mma` of Blackwell: what runs on the tensor cores.
_PTX_MATRIX = re.compile(r"\b((?:mma\.sync|wmma\.mma\.sync|wgmma\.mma_async|tcgen05\.mma)[\w.:]*)")
_PTX_CALL = re.compile(r"^\tcall(?:\.uni)? (?:\([^)]*\), )?\s*([\w$]+)", re.MULTILINE)


def ptx_functions(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of each kernel of a PTX module."""
    for match in _ENTRY.finditer(text):
        end = text.find("\n}", match.start())
        yield match[1], text[match.start() : len(text) if end < 0 else end + 2]


def block_of(text: str) -> tuple[int, ...]:
    """Return the number of threads of a block that the kernel requires, by axis; empty if it requires none."""
    match = _REQUIRED.search(text)
    return tuple(int(count or 1) for count in match.groups()) if match else ()


def ptx_matrix_instructions(text: str) -> tuple[str, ...]:
    """Return the distinct tensor core instructions in a kernel's PTX."""
    return tuple(sorted(set(_PTX_MATRIX.findall(text))))


def ptx_calls(text: str) -> tuple[str, ...]:
    return tuple(sorted(set(_PTX_CALL.findall(text))))


# LLVM IR --------------------------------------------------------------------------------------------------------------

_DEFINE = re.compile(r'^define [^\n]*?@(?:"([^"\n]+)"|([\w$.-]+))\(', re.MULTILINE)
_LLVM_CALL = re.compile(r'\bcall [^\n]*?@(?:"([^"\n]+)"|([\w$.-]+))\(')
# `%9 = fadd <8 x float> …`: what computes, not what only moves: a copy may be wide where the arithmetic isn't.
_VECTOR = re.compile(
    r"= (?:fast |nnan |contract |reassoc |afn )*"
    r"(?:f(?:add|sub|mul|div|neg|cmp)|(?:tail )?call|add|sub|mul|and|or|xor|icmp|select)\b"
    r"[^\n<]*<(\d+) x (\w+)>"
)
_BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64}


def llvm_functions(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of each function that a module defines."""
    for match in _DEFINE.finditer(text):
        end = text.find("\n}", match.start())
        yield match[1] or match[2], text[match.start() : len(text) if end < 0 else end + 2]


def vector_bits(text: str) -> int:
    """Return the width in bits of the widest vectors that a function of LLVM IR computes with; 0 for none."""
    widths = [int(count) * _width(kind) for count, kind in _VECTOR.findall(text)]
    return max(widths, default=0)


def _width(kind: str) -> int:
    return _BITS.get(kind, int(kind[1:]) if kind[:1] == "i" and kind[1:].isdigit() else 0)


def llvm_calls(text: str) -> tuple[str, ...]:
    """Return the names of the functions that LLVM IR calls, without LLVM's intrinsics."""
    names = {quoted or plain for quoted, plain in _LLVM_CALL.findall(text)}
    return tuple(sorted(name for name in names if not name.startswith("llvm.")))


# Launches of a GPU's program: `thunk_sequence.txt`; the owner of each is in `thunk_metadata.txt` ----------------------

_LAUNCH = re.compile(
    r"^\s*(?P<id>\d+): k\w+ .*?\] (?P<function>[\w$.]+) grid: \[(?P<grid>[\d, ]+)\] threads: \[(?P<block>[\d, ]+)\]"
    r".*?shared_memory: (?P<shared>\d+)",
    re.MULTILINE,
)
_METADATA = re.compile(r'profile_annotation: "(?P<name>[^"]+)"\s*thunk_id: (?P<id>\d+)')


@dataclass(frozen=True)
class Launch:
    """One launch: the kernel's symbol, its instruction if known, blocks and threads by axis, bytes of shared memory."""

    function: str
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int


def launches(sequence: str, metadata: str) -> Iterator[Launch]:
    """Yield the launches of a program in order."""
    names = {int(match["id"]): match["name"] for match in _METADATA.finditer(metadata)}
    for match in _LAUNCH.finditer(sequence):
        grid, block = (tuple(int(size) for size in match[key].split(",")) for key in ("grid", "block"))
        yield Launch(match["function"], names.get(int(match["id"]), ""), grid, block, int(match["shared"]))


# Bundles of a TPU: instructions that are issued together --------------------------------------------------------------

_TOTAL = re.compile(r"total scheduled bundles:\s*(\d+)")
_TPU_MATRIX = re.compile(r"\bvmatmul([\w.]*)")
_TPU_TYPE = re.compile(r"(?:b?f|s|u)\d+\w*")
_SPILL = re.compile(r"\bv?s?st \[(?:v|s)mem:\[#allocation\w*_spill\]")


def bundle_count(schedule: str) -> int | None:
    """Return the number of scheduled bundles in a schedule's analysis; None if it is missing."""
    match = _TOTAL.search(schedule)
    return int(match[1]) if match else None


def tpu_matrix_instructions(text: str) -> tuple[str, ...]:
    """Return the distinct instructions of the matrix units as the operation and its type: `vmatmul.bf16`."""
    names: set[str] = set(_TPU_MATRIX.findall(text))
    return tuple(
        sorted(
            {".".join(("vmatmul", *(part for part in name.split(".") if _TPU_TYPE.fullmatch(part)))) for name in names}
        )
    )


def tpu_spills(text: str) -> int:
    """Return the number of instructions that spill a register to memory."""
    return len(_SPILL.findall(text))
