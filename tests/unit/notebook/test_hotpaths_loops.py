"""Loops at the top of a cell under %%hotpaths: the same results, and a function that stands for what they do."""

import pytest

import explorer as ex

pytest.importorskip("IPython", reason="the magics need IPython")

import jax.numpy as jnp
import numpy as np
from IPython.utils.capture import capture_output

from explorer.model.results.hot_paths import HotPaths
from tests.support.shells import fresh_shell, run

LOOP = """
import jax.numpy as jnp
x = jnp.linspace(0.0, 1.0, 64)
def damped(x):
    return jnp.sin(x) * 0.5
for turn in range(60):
    y = jnp.tanh(x * 1.01 + 0.1)
    x = x - 0.5 * y + damped(y)
    z = y * turn
    if turn % 20 == 0:
        print(turn, y.shape)
x[0]
"""


@pytest.fixture
def ip(monkeypatch):
    monkeypatch.setattr("explorer.hotpath.comparison._FASTER", 0.0)  # however busy the machine is
    with fresh_shell("pass") as shell:
        run(shell, "%load_ext explorer")
        yield shell
        ex.unload_ipython_extension(shell)


def test_a_loop_of_the_cell_is_compiled_proposed_and_shown(ip, tmp_path):
    plain = {}
    with capture_output():
        exec(LOOP, plain)
    with capture_output() as captured:
        result = ip.run_cell(f"%%hotpaths --wait --seconds 0\n{LOOP}", store_history=True)
    result.raise_error()
    assert captured.stdout.count("(64,)") == 3
    assert ip.user_ns["turn"] == 59
    assert isinstance(ip.user_ns["y"], jnp.ndarray)
    for name in "xyz":
        np.testing.assert_allclose(ip.user_ns[name], plain[name], rtol=1e-5)
    assert not any(name.startswith(("update", "_explorer")) for name in ip.user_ns)

    report = result.result.report()
    (function,) = report.proposed
    assert function.text == (
        "def update_x(x):\n    y = jnp.tanh(x * 1.01 + 0.1)\n    x = x - 0.5 * y + damped(y)\n    return y, x"
    )
    assert (report["update_x"].state, report["update_x"].calls > 50) == ("compiled", True)
    (left,) = report.left
    assert left.reason == "`turn` is a different number in each iteration"
    assert LOOP.splitlines()[left.line - 2].strip() == "z = y * turn"  # the magic is line 1

    # Before anything ran compiled: some turns of seven operations each.
    assert report.operations > 20
    longest = max(report.repeats, key=lambda repeat: repeat.count * len(repeat.operations))
    assert {operation.name for operation in longest.operations} >= {"tanh", "sin"}
    assert longest.first_line < longest.last_line
    assert not any("update_x" in repeat.name for repeat in report.repeats)

    report.save(tmp_path / "hot.json")
    loaded = HotPaths.load(tmp_path / "hot.json")
    assert (loaded.proposed, loaded.left, loaded.repeats) == (report.proposed, report.left, report.repeats)
