"""Collectives that a program asks for by name: kind, axis, bytes and line are known before anything is compiled."""

import functools
import json
import os
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import explorer as ex
from tests.unit.hardware.conftest import require

PROGRAMS = """
import json, sys
import jax, jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import numpy as np
import explorer as ex

mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
def shard(body, into, out):
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=into, out_specs=out, check_vma=False))

def ring(n):
    return [(at, (at + 1) % n) for at in range(n)]

BOTH, ALONG = P(("data", "model")), P(None, "data")
def repeated(x):
    return jax.lax.fori_loop(0, 5, lambda i, y: jax.lax.psum(y, "data") * 0.5, x)  # "loop"

CASES = {
    "psum data": (shard(lambda x: jax.lax.psum(x, "data"), P("data"), P()), (64, 8)),
    "psum model": (shard(lambda x: jax.lax.psum(x, "model"), P("model"), P()), (64, 8)),
    "psum both": (shard(lambda x: jax.lax.psum(x, ("data", "model")), BOTH, P()), (64, 8)),
    "all_gather data": (shard(lambda x: jax.lax.all_gather(x, "data"), P("data"), P()), (64, 8)),
    "all_gather model": (shard(lambda x: jax.lax.all_gather(x, "model"), P("model"), P()), (64, 8)),
    "psum_scatter data": (shard(lambda x: jax.lax.psum_scatter(x, "data", tiled=True), P(), P("data")), (64, 8)),
    "all_to_all data": (shard(lambda x: jax.lax.all_to_all(x, "data", 0, 1, tiled=True), P("data"), ALONG), (64, 8)),
    "ppermute data": (shard(lambda x: jax.lax.ppermute(x, "data", ring(4)), P("data"), P("data")), (64, 8)),
    "ppermute model": (shard(lambda x: jax.lax.ppermute(x, "model", ring(2)), P("model"), P("model")), (64, 8)),
    "loop": (shard(repeated, P("data"), P("data")), (64, 8)),
}
line = Mesh(np.array(jax.devices()), ("stage",))
cube = Mesh(np.array(jax.devices()).reshape(2, 2, 2), ("data", "fsdp", "tensor"))

def over(mesh, body, into, out):
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=into, out_specs=out, check_vma=False))

def pipeline(x):
    def tick(i, y):
        return jnp.tanh(jax.lax.ppermute(y, "stage", [(at, at + 1) for at in range(7)]))  # "pipeline"
    return jax.lax.fori_loop(0, 9, tick, x)

def experts(x):
    sent = jax.lax.all_to_all(x, "stage", 0, 1, tiled=True)  # "experts"
    return jax.lax.all_to_all(jnp.tanh(sent), "stage", 1, 0, tiled=True)  # "experts"

def ring_attention(q, k):
    def turn(i, carry):
        k, out = carry
        return jax.lax.ppermute(k, "stage", ring(8)), out + jax.nn.softmax(q @ k.T) @ k  # "ring attention"
    return jax.lax.fori_loop(0, 8, turn, (k, jnp.zeros_like(q)))[1]

def hybrid(x):
    part = jax.lax.psum_scatter(x, "fsdp", tiled=True)  # "hybrid"
    return jax.lax.psum(part, "data")  # "hybrid"

def product(x, up, down):
    return jnp.tanh(x @ up) @ down  # "by the compiler: tensor"

def gradient(w, x):
    return jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).sum())(w)  # "by the compiler: data"

STAGE, CUBE = P("stage"), P(("data", "fsdp"))
CASES |= {
    "pipeline": (over(line, pipeline, STAGE, STAGE), (64, 8)),
    "experts": (over(line, experts, STAGE, STAGE), (64, 8)),
    "ring attention": (over(line, ring_attention, STAGE, STAGE), (64, 8), (64, 8)),
    "cube scatter": (over(cube, lambda x: jax.lax.psum_scatter(x, "fsdp", tiled=True), P(), P("fsdp")), (64, 8)),
    "cube sum": (over(cube, lambda x: jax.lax.psum(x, ("data", "fsdp")), CUBE, P()), (64, 8)),
    "cube gather": (over(cube, lambda x: jax.lax.all_gather(x, "tensor"), P("tensor"), P()), (64, 8)),
    "cube ends": (over(cube, lambda x: jax.lax.psum(x, ("data", "tensor")), P(("data", "tensor")), P()), (64, 8)),
    "hybrid": (over(cube, hybrid, P("data"), P("fsdp")), (64, 8)),
    "by the compiler: tensor": (product, (64, 8, "data"), (8, 16, None, "model"), (16, 8, "model")),
    "by the compiler: data": (gradient, (8, 8), (64, 8, "data")),
}
MESHES = {8: (("stage", 8),), 4: (("data", 4), ("model", 2)), 2: (("data", 2), ("fsdp", 2), ("tensor", 2))}

def argument(shape):
    spec = shape[2:]
    sharding = NamedSharding(mesh, P(*spec)) if name.startswith("by the compiler") else None
    return jax.ShapeDtypeStruct(shape[:2], jnp.float32, sharding=sharding)

rows, scattered = {}, {}
target = sys.argv[1] if len(sys.argv) > 1 else None
for name, (function, *shapes) in CASES.items():
    capture = ex.explore(function, *map(argument, shapes), target=target)
    rows[name] = [
        [row.kind, list(row.axes), row.size, row.bytes, row.wire, row.runs, row.text, row.groups, row.seconds]
        for row in capture.collectives
    ]
    scattered[name] = "reduce-scatter(" in capture.hlo.text
    assert capture.collectives.devices == 8, name
    assert capture.collectives.mesh == MESHES[capture.collectives.mesh[0][1]], name
text = ex.explore(CASES["psum data"][0], jax.ShapeDtypeStruct((64, 8), jnp.float32)).collectives.to_text()
print(json.dumps([rows, text, scattered]))
"""
F32 = 4
# Per device: kind, axes, devices, bytes given, bytes sent by a ring, times. Each has a part of 64 × 8 elements.
EXPECTED = {
    "psum data": ("all-reduce", ["data"], 4, 128 * F32, 2 * 128 * F32 * 3 // 4, 1),
    "psum model": ("all-reduce", ["model"], 2, 256 * F32, 2 * 256 * F32 * 1 // 2, 1),
    "psum both": ("all-reduce", ["data", "model"], 8, 64 * F32, 2 * 64 * F32 * 7 // 8, 1),
    "all_gather data": ("all-gather", ["data"], 4, 128 * F32, 128 * F32 * 3, 1),
    "all_gather model": ("all-gather", ["model"], 2, 256 * F32, 256 * F32, 1),
    "psum_scatter data": ("reduce-scatter", ["data"], 4, 512 * F32, 512 * F32 * 3 // 4, 1),
    "all_to_all data": ("all-to-all", ["data"], 4, 128 * F32, 128 * F32 * 3 // 4, 1),
    "ppermute data": ("collective-permute", ["data"], 2, 128 * F32, 128 * F32, 1),
    "ppermute model": ("collective-permute", ["model"], 2, 256 * F32, 256 * F32, 1),
    "loop": ("all-reduce", ["data"], 4, 128 * F32, 2 * 128 * F32 * 3 // 4, 5),
    "pipeline": ("collective-permute", ["stage"], 2, 64 * F32, 64 * F32, 9),
    "ring attention": ("collective-permute", ["stage"], 2, 64 * F32, 64 * F32, 8),
    "cube scatter": ("reduce-scatter", ["fsdp"], 2, 512 * F32, 512 * F32 * 1 // 2, 1),
    "cube sum": ("all-reduce", ["data", "fsdp"], 4, 128 * F32, 2 * 128 * F32 * 3 // 4, 1),
    "cube gather": ("all-gather", ["tensor"], 2, 256 * F32, 256 * F32, 1),
    "cube ends": ("all-reduce", ["data", "tensor"], 4, 128 * F32, 2 * 128 * F32 * 3 // 4, 1),
    # A device has 16 × 8 of the product's result, and a gradient of all 8 × 8 weights.
    "by the compiler: tensor": ("all-reduce", ["model"], 2, 128 * F32, 2 * 128 * F32 * 1 // 2, 1),
    "by the compiler: data": ("all-reduce", ["data"], 4, 64 * F32, 2 * 64 * F32 * 3 // 4, 1),
}
SEVERAL = {
    "experts": [("all-to-all", ["stage"], 8, 64 * F32, 64 * F32 * 7 // 8, 1)] * 2,
    # Of 32 × 8 elements a device keeps half, and sums that with one other.
    "hybrid": [
        ("reduce-scatter", ["fsdp"], 2, 256 * F32, 256 * F32 * 1 // 2, 1),
        ("all-reduce", ["data"], 2, 128 * F32, 2 * 128 * F32 * 1 // 2, 1),
    ],
}
# Of arrays as small as these libtpu makes sums of which each device keeps a part; for a product it sends bf16.
ON_TPU = {
    "psum_scatter data": ("all-reduce", ["data"], 4, 512 * F32, 2 * 512 * F32 * 3 // 4, 1),
    "cube scatter": ("all-reduce", ["fsdp"], 2, 512 * F32, 2 * 512 * F32 * 1 // 2, 1),
    "ring attention": ("collective-permute", ["stage"], 2, 64 * F32 // 2, 64 * F32 // 2, 8),
}
SEVERAL_ON_TPU = {
    "hybrid": [
        ("all-reduce", ["fsdp"], 2, 256 * F32, 2 * 256 * F32 * 1 // 2, 1),
        ("all-reduce", ["data"], 2, 128 * F32, 2 * 128 * F32 * 1 // 2, 1),
    ],
}
# By hand, of the programs whose devices aren't neighbours, or whose order counts.
GROUPS = {
    "psum data": [[0, 2, 4, 6], [1, 3, 5, 7]],
    "psum model": [[0, 1], [2, 3], [4, 5], [6, 7]],
    "pipeline": [[at, at + 1] for at in range(7)],
    "ring attention": [[at, (at + 1) % 8] for at in range(8)],
    "cube scatter": [[0, 2], [1, 3], [4, 6], [5, 7]],
    "cube sum": [[0, 2, 4, 6], [1, 3, 5, 7]],
    "cube gather": [[0, 1], [2, 3], [4, 5], [6, 7]],
    "cube ends": [[0, 1, 4, 5], [2, 3, 6, 7]],
    "by the compiler: tensor": [[0, 1], [2, 3], [4, 5], [6, 7]],
}


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    """On eight devices that XLA simulates, which only a new process can have."""
    return run_programs(tmp_path_factory)


def run_programs(tmp_path_factory, *target):
    script = tmp_path_factory.mktemp("sharded") / "sharded.py"
    script.write_text(textwrap.dedent(PROGRAMS))
    flags = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"
    done = subprocess.run(
        [sys.executable, script, *target],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", EXPECTED)
def test_a_collective_has_the_kind_axis_bytes_and_line_that_the_program_asks_for(name, explored) -> None:
    rows, *_ = explored
    assert [tuple(row[:6]) for row in rows[name]] == [EXPECTED[name]]
    assert f'"{name}"' in rows[name][0][6]


@pytest.mark.parametrize("name", SEVERAL)
def test_each_of_several_collectives_has_them_too(name, explored) -> None:
    rows = explored[0][name]
    assert sorted(tuple(row[:6]) for row in rows) == sorted(SEVERAL[name])
    assert all(f'"{name}"' in row[6] for row in rows)


@pytest.mark.parametrize("name", GROUPS)
def test_a_collective_joins_the_devices_of_its_axes(name, explored) -> None:
    ((*_, groups, seconds),) = explored[0][name]
    assert (sorted(groups), seconds) == (GROUPS[name], None)  # a CPU has no links of known bandwidth


@pytest.mark.slow
@pytest.mark.parametrize("target", ["v5e:2x4", "8xh100"])
def test_the_collectives_of_other_hardware_are_placed_grouped_and_priced(target, tmp_path_factory) -> None:
    """Those that the program asks for; where libtpu makes a sum of a reduce-scatter, there is none in its text."""
    require("tpu" if target.startswith("v5e") else "cuda")
    explored, _, scattered = run_programs(tmp_path_factory, target)
    expected = {name: [row] for name, row in EXPECTED.items()} | SEVERAL
    if target.startswith("v5e"):
        expected |= {name: [row] for name, row in ON_TPU.items()} | SEVERAL_ON_TPU
        assert not any(scattered.values())
    assert len(explored) >= 20
    for name, rows in explored.items():
        assert sorted(tuple(row[:6]) for row in rows) == sorted(expected[name]), name
        assert all(f'"{name}"' in row[6] for row in rows), name
        assert sorted(rows[0][7]) == GROUPS.get(name, sorted(rows[0][7])), name
        assert all(0 < row[8] < 1e-6 for row in rows), name  # some kilobytes


SCATTERED = """HloModule m, is_scheduled=true, num_partitions=4

%add (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b), metadata={{op_name="add" source_file="step.py" source_line=7}}
}}

%all-reduce-scatter (p: f32[64,8]) -> f32[16,8] {{
  %p = f32[64,8]{{1,0}} parameter(0)
  %sum = f32[64,8]{{1,0}} all-reduce(%p), replica_groups={{}}, to_apply=%add
  %at = u32[] partition-id()
  %zero = u32[] constant(0)
  ROOT %part = f32[{kept},8]{{1,0}} dynamic-slice(%sum, %at, %zero), dynamic_slice_sizes={{{kept},8}}
}}

ENTRY %main (x: f32[64,8]) -> f32[{kept},8] {{
  %x = f32[64,8]{{1,0}} parameter(0)
  ROOT %kernel = f32[{kept},8]{{1,0}} fusion(%x), kind=kCustom, calls=%all-reduce-scatter
}}
"""


@pytest.mark.parametrize(
    ("kept", "kind", "sent"), [(16, "reduce-scatter", 64 * 8 * 4 * 3 // 4), (32, "all-reduce", 2 * 64 * 8 * 4 * 3 // 4)]
)
def test_a_sum_of_which_one_kernel_keeps_a_devices_part_is_a_reduce_scatter(kept, kind, sent) -> None:
    """So libtpu writes those of large arrays; four devices that keep half each have more than their parts."""
    (row,) = ex.open_hlo(SCATTERED.format(kept=kept)).collectives
    assert (row.kind, row.size, row.bytes, row.wire) == (kind, 4, 64 * 8 * 4, sent)


def test_a_collective_without_metadata_has_the_line_of_the_reducer_that_is_its_own() -> None:
    text = SCATTERED.format(kept=16)
    (row,) = ex.open_hlo(text).collectives
    assert (row.file, row.line, row.node.place.how) == ("step.py", 7, "serves")
    shared = "  %other = f32[] reduce(%p, %zero), dimensions={0,1}, to_apply=%add\n  %at = u32[]"
    rows = ex.open_hlo(text.replace("  %at = u32[]", shared)).collectives
    assert [(row.file, row.line) for row in rows] == [("", 0)]  # whose sum it is then isn't known


def test_the_text_has_a_sentence_and_a_row(explored) -> None:
    sentence, _, row = explored[1].splitlines()
    assert sentence == "1 collective between 8 devices (data 4 × model 2); each sends 768 B or more."
    assert "all-reduce" in row
    assert "not known" in row  # a CPU has no links whose bandwidth anybody published


def test_what_runs_between_start_and_end_is_said(tmp_path) -> None:
    """By hand: a sum that is started before a product and waited for behind it."""
    text = """HloModule m, is_scheduled=true, num_partitions=2

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %main (x: f32[64,64]) -> f32[64,64] {
  %x = f32[64,64]{1,0} parameter(0)
  %start = f32[64,64]{1,0} all-reduce-start(%x), replica_groups={}, to_apply=%add
  %product = f32[64,64]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %done = f32[64,64]{1,0} all-reduce-done(%start)
  ROOT %sum = f32[64,64]{1,0} add(%product, %done)
}
"""
    (row,) = ex.open_hlo(text).collectives
    assert (row.kind, row.groups, row.size, row.bytes) == ("all-reduce", ((0, 1),), 2, 64 * 64 * 4)
    assert [node.name for node in row.overlaps] == ["product"]
    frame = ex.open_hlo(text).collectives.to_frame()
    assert frame.loc[0, "node"] == "start"


def test_a_permute_on_one_device_is_along_no_axis(tmp_path):
    mesh = jax.sharding.Mesh(jax.devices()[:1], ("stage",))

    @jax.jit
    @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("stage"), out_specs=P("stage"), check_vma=False)
    def send(x):
        return jax.lax.ppermute(x, "stage", [(0, 0)])

    capture = ex.explore(send, jnp.ones((8, 4)))
    assert [(row.kind, row.axes) for row in capture.collectives] == [("collective-permute", ())]
    assert "ppermute.1  1 kernel" in capture.to_text()
    capture.save(tmp_path / "one.explorer")
    assert str(ex.load(tmp_path / "one.explorer").summary) == str(capture.summary)
