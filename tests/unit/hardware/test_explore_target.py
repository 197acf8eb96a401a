"""explore(target=): the real compilers of hardware that isn't here."""

import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import explorer as ex
from explorer.hardware.names import parse_target
from explorer.hardware.process import end_processes, running
from explorer.model.results.estimates import PEAKS
from tests.unit.hardware.conftest import require

pytestmark = pytest.mark.slow  # a compiler of its own each

Q = jax.ShapeDtypeStruct((4, 64, 2, 32), jnp.bfloat16)


def attention(q, k, v):
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / 8.0
    weights = jax.nn.softmax(scores, -1)
    return jnp.einsum("bhts,bshd->bthd", weights, v)


SCORES = attention.__code__.co_firstlineno + 1


@pytest.mark.parametrize("fixture", ["cuda", "tpu"])
def test_a_program_for_other_hardware_has_its_stages_links_passes_memory_and_page(fixture, request, tmp_path) -> None:
    target = request.getfixturevalue(fixture)
    capture = ex.explore(attention, Q, Q, Q, target=target)
    assert [stage.name for stage in capture.stages] == ["jaxpr", "stablehlo", "hlo"]
    assert capture.environment["target"] == target
    assert capture.environment["backend"] == fixture
    products = [node for node in capture.nodes_at(SCORES) if node.op in ("dot", "convolution", "custom-call")]
    assert products
    assert len(capture.passes) > 5
    assert sum(capture.fates().values()) == sum(1 for node in capture.jaxpr.graph.nodes if node.op != "parameter")
    assert capture.memory["argument"] >= 3 * 4 * 64 * 2 * 32 * 2  # a TPU's tiles are filled up
    page = capture.to_html(tmp_path / "page.html").read_text()
    assert capture.environment["device"] in page
    assert capture.environment["device"] in capture.to_text()
    assert ex.Capture.load(_saved(capture, tmp_path)).environment == capture.environment


def _saved(capture, folder):
    capture.save(folder / "one.capture")
    return folder / "one.capture"


def test_a_gpus_capture_says_what_is_not_as_it_would_be_there(cuda) -> None:
    capture = ex.explore(lambda x: x @ x, jnp.ones((64, 64)), target=cuda)
    assert "untuned" in capture.summary[-1].text
    assert "untuned" in capture.to_text()


def test_a_tpus_memory_that_is_too_small_is_its_compilers_own_error(tpu) -> None:
    large = jax.ShapeDtypeStruct((1 << 16, 1 << 16), jnp.float32)
    with pytest.raises(ex.errors.ExploreError, match=r"(?i)hbm|memory") as raised:
        ex.explore(lambda x, y: x @ y + x.T, large, large, target=tpu)
    assert [stage.name for stage in raised.value.capture.stages] == ["jaxpr", "stablehlo"]


@pytest.mark.parametrize(("fixture", "target"), [("cuda", "8xh100"), ("tpu", "v5e:2x4")])
def test_a_sharded_program_has_its_collectives(fixture, target, request) -> None:
    request.getfixturevalue(fixture)
    mesh = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    def array(shape, *axes):
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, P(*axes)))

    def loss(w, x):
        return jnp.mean((x @ w) ** 2)

    args = array((256, 512), None, "model"), array((128, 256), "data", None)
    capture = ex.explore(jax.grad(loss), *args, target=target)
    assert any(node.op.startswith("all-reduce") for node in capture.hlo.graph.nodes)
    with pytest.raises(ex.errors.ExploreError, match="the program needs 8 devices"):
        ex.explore(jax.grad(loss), *args, target=target.removeprefix("8x").partition(":")[0])


def test_a_function_keeps_its_own_parameter_called_target(cuda) -> None:
    with pytest.warns(ex.errors.AmbiguousOptionWarning):
        assert "target" not in ex.explore(lambda x, target: x + target, jnp.ones(3), target=jnp.ones(3)).environment
    capture = ex.explore(ex.Call(lambda x, target: x + target, jnp.ones(3), target=jnp.ones(3)), target=cuda)
    assert capture.environment["target"] == cuda


def test_its_process_is_kept_and_a_killed_one_is_started_again(cuda) -> None:
    ex.explore(jnp.sin, jnp.ones(3), target=cuda)
    first = running()["cuda"]
    ex.explore(jnp.cos, jnp.ones(3), target=cuda)
    assert running()["cuda"] == first
    end_processes()
    assert not running()
    ex.explore(jnp.tan, jnp.ones(3), target=cuda)
    assert running()["cuda"] != first


