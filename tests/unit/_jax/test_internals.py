"""A JAX that is newer than the tests is named once, in a line; the tests run on the newest that is not."""

import os
import re
import subprocess
import sys

import pytest

from explorer._jax.dispatch import untested_version
from tests.compatibility import RELEASES

SCRIPT = """
import jax
jax.__version__ = VERSION
import explorer, jax.numpy as jnp
for _ in range(2):
    print(explorer.explore(jnp.sin, jnp.ones(3)).function)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("version", "lines"), [("0.12.9", 0), ("0.13.0", 1), ("1.0.0.dev20270101+abc", 1)])
def test_a_jax_that_is_newer_than_the_newest_tested_one_is_named_once(version, lines):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", SCRIPT.replace("VERSION", repr(version))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout == "sin\nsin\n", done.stderr
    named = [line for line in done.stderr.splitlines() if "UserWarning: Explorer is tested" in line]
    assert len(named) == lines
    assert all(version in line for line in named)


def test_the_newest_release_that_is_tested_is_the_last_without_a_warning():
    newest = max(tuple(map(int, release.split(".")[:2])) for release in RELEASES)
    assert all(not untested_version(release) for release in RELEASES)
    assert untested_version(f"{newest[0]}.{newest[1] + 1}.0")
    assert re.search(rf"up to {newest[0]}\.{newest[1]},", untested_version("99.0.0"))
