"""What is known of a kernel's code, in words, and what isn't."""

import pytest

from explorer.analysis.facts import kernel_facts
from explorer.model.machine_code import KernelCode


def facts(platform, *, texts=("assembly",), **more):
    return kernel_facts(KernelCode("f", ("fusion",), dict.fromkeys(texts, ""), **more), platform)


def test_of_a_gpus_kernel_nothing_is_made_up():
    assert facts("cuda") == facts("rocm") == [
        ("blocks", "1 thread each"), ("registers", "not known"), ("spills", "not known"),
        ("shared memory", "not known"), ("occupancy", "not known"), ("tensor cores", "not used"),
    ]  # fmt: skip


def test_all_that_a_gpus_kernel_says_is_said():
    known = {"registers": 40, "stack": 0, "shared": 2048, "occupancy": 0.5, "matrix_instructions": ("mma.a", "mma.b")}
    assert facts("cuda", grid=(40, 30, 2), block=(128, 2), calls=("exp", "log"), **known) == [
        ("blocks", "2,400 × 256 threads"), ("registers", "40 a thread"), ("spills", "none"),
        ("shared memory", "2.0 kB a block"), ("occupancy", "≤ 50%"), ("tensor cores", "mma.a, mma.b"),
        ("calls", "exp, log"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("more", "name", "text"),
    [
        ({"grid": (4,), "block": (1,)}, "blocks", "4 × 1 thread"),
        ({"block": (32, 2)}, "blocks", "64 threads each"),
        ({"block": (0,)}, "blocks", "not known"),
        ({"stack": 16}, "spills", "at most 16 B a thread"),
        ({"shared": 0}, "shared memory", "0 B a block"),
        ({"occupancy": 0.25}, "occupancy", "≤ 25%, registers not known"),
        ({"occupancy": 0.25, "registers": 0}, "occupancy", "≤ 25%"),
        ({"matrix_instructions": ("a", "b", "c")}, "tensor cores", "a, b, c"),
        ({"matrix_instructions": ("a", "b", "c", "d", "e")}, "tensor cores", "a, b, c and 2 more"),
        ({"calls": ("a", "b", "c", "d")}, "calls", "a, b, c and 1 more"),
    ],
)
def test_one_thing_of_a_gpus_kernel(more, name, text):
    assert dict(facts("cuda", **more))[name] == text


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, ["not known", "not known: it uses the stack"]),
        ({"vector_bits": 0, "spills": 0}, ["none: one number at a time", "none"]),
        ({"vector_bits": 256, "spills": 3}, ["256 bits", "not known: it uses the stack"]),
        ({"vector_bits": 256, "spills": 0, "texts": ("llvm",)}, ["256 bits", "not known"]),
    ],
)
def test_a_cpus_kernel(more, expected):
    assert facts("cpu", **more) == [("vectors", expected[0]), ("spills", expected[1])]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, ["not known", "not known", "not used"]),
        ({"bundles": 0, "spills": 0}, ["0", "none", "not used"]),
        ({"bundles": 1200, "spills": 1300, "matrix_instructions": ("vmatmul",)}, ["1,200", "1,300", "vmatmul"]),
    ],
)
def test_a_tpus_kernel(more, expected):
    assert [text for _, text in facts("tpu", **more)] == expected
    assert [name for name, _ in facts("tpu")] == ["bundles", "spills", "matrix units"]
