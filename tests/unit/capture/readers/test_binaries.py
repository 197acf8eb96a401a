"""Object files, and what a GPU's compiler serialises."""

import shutil
import struct
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.capture.readers import binaries

OBJDUMP = shutil.which("objdump")


def small_cubin(kernels: dict[str, tuple[int, int]]) -> bytes:
    """An object for a GPU with registers and stack of each kernel, written after the System V ABI."""
    names = b"\0" + b"".join(f"{name}\0".encode() for name in kernels)
    symbols = bytes(24)
    info = b""
    at = 1
    for number, (name, (registers, stack)) in enumerate(kernels.items(), 1):
        symbols += struct.pack("<IBBHQQ", at, 0x12, 0, 1, 0, 8)
        at += len(name) + 1
        info += struct.pack("<BBH", 3, 0x50, 7)  # a record that has its value in its head
        info += struct.pack("<BBHII", 4, 0x2F, 8, number, registers) + struct.pack("<BBHII", 4, 0x11, 8, number, stack)
        info += struct.pack("<BBHIII", 4, 0x17, 12, 0, 1, 2)
    parts = [("", 0, b"", 0), (".nv.info", 0x70000000, info, 0), (".strtab", 3, names, 0), (".symtab", 2, symbols, 2)]
    heads = b"\0" + b"".join(f"{name}\0".encode() for name, *_ in parts) + b".shstrtab\0"
    parts.append((".shstrtab", 3, heads, 0))
    body, rows, name_at = b"", b"", 1
    for name, kind, data, link in parts:
        rows += struct.pack("<IIQQQQIIQQ", name_at, kind, 0, 0, 64 + len(body), len(data), link, 0, 1, 0)
        body += data
        name_at += len(name) + 1
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 2, binaries.CUDA, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(parts), 4)
    return head + body + rows


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def snappy(pieces: list[tuple[bytes, int]]) -> tuple[bytes, bytes]:
    """What is packed, and packed: each piece as it is, and then copied from so far back, where that is not 0."""
    out, packed = b"", b""
    for literal, back in pieces:
        out += literal
        size = len(literal) - 1
        packed += (bytes([size << 2]) if size < 60 else bytes([61 << 2]) + struct.pack("<H", size)) + literal
        if back:
            back = min(back, len(out))
            packed += bytes([4 << 2 | 2]) + struct.pack("<H", back)
            for _ in range(5):  # one byte after the other, as the format says it
                out += out[-back : len(out) - back + 1]
    return out, varint(len(out)) + packed


def riegeli(values: bytes, packed: bytes | None) -> bytes:
    """A file of one chunk of simple records, without hashes; blocks of 64 KiB each begin with a head."""
    payload = packed if packed is not None else values
    body = varint(len(values)) + payload if packed is not None else values
    chunk = bytes([ord("s") if packed is not None else 0]) + varint(1) + b"\x05" + body
    plain = bytes(8) + struct.pack("<Q", 0) + bytes(8) + b"s" + bytes(15)
    plain += (
        bytes(8) + struct.pack("<Q", len(chunk)) + bytes(8) + b"r" + bytes(7) + struct.pack("<Q", len(values)) + chunk
    )
    first = bytes.fromhex("83af70d10d884a3f") + bytes(16)
    room = (1 << 16) - 24
    blocks = [plain[at : at + room] for at in range(0, len(plain), room)]
    return first + bytes(24).join(blocks)


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=300), st.integers(0, 400)), min_size=1, max_size=40))
def test_records_are_unpacked_as_the_formats_say(pieces):
    values, packed = snappy(pieces)
    assert (
        binaries.records(b"head" + riegeli(values, packed) + b"what stands behind it, of any length at all" * 3)
        == values
    )


def test_records_that_are_longer_than_a_block_and_not_packed_are_whole():
    values = bytes(range(256)) * 1000
    assert binaries.records(riegeli(values, None)) == values


def test_a_file_in_a_record_is_unpacked_too():
    inner = riegeli(b"the inside", None)
    assert binaries.records(riegeli(inner, None)) == b"the inside"


@given(st.binary(max_size=400))
def test_what_is_no_such_file_or_a_broken_one_gives_nothing_or_bytes_and_raises_nothing(noise):
    assert binaries.records(noise) == b"" or noise
    whole = riegeli(b"x" * 100, snappy([(b"x" * 100, 3)])[1])
    assert isinstance(binaries.records(whole[: 64 + len(noise)] + noise), bytes)
    assert isinstance(
        binaries.resources(b"\x7fELF\x02\x01\x01" + noise + small_cubin({"f": (3, 0)})[: len(noise)]), dict
    )


def test_registers_and_stack_are_those_of_each_kernel():
    data = b"proto" + small_cubin({"add_1": (32, 0), "dot_2": (168, 0)}) + b"more" + small_cubin({"sort": (24, 40)})
    of = binaries.resources(data)
    assert {name: (row.registers, row.stack) for name, row in of.items()} == {
        "add_1": (32, 0),
        "dot_2": (168, 0),
        "sort": (24, 40),
    }


def test_an_object_for_another_machine_has_no_registers_of_a_gpu():
    data = bytearray(small_cubin({"f": (3, 0)}))
    data[18:20] = struct.pack("<H", binaries.X86_64)
    assert binaries.resources(bytes(data)) == {}


SOURCE = """
float expf(float);
float scalar(float x) { return expf(x) + 1.0f; }
void wide(float *x) { for (int i = 0; i < 1024; i++) x[i] = x[i] * x[i] + 2.0f; }
"""


@pytest.fixture(scope="module")
def object_file(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or OBJDUMP is None:
        pytest.skip("needs a C compiler and objdump, whose word is the judge")
    folder = tmp_path_factory.mktemp("object")
    (folder / "f.c").write_text(SOURCE)
    flags = ["-O3", "-ffast-math", "-fno-pic", "-mcmodel=large", "-mavx2"]
    done = subprocess.run([compiler, *flags, "-c", "f.c", "-o", "f.o"], cwd=folder, capture_output=True)
    if done.returncode:
        pytest.skip(f"the C compiler here takes no {flags}")
    return folder / "f.o"


def test_a_cpus_code_is_that_of_objdump_with_its_vectors_and_calls(object_file):
    pytest.importorskip("capstone", reason="needs capstone (the extra asm)")
    functions = dict(binaries.functions(object_file.read_bytes()))
    listing = subprocess.run([OBJDUMP, "-d", "--no-show-raw-insn", object_file], capture_output=True, text=True).stdout
    for name, made in functions.items():
        block = listing.partition(f"<{name}>:\n")[2].partition("\n\n")[0]
        theirs = [line.split("\t")[1].split()[0] for line in block.splitlines() if "\t" in line]
        ours = [line.split()[1] for line in made.text.splitlines()]
        assert len(ours) > 3
        assert all(word.startswith(("nop", "cs", "data16", "xchg")) for word in theirs[len(ours) :])  # behind the end
        assert len(theirs) >= len(ours)
    assert functions["wide"].vector_bits == 256
    assert functions["scalar"].vector_bits == 0
    assert functions["scalar"].calls == ("expf",)
    assert functions["wide"].calls == ()
    assert functions["wide"].spills == 0


def test_a_file_that_is_cut_off_says_that_it_is_broken(object_file):
    pytest.importorskip("capstone", reason="needs capstone (the extra asm)")
    with pytest.raises(binaries.ElfError):
        list(binaries.functions(object_file.read_bytes()[:200]))
    assert list(binaries.functions(b"no object at all")) == []
