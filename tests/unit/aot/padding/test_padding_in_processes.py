"""Padding where only a new process will do: with several devices, and at the end of one."""

import json
import os
import subprocess
import sys

import pytest

FOUR_DEVICES = """
import json
import jax, jax.numpy as jnp, numpy as np, explorer as ex
mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
split = jax.sharding.NamedSharding(mesh, jax.P("d"))
rows = ex.NamedDimension("rows", 4, 8, 16)
softmax = lambda x: jax.nn.softmax(x @ jnp.ones((8, 8)), 0)
spread = ex.compile(softmax, args=[ex.InputInfo((rows, 8), "float32", sharding=split)], dynamic="pad")
double = ex.compile(lambda x: x * 2, args=[ex.InputInfo((rows, 8), "float32")], dynamic="pad")
said = {"buckets": [size for (size,) in spread.padded.candidates]}
for n in (4, 12, 16):
    x = np.random.default_rng(n).normal(size=(n, 8)).astype(np.float32)
    result = spread(jax.device_put(x, split))
    said[str(n)] = [len(result.sharding.device_set), bool(np.allclose(result, softmax(x), atol=1e-6))]
x = np.ones((5, 8), np.float32)
said["committed"] = [double(jax.device_put(x, jax.devices()[0])).committed, double(jnp.asarray(x)).committed]
try:
    double(jax.device_put(x, jax.devices()[1]))
except ex.errors.InputDeviceError:
    said["elsewhere"] = "refused"
said["faults"] = [*spread.dynamic_report.faults, *double.dynamic_report.faults]
print(json.dumps(said))
"""

ENDS = """
import jax.numpy as jnp, numpy as np, explorer as ex
weights = np.random.default_rng(0).normal(size=(256, 256)).astype(np.float32) / 16
def busy(x):
    for i in range(20):
        x = jnp.tanh(x @ weights) + jnp.sort(x, -1) * i
    return x.sum(-1)
exe = ex.compile(busy, args=[ex.InputInfo(((1, 64, 1024), 256), "float32")], dynamic="pad")
for _ in range(1000):
    exe(np.ones((30, 256), np.float32))
    if exe.dynamic_report.waiting:
        print("under way")
        break
"""


def run(script, **environment):
    whole = os.environ | {"JAX_PLATFORMS": "cpu"} | environment
    return subprocess.run([sys.executable, "-c", script], env=whole, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
def test_arrays_over_several_devices_are_padded_where_they_are():
    done = run(FOUR_DEVICES, XLA_FLAGS="--xla_force_host_platform_device_count=4")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "buckets": [4, 8],
        "4": [4, True],
        "12": [4, True],
        "16": [4, True],
        "committed": [True, False],
        "elsewhere": "refused",
        "faults": [],
    }


@pytest.mark.slow
def test_a_program_ends_while_a_binary_is_compiled_in_the_background():
    done = run(ENDS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "under way\n", "")
