"""Cures of sharded programs are tried: what a finding says of one is what the program has where a person applied it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
import json, os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
import explorer as ex
from explorer.model.units import bytes_text
from tests.corpus_sharding.planted import PLANTED
from tests.corpus_sharding.programs import array, mesh_of

def cure(name):
    function, *args = next(each for each in PLANTED if each.name == name).make()
    return [finding.fix.text for finding in ex.lint(function, *args) if finding.code >= "EX033"]

def need(function, *args):
    capture = ex.explore(function, *args)
    memory = capture.memory
    taken = memory["argument"] + memory["output"] + memory["temp"] - memory["alias"]
    return [bytes_text(capture.collectives.wire), bytes_text(taken)]

def both(function, args, cured, cured_args):
    return [need(function, *args), need(cured, *cured_args)]

tensor = next(each for each in PLANTED if each.name == "both_weights_by_column").make()
rows = array(mesh_of(data=4, model=2), (4096, 512), "model")
flat, x = next(each for each in PLANTED if each.name == "output_flattened_across_the_split").make()
split = jax.jit(flat, out_shardings=NamedSharding(mesh_of(data=8), P("data")))
print(json.dumps({
    "weight": [cure("both_weights_by_column"), both(tensor[0], tensor[1:], tensor[0], (*tensor[1:3], rows))],
    "output": [cure("output_flattened_across_the_split"), both(flat, (x,), split, (x,))],
    "sorted": cure("table_sorted_whole_by_everybody"),
    "idle": cure("mesh_with_an_axis_for_nothing"),
    "gather": cure("slice_at_a_place_that_is_computed"),
}))
"""


@pytest.fixture(scope="module")
def outcomes():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "named"), [("weight", ""), ("output", " P('data')")])
def test_a_cure_brings_what_it_brings_by_hand(outcomes, case, named):
    (text,), ((sends, takes), (cured_sends, cured_takes)) = outcomes[case]
    assert text.endswith(f"; tried{named}: each device sends {sends} → {cured_sends}, takes {takes} → {cured_takes}")
    assert sends != cured_sends


def test_a_cure_that_brings_nothing_and_one_that_was_not_tried_are_named_so(outcomes):
    assert outcomes["sorted"][0].endswith("; tried: it brings nothing")
    assert outcomes["idle"][0].endswith("; not tried: which dimension to split is your choice")
    assert "; not tried: the result of this line has a different shape" in outcomes["gather"][0]
