"""compile(mesh=…): a PartitionSpec is meant of the mesh, and what has no devices is refused."""

import os
import subprocess
import sys
from functools import cache

import jax
import pytest

import explorer as ex

PROGRAM = """
import jax, jax.numpy as jnp, numpy as np, explorer as ex
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

auto = (AxisType.Auto,) * 2
mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=auto)
planned, other = AbstractMesh((4, 2), ("data", "model"), axis_types=auto), AbstractMesh((8,), ("data",))
SPLIT = ex.InputInfo((8, 16), "float32", sharding=P("data"))
over_none = NamedSharding(planned, P("data"))
whole = NamedSharding(mesh, P(None, "model"))
x, w = np.arange(128, dtype="float32").reshape(8, 16) / 99, np.ones((16, 4), "float32")

def layer(x, w):
    return jnp.tanh(x @ w)

def compiled(x_sharding, w_sharding=None, shape=(8, 16), **options):
    infos = [ex.InputInfo(shape, "float32", sharding=x_sharding), ex.InputInfo((16, 4), "float32", sharding=w_sharding)]
    return ex.compile(layer, args=infos, **options)

def tell(name, make):
    try:
        print(f"{name}\\t{make()!r}".replace("\\n", "\\v"))
    except ex.ExplorerError as error:
        print(f"{name}\\t{type(error).__name__}: {error}".replace("\\n", "\\v"))

def around():
    with jax.set_mesh(mesh):
        return compiled(P("data")).input_infos["x"].sharding == NamedSharding(mesh, P("data"))

def explored():
    with jax.set_mesh(mesh):
        return ex.explore(layer, SPLIT, w).hlo.graph.attributes["num_partitions"]

def run():
    exe = compiled(P("data"), P(None, "model"), mesh=mesh)
    result = exe(jax.device_put(x, NamedSharding(mesh, P("data"))), jax.device_put(w, whole))
    return np.allclose(result, np.tanh(x @ w)), result.sharding.spec, len(result.sharding.device_set)

tell("run", run)
tell("around", around)
tell("explored", explored)
tell("abstract, meant of", lambda: compiled(over_none, mesh=mesh).input_infos["x"].sharding.mesh == mesh)
tell("sizes vary", lambda: str(compiled(P("data"), shape=((8, 16, 32), 16), mesh=mesh)))
tell("no mesh", lambda: compiled(P("data")))
tell("no mesh to explore", lambda: ex.explore(layer, SPLIT, w))
tell("no such axis", lambda: compiled(P("rows"), mesh=mesh))
tell("abstract mesh", lambda: compiled(P("data"), mesh=planned))
tell("abstract", lambda: compiled(over_none))
struct = jax.ShapeDtypeStruct((8, 16), "float32", sharding=over_none)
tell("abstract struct", lambda: ex.compile(layer, args=[struct, w]))
tell("other axes", lambda: compiled(NamedSharding(other, P("data")), mesh=mesh))
tell("uneven", lambda: compiled(P("data"), shape=(6, 16), mesh=mesh))
tell("no mesh at all", lambda: compiled(None, mesh=8))
"""


OF_X = "InputInfoError: argument `x`: the sharding "


@cache
def outcomes() -> dict[str, str]:
    eight = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=eight, capture_output=True, text=True, check=True)
    return dict(line.replace("\v", "\n").split("\t", 1) for line in done.stdout.split("\n") if line)


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("run", "(True, P('data', 'model'), 8)"),
        ("around", "True"),
        ("explored", "'8'"),
        ("abstract, meant of", "True"),
        ("sizes vary", "'Executable(layer(x: f32[x_0,16], w: f32[16,4]) → f32[x_0,4])'"),
    ],
)
def test_a_program_is_compiled_for_the_mesh_that_is_given(name: str, outcome: str) -> None:
    assert outcomes()[name].replace("PartitionSpec(", "P(") == outcome


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("no mesh", f"{OF_X}is P('data'), and no mesh defines the devices of its axes."),
        (
            "no mesh to explore",
            "InputInfoError: the sharding is P('data'), and no mesh defines the devices of its axes.",
        ),
        ("no such axis", f"{OF_X}P('rows') names the axis 'rows', and the mesh has data=4, model=2."),
        ("abstract mesh", "OptionError: mesh is an AbstractMesh (data=4, model=2), which has no devices to run on."),
        ("abstract", f"{OF_X}P('data') is over an AbstractMesh, which has no devices to run on."),
        ("abstract struct", f"{OF_X}P('data') is over an AbstractMesh, which has no devices to run on."),
        ("other axes", f"{OF_X}P('data') is over a mesh of data=8, and mesh= is one of data=4, model=2."),
        ("uneven", f"{OF_X}doesn't fit the shape (6, 16): "),
        ("no mesh at all", "OptionError: mesh is int; allowed is a jax.sharding.Mesh."),
    ],
)
def test_what_says_no_devices_is_refused_with_a_hint(name: str, outcome: str) -> None:
    first, _, hint = outcomes()[name].partition("\n")
    assert first.startswith(outcome)
    assert hint.startswith("  Hint: ")
    if "devices" in outcome and "abstract" in name:
        assert "target='8xh100'" in hint


def test_a_spec_has_no_more_entries_than_the_shape_has_dimensions() -> None:
    with pytest.raises(ex.errors.InputInfoError, match=r"P\('x', None\) has 2 dimensions, and the shape \(8,\) has 1"):
        ex.InputInfo((8,), "float32", sharding=jax.P("x", None))


def test_a_device_that_is_none_of_the_default_ones_can_t_be_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the CPU of a machine with a GPU."""
    info = ex.InputInfo((8,), "float32", sharding=jax.sharding.SingleDeviceSharding(jax.devices()[0]))
    monkeypatch.setattr(jax, "devices", lambda: [])
    with pytest.raises(ex.errors.InputInfoError, match="can't be saved"):
        info.to_json()
