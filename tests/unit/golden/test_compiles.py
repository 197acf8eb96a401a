"""A record compiles a program once, whatever lint looks at in it."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RECORDED = """
import json, os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax
import explorer as ex
from tests.corpus_sharding.planted import both_weights_by_column

ex.record(abs, 1.0)  # rules are loaded with the first
function, *args = both_weights_by_column()
compiles = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **about: compiles.append(event) if event.endswith("backend_compile_duration") else None
)
(program,) = ex.record(function, *args).programs
recorded = len(compiles)
print(json.dumps({
    "compiles": recorded,
    "recorded": program.findings,
    "linted": [finding.rule for finding in ex.lint(function, *args)],
    "collectives": program.collectives,
}))
"""


@pytest.mark.slow
def test_a_sharded_program_is_compiled_once_and_has_the_findings_of_lint():
    done = subprocess.run(
        [sys.executable, "-c", RECORDED],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["compiles"] == 1
    assert seen["recorded"] == Counter(seen["linted"]) == {"gathered-operand": 1}
    assert any(kind.startswith("all-gather over model") for kind in seen["collectives"])
