"""What Explorer says of a hot function is what it says of the function as it was written."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from tests.support.shells import fresh_shell, run

X = jnp.linspace(0.1, 1.0, 64 * 64).reshape(64, 64)


def chain(x):
    for _ in range(6):
        x = jnp.tanh(x @ x) * 2 + 1
    return x


@pytest.fixture
def hot(monkeypatch):
    monkeypatch.setattr("explorer.hotpath.comparison._FASTER", 0.0)
    with ex.auto_compile(background=False, seconds=0.0, threshold=3) as hot:
        hot.nominate(chain)
        for _ in range(12):
            chain(X)
        assert hot.report()["chain"].state == "compiled"
        yield hot


def test_explore_shows_the_function_as_it_is_written_and_calls_nothing(hot):
    calls = hot.report()["chain"].calls
    capture = ex.explore(chain, X)
    assert hot.report()["chain"].calls == calls
    assert hot.report()["chain"].state == "compiled"
    assert capture.function == "chain"
    assert capture.signature == "(x: f32[64,64])"
    lines = {frame.line for frame in capture.jaxpr.graph.frames if frame.file == __file__}
    assert lines == {chain.__code__.co_firstlineno + 2}
    hot.stop()
    assert ex.explore(chain, X).hlo.text == capture.hlo.text


def test_its_capture_is_that_of_the_same_program(hot):
    own, explored = hot.capture("chain"), ex.explore(chain, X)
    assert own.function == explored.function == "chain"
    assert [(n.op, n.type) for n in own.hlo.graph.nodes] == [(n.op, n.type) for n in explored.hlo.graph.nodes]


def test_profile_names_the_users_lines(hot):
    calls = hot.report()["chain"].calls
    profile = ex.profile(chain, X, seconds=0.05)
    lines = {row.line for row in profile.lines if row.seconds > 0}
    assert lines == {chain.__code__.co_firstlineno + 2}
    assert hot.report()["chain"].calls == calls


def test_time_measures_it_eagerly_though_it_runs_compiled(hot):
    calls = hot.report()["chain"].calls
    expected = np.asarray(jax.jit(chain)(X))
    compiled = hot.report()["chain"].compiled_calls
    timing = ex.time(chain, X, seconds=0.1, progress=False)
    assert timing.eager.median > 0
    # Neither counted nor served by the copy.
    assert hot.report()["chain"].calls == calls
    assert hot.report()["chain"].compiled_calls == compiled
    np.testing.assert_allclose(chain(X), expected, rtol=1e-5)


def test_compare_measures_what_runs_and_says_that_it_is_compiled(hot):
    ways = {"hot": chain, "by hand": jax.jit(chain)}
    notes = ex.compare(ways, X, seconds=0.05, check=False, progress=False).notes
    assert [note for note in notes if "`hot` runs compiled by hot paths, which are on" in note]
    hot.stop()
    notes = ex.compare(ways, X, seconds=0.05, check=False, progress=False).notes
    assert not [note for note in notes if "hot paths" in note]


def test_the_magic_shows_a_hot_function_as_it_is_written(monkeypatch):
    pytest.importorskip("IPython", reason="the magics need IPython")
    monkeypatch.setattr("explorer.hotpath.comparison._FASTER", 0.0)
    with fresh_shell("pass") as shell:
        run(shell, "%load_ext explorer\nimport jax.numpy as jnp\nx = jnp.ones((64, 64))\n"
            "def chain(x):\n    for _ in range(6):\n        x = jnp.tanh(x @ x) * 2 + 1\n    return x")  # fmt: skip
        before = run(shell, "%explore chain(x)")
        with ex.auto_compile(background=False, seconds=0.0, threshold=3) as hot:
            hot.nominate(shell.user_ns["chain"])
            run(shell, "for _ in range(12):\n    y = chain(x)")
            assert hot.report()["chain"].state == "compiled"
            calls = hot.report()["chain"].calls
            capture = run(shell, "%explore chain(x)")
            assert hot.report()["chain"].calls == calls
            assert run(shell, "%lint chain(x)").failure == ""
        assert capture.hlo.text == before.hlo.text
        assert capture.signature == before.signature == "(x: f32[64,64])"
        ex.unload_ipython_extension(shell)
