"""Programs for eight devices: what is replicated by mistake is found on its line, and nothing where all is as meant."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def outcomes(kind, *names):
    done = subprocess.run(
        [sys.executable, "-m", "tests.corpus_sharding", kind, *names],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def is_right(outcome) -> bool:
    hits = [text for rule, _, text in outcome["found"] if rule == outcome["rule"]]
    return not outcome["faults"] and any(outcome["marker"] in text for text in hits)


@pytest.mark.slow
def test_a_mistake_is_found_on_its_line():
    """One of the programs; all of them are slow."""
    names = "batch_passed_whole_and_split_inside", "slice_at_a_place_that_is_computed"
    found = outcomes("planted", *names)
    assert len(found) == len(names)
    assert all(map(is_right, found)), found


@pytest.mark.slow
def test_a_program_whose_data_is_split_as_meant_has_none():
    (outcome,) = outcomes("clean", "tensor_parallel_in_explicit_mode")
    assert (outcome["found"], outcome["faults"]) == ([], [])


EXPLORED = """
import json, os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import explorer as ex
from tests.corpus_sharding.planted import both_weights_by_column

function, *args = both_weights_by_column()
capture = ex.explore(function, *args)
again = ex.Capture.load(capture.save("one.capture") or "one.capture")
hlo = again.hlo.graph
import jax, jax.numpy as jnp
from tests.corpus_sharding.programs import mesh_of
split = jax.NamedSharding(mesh_of(x=8), jax.P("x"))
whole = [jax.device_put(jnp.ones(size), split) for size in (250_000, 249_992)]
on_one = {
    "large": (jnp.zeros_like, whole[0]), "small": (jnp.zeros_like, whole[1]),
    "two": (lambda w: (jnp.zeros_like(w), jnp.zeros_like(w)), whole[1]),
    "used": (lambda w: jnp.zeros_like(w) + w.sum(), whole[0]),
    "given back": (lambda w: (jnp.zeros_like(w), w), whole[0]),
    "asked for": (jax.jit(jnp.zeros_like, out_shardings=split), whole[0]),
    "not split": (jnp.zeros_like, jnp.ones(250_000)),
}
inputs = [ex.InputInfo(array.shape, array.dtype, sharding=array.sharding) for array in args]
ahead = {"compile": ex.compile(function, args=inputs).explore(), "jit": ex.jit(function).explore(*args)}
gather = next(node for node in hlo.nodes if node.op == "all-gather")
outputs = {name: ex.lint(*call, rules="replicated-output") for name, call in on_one.items()}
print(json.dumps({
    "on one": {name: [[each.message, each.evidence] for each in found] for name, found in outputs.items()},
    "findings": [[finding.rule, finding.text] for finding in again.findings],
    "ahead": {name: [[finding.rule, finding.text] for finding in one.findings] for name, one in ahead.items()},
    "linted": [[finding.rule, finding.text] for finding in ex.lint(function, *args) if finding.code >= "EX033"],
    "before": [again.shardings.way_of(gather.operands[0].index), *again.shardings.of(gather.operands[0])],
    "after": [again.shardings.way_of(gather.index), *again.shardings.of(gather)],
    "asked": [again.ask(f"{text}?").text for text in ("what is gathered", "how is down sharded", "collectives")],
    "weight": again.shardings.way_of(next(node for node in hlo.nodes if node.scope == "down").index),
}))
"""


@pytest.mark.slow
def test_a_capture_of_several_devices_has_the_findings_of_lint_and_how_each_value_lies(tmp_path):
    """The corpus marks the line; the shardings are those that the program was given, and what a gather does to one."""
    done = subprocess.run(
        [sys.executable, "-c", EXPLORED],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["findings"] == shown["linted"] == [["gathered-operand", "return h @ down  # HERE"]]
    assert shown["ahead"] == {"compile": shown["linted"], "jit": shown["linted"]}
    assert shown["before"] == ["split along data, model", "f32[4096@data,4096@model]"]
    assert shown["after"] == ["split along data", "f32[4096@data,4096]"]
    assert shown["weight"] == "split along model"
    whole, weight, sent = shown["asked"]
    # Of 16.8 MB that two devices make whole each sends its half.
    assert whole.startswith("1 array is gathered: all-gather along model for line")
    assert "(each device sends 8.4 MB)" in whole
    assert "an operand of this product is gathered whole" in whole
    # Outputs of a million bytes or more that nothing split takes part in, and that nobody asked for elsewhere.
    text = "nothing that is split over the 8 devices is used here, so all outputs come back on one device"
    made = "`result[0]` is computed from arrays that aren't split: each of the 8 devices has all of it"
    assert {name: found for name, found in shown["on one"].items() if found} == {
        "large": [[text, "1.0 MB of outputs, on one device"]],
        "two": [[text, "2.0 MB of outputs, on one device"]],
        "given back": [[made, "1.0 MB on each of 8 devices"]],  # what is split is used, and so there are 8 devices
    }
    assert weight == "On 8 devices (data 4 × model 2) down is f32[4096,512@model]: split along model."
    assert "sends 8.4 MB (100%)" in sent


@pytest.mark.slow
def test_every_mistake_is_found_on_its_line():
    found = outcomes("planted")
    assert len(found) >= 20
    assert [each for each in found if not is_right(each)] == []


@pytest.mark.slow
def test_no_program_that_is_as_meant_has_a_finding():
    found = outcomes("clean")
    assert len(found) >= 20
    assert [each for each in found if each["found"] or each["faults"]] == []
