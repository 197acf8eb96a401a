"""What an operation does is said alike by StableHLO and by HLO: JAX's own texts of one program, side by side."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from explorer.analysis.links.features import FeatureCodes, dtype_name, opcode_of
from explorer.capture.readers.hlo import read_hlo
from explorer.capture.readers.stablehlo import read_stablehlo

X, V = jnp.ones((8, 8)), jnp.ones(8)
C = jnp.ones((8, 8), jnp.complex64)


def dot(a, b):
    return lambda x: lax.dot_general(x, x, (((a,), (b,)), ((), ())))


def broadcast(dimension):
    return lambda x: lax.broadcast_in_dim(x[0], (8, 8), (dimension,))


def transpose(*order):
    return lambda x: x.reshape(2, 4, 8).transpose(order)


def dynamic_slice(*sizes):
    return lambda x: lax.dynamic_slice(x, (x[0, 0].astype("int32"),) * 2, sizes)


# By opcode, functions that differ in an attribute alone.
PAIRS = {
    "broadcast": [broadcast(0), broadcast(1)],
    "compare": [lambda x: x < 2.5, lambda x: x > 2.5, lambda x: x == 2.5],
    "concatenate": [lambda x: lax.concatenate([x, x], 0), lambda x: lax.concatenate([x, x], 1)],
    "dot": [dot(0, 0), dot(0, 1), dot(1, 0), dot(1, 1)],
    "dynamic-slice": [dynamic_slice(2, 4), dynamic_slice(4, 2)],
    "fft": [lambda x: jnp.fft.fft(x + 0j), lambda x: jnp.fft.ifft(x + 0j), lambda x: jnp.fft.fft2(x + 0j)],
    "iota": [lambda x: x[0] + lax.iota("float32", 8)],
    "pad": [
        lambda x: lax.pad(x, 0.0, [(1, 2, 0), (0, 0, 0)]), lambda x: lax.pad(x, 0.0, [(2, 1, 0), (0, 0, 0)]),
        lambda x: lax.pad(x, 0.0, [(0, 0, 0), (1, 2, 0)]), lambda x: lax.pad(x, 0.0, [(1, 2, 1), (-1, 0, 0)]),
    ],
    "reduce": [lambda x: x.sum(0), lambda x: x.sum(1), lambda x: x.sum((0, 1))],
    "reverse": [lambda x: lax.rev(x, (0,)), lambda x: lax.rev(x, (1,)), lambda x: lax.rev(x, (0, 1))],
    "slice": [
        lambda x: x[1:3], lambda x: x[2:4], lambda x: x[:, 1:3], lambda x: x[1:7:2], lambda x: x[1:7:3, 0:1],
        lambda x: x[:, 1:7:2],
    ],
    "sort": [lambda x: lax.sort(x, dimension=0), lambda x: lax.sort(x, dimension=1)],
    "transpose": [transpose(0, 2, 1), transpose(1, 0, 2), transpose(2, 1, 0)],
}  # fmt: skip


def codes_of(codes, graph, opcode):
    """The attributes' codes of the operations of an opcode, in the order of the text."""
    wanted = [at for at in range(len(graph.names)) if opcode_of(graph.ops[int(graph.op[at])]) == opcode]
    return [int(code) for code in codes.attributes(graph)[wanted]]


@pytest.mark.parametrize("opcode", PAIRS)
def test_attributes_that_tell_operations_apart_are_the_same_in_both_stages(opcode):
    codes, seen = FeatureCodes(), []
    for function in PAIRS[opcode]:
        lowered = jax.jit(function).lower(X)
        ours = codes_of(codes, read_stablehlo(lowered.as_text()), opcode)
        theirs = codes_of(codes, read_hlo(lowered.compiler_ir("hlo").as_hlo_text()), opcode)
        assert set(ours) == set(theirs)
        assert -1 not in ours
        seen.append(frozenset(ours))
    assert len(set(seen)) == len(seen)


def test_what_has_no_such_attribute_has_no_code():
    lowered = jax.jit(lambda x: jnp.sin(x) + x).lower(X)
    for graph in (read_stablehlo(lowered.as_text()), read_hlo(lowered.compiler_ir("hlo").as_hlo_text())):
        assert set(FeatureCodes().attributes(graph).tolist()) == {-1}


def test_types_are_the_same_in_both_stages():
    @jax.jit
    def function(x, i, u, p, c):
        return (
            jnp.sin(x),
            jnp.negative(i),
            u + u,
            ~p,
            c * c,
            jnp.exp(x.reshape(4, 16)),
            jnp.tanh(x.astype("bfloat16")),
        )

    lowered = function.lower(
        X, jnp.ones(8, "int8"), jnp.ones(8, "uint8"), jnp.ones(8, bool), jnp.ones(8, jnp.complex64)
    )
    codes = FeatureCodes()
    rows = []
    for graph in (read_stablehlo(lowered.as_text()), read_hlo(lowered.compiler_ir("hlo").as_hlo_text())):
        sizes, shapes = codes.types(graph)
        opcodes = codes.opcodes(graph)
        names = {opcode_of(op) for op in graph.ops} & {
            "sine",
            "negate",
            "add",
            "not",
            "multiply",
            "exponential",
            "tanh",
        }
        at = [i for i in range(len(graph.names)) if opcode_of(graph.ops[int(graph.op[i])]) in names]
        rows.append({opcode_of(graph.ops[int(graph.op[i])]): (opcodes[i], sizes[i], shapes[i]) for i in at})
    assert rows[0] == rows[1]
    assert len(rows[0]) == 7
    sine, exponential = rows[0]["sine"], rows[0]["exponential"]
    assert sine[1] == exponential[1]  # as many numbers of one type …
    assert sine[2] != exponential[2]  # … in another shape
    assert len({size for _, size, _ in rows[0].values()}) == 6


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("i1", "pred"), ("bool", "pred"), ("i8", "s8"), ("i64", "s64"), ("ui8", "u8"), ("ui32", "u32"), ("f32", "f32"),
        ("bf16", "bf16"), ("complex<f32>", "c64"), ("complex<f64>", "c128"), ("index", "index"), ("s32", "s32"),
    ],
)  # fmt: skip
def test_what_hlo_calls_a_type(name, expected):
    assert dtype_name(name) == expected


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("stablehlo.dot_general", "dot"), ("stablehlo.broadcast_in_dim", "broadcast"),
        ("stablehlo.case", "conditional"),
        ("stablehlo.if", "conditional"), ("func.return", "return"), ("chlo.erf_inv", "erf-inv"),
        ("stablehlo.dynamic_slice", "dynamic-slice"), ("add", "add"), 
    ],
)  # fmt: skip
def test_what_hlo_calls_an_operation(op, expected):
    assert opcode_of(op) == expected