def test_the_users_process_stays_as_it_was(cuda, tpu) -> None:
    """Nothing printed, no device, variable or signal handler more; its children end with it."""
    program = textwrap.dedent(f"""
        import os, signal, sys
        import jax, jax.numpy as jnp
        devices, environment, modules = jax.devices(), dict(os.environ), set(sys.modules)
        handlers = [signal.getsignal(number) for number in signal.valid_signals()]
        import explorer as ex
        for target in ({cuda!r}, {tpu!r}):
            ex.explore(lambda x: jnp.tanh(x) @ x, jnp.ones((8, 8)), target=target)
        assert jax.devices() == devices
        assert dict(os.environ) == environment
        assert [signal.getsignal(number) for number in signal.valid_signals()] == handlers
        assert not any("libtpu" in name or "xla_cuda" in name for name in sys.modules)
        from explorer.hardware.process import running
        print(*running().values())
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    children = done.stdout.split()
    assert len(children) == 2
    for child in children:
        told = subprocess.run(["ps", "-o", "stat=", "-p", child], capture_output=True, text=True, check=False)
        assert told.stdout.strip() in ("", "Z")


@pytest.mark.parametrize("target", ["a100", "l4", "rtx4090"])
def test_a_gpu_of_which_xla_has_no_table_of_products_is_compiled_for_and_estimated_by_peaks(cuda, target):
    x = jax.ShapeDtypeStruct((512, 512), jnp.bfloat16)
    capture = ex.explore(lambda a, b: jnp.tanh(a @ b), x, x, target=target)
    assert {row.by for row in capture.estimates} == {PEAKS}


def test_a_program_that_uses_fewer_devices_than_there_are_says_so(cuda: str) -> None:
    def sentence(x: object, target: str) -> str:
        return next(fact.text for fact in ex.explore(jnp.sin, x, target=target).summary if fact.kind == "target")

    device = parse_target(cuda).device.name
    whole = jax.ShapeDtypeStruct((64,), jnp.float32)
    assert sentence(whole, f"8x{cuda}").startswith(f"Compiled for 1 of 8 × {device}, as no argument is sharded; ")
    assert sentence(whole, cuda).startswith(f"Compiled for {device}; ")
    mesh = AbstractMesh((8,), ("data",), axis_types=(AxisType.Auto,))
    split = jax.ShapeDtypeStruct((64,), jnp.float32, sharding=NamedSharding(mesh, P("data")))
    assert sentence(split, f"8x{cuda}").startswith(f"Compiled for 8 × {device}; ")


def summed(target: str, mesh: AbstractMesh, along: tuple[str, ...]) -> ex.types.Collectives:
    """Return the collectives of a sum along some axes of a mesh."""
    require(parse_target(target).platform)
    spec = P(along)
    step = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, along), mesh=mesh, in_specs=spec, out_specs=P()))
    x = jax.ShapeDtypeStruct((1 << 12, 1 << 10), jnp.float32, sharding=NamedSharding(mesh, spec))
    return ex.explore(step, x, target=target).collectives


@pytest.mark.slow
@pytest.mark.parametrize("name", ["2x4xh100", "2xv5e:2x2"])
def test_a_sum_inside_a_node_or_slice_takes_its_links_and_one_between_them_the_network(name: str) -> None:
    mesh = AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    (within,), (between,) = (summed(name, mesh, (axis,)) for axis in ("model", "data"))
    assert [(row.kind, row.axes, row.size) for row in (within, between)] == [
        ("all-reduce", ("model",), 4),
        ("all-reduce", ("data",), 2),
    ]
    device = parse_target(name).device
    assert between.bytes == between.wire == 4 * (1 << 22) // 2  # of two devices each
    assert between.seconds == pytest.approx(between.wire / device.network)
    assert within.seconds is not None
    assert device.links / 2 <= within.wire / within.seconds <= device.links  # a 2x2 slice has two of four links


@pytest.mark.slow
def test_a_sum_of_two_slices_is_one_inside_each_then_one_of_its_parts_between_them(tpu) -> None:
    mesh = AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    rows = summed("2xv5e:2x2", mesh, ("data", "model"))
    assert rows.devices == 8
    parts = {row.kind: (row.axes, row.bytes) for row in rows}
    whole = 4 * (1 << 22) // 8
    assert parts == {
        "reduce-scatter": (("model",), whole),
        "all-reduce": (("data",), whole // 4),
        "all-gather": (("model",), whole // 4),
    }


@pytest.mark.slow
def test_which_of_more_slices_exchange_something_is_unknown_where_the_program_does_not_tell(tpu) -> None:
    mesh = AbstractMesh((2, 2, 4), ("a", "data", "model"), axis_types=(AxisType.Auto,) * 3)
    (row,) = summed("4xv5e:2x2", mesh, ("data",))
    assert (row.kind, row.groups, row.axes, row.seconds) == ("all-reduce", (), (), None)


@pytest.mark.slow
def test_the_summary_of_two_slices_counts_all_devices(tpu) -> None:
    mesh = AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    x = jax.ShapeDtypeStruct((64, 64), jnp.float32, sharding=NamedSharding(mesh, P("data", "model")))
    capture = ex.explore(jax.jit(lambda x: x * 2), x, target="2xv5e:2x2")
    text = capture.to_text()
    assert "8 × TPU v5e" in text.replace("\n", " ")
    assert capture.ask("how is x sharded?").certainty == "unknown"
