"""One program gives one file: run after run, process after process, whatever order Python's sets have."""

import os
import subprocess
import sys

import pytest

REPEATS = """\
import sys, hashlib, gc
import jax, jax.numpy as jnp
import explorer as ex
from explorer.files.golden import to_toml
from tests.examples.training import training_step

def attention(q, k, v):
    weights = jax.nn.softmax(q @ k.T / 8)
    print("traced", len(weights.shape))
    return weights @ v

step, arguments = training_step(1)
x = jnp.ones((16, 32))
for turn in range(int(sys.argv[1])):
    jax.clear_caches()
    files = to_toml(ex.record(attention, x, x, x)), to_toml(ex.record(step, *arguments)) if turn == 0 else ""
    print(*(hashlib.sha256(file.encode()).hexdigest() for file in files if file), file=sys.stderr)
"""


@pytest.mark.slow
def test_fifty_records_of_a_program_are_the_same_file(tmp_path):
    script = tmp_path / "repeats.py"
    script.write_text(REPEATS)
    attention, training = set(), set()
    for seed in range(5):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run([sys.executable, script, "10"], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        first, *others = (line.split() for line in done.stderr.splitlines() if len(line.split()[0]) == 64)
        assert len(others) == 9
        attention |= {first[0], *(line[0] for line in others)}
        training.add(first[1])
    assert (len(attention), len(training)) == (1, 1)
