"""%%hotpaths in an IPython shell of this process."""

import pytest

import explorer as ex

pytest.importorskip("IPython", reason="the magics need IPython")

from IPython.core.completer import provisionalcompleter
from IPython.utils.capture import capture_output

from explorer.hotpath.auto import active
from explorer.model.results.hot_paths import HotPaths
from tests.support.shells import fresh_shell, run

# In one cell, as people write it: IPython compiles each statement by itself.
DEFINITIONS = """\
%load_ext explorer
import jax, jax.numpy as jnp
x = jnp.ones((64, 64))
def chain(x, times=8):
    for _ in range(times):
        x = jnp.tanh(x @ x) * 2 + jnp.where(x > 1, x, jnp.exp(-x))
    return x
def loud(x):
    y = chain(x)
    print("loud")
    return y
"""
OFTEN = "for _ in range(300):\n    y = chain(x, 12).block_until_ready()"


@pytest.fixture
def ip(monkeypatch):
    monkeypatch.setattr("explorer.hotpath.comparison._FASTER", 0.0)  # however busy the machine is
    with fresh_shell("pass") as shell:
        run(shell, DEFINITIONS)
        yield shell
        ex.unload_ipython_extension(shell)


def shown(ip, cell):
    """The cell's value, and what was printed and displayed."""
    with capture_output() as captured:
        result = ip.run_cell(cell, store_history=True)
    result.raise_error()
    return result.result, captured


@pytest.mark.slow
def test_a_function_of_a_cell_runs_compiled_and_is_what_it_was_afterwards(ip):
    code = ip.user_ns["chain"].__code__
    hot, _ = shown(ip, f"%%hotpaths --wait --seconds 0\n{OFTEN}")
    row = hot.report()["chain"]
    assert row.state == "compiled", hot
    assert row.compiled_calls > 100
    assert ip.user_ns["chain"].__code__ is code
    assert active() is None
    assert jnp_equal(ip.user_ns["y"], ip.user_ns["chain"](ip.user_ns["x"], 12))


def jnp_equal(one, two):
    return bool(abs(one - two).max() < 1e-4)


def test_functions_that_the_cell_itself_defines_run_compiled_too_magics_beside_them(ip):
    body = "    for _ in range(12): x = jax.numpy.sin(x) + jax.numpy.cos(x @ x)\n    return x"
    cell = f"%pwd\nimport jax\ndef wave(x):\n{body}"
    hot, _ = shown(ip, f"%%hotpaths --wait --seconds 0\n{cell}\n{OFTEN.replace('chain(x, 12)', 'wave(x)')}")
    row = hot.report()["wave"]
    assert row.state == "compiled", hot
    assert row.line == 4, "as the cell was typed, its magic being line 1"


def test_what_stays_as_written_has_the_line_of_the_cell(ip):
    hot, captured = shown(ip, "%%hotpaths --seconds 0\nfor _ in range(400):\n    _ = loud(x).block_until_ready()")
    row = hot.report()["loud"]
    assert (row.state, row.reason_line) == ("eager", 10), hot
    assert captured.stdout.count("loud\n") == 400


def test_the_capture_is_of_the_function_as_it_was_written(ip):
    hot, _ = shown(ip, f"%%hotpaths --wait --seconds 0\n{OFTEN}")
    capture = hot.capture("chain")
    assert (capture.function, capture.line) == ("chain", 4)
    assert capture.signature == "(x: f32[64,64])"
    assert capture.nodes_at(6, stage="hlo")
    with pytest.raises(ex.errors.UnknownNameError, match="Did you mean `chain`"):
        hot.capture("chian")


def test_it_is_kept_under_a_name_and_written_to_files(ip, tmp_path):
    files = [tmp_path / name for name in ("hot.result", "hot.html")]
    hot, _ = shown(ip, f"%%hotpaths --wait --seconds 0 --save {files[0]} --html {files[1]} kept\n{OFTEN}")
    assert ip.user_ns["kept"] is hot
    assert HotPaths.load(files[0]).functions == hot.report().functions
    assert "explorer-hot" in files[1].read_text()


def test_the_value_of_the_last_expression_is_displayed_and_an_error_is_the_cells_own(ip):
    _, captured = shown(ip, "%%hotpaths\n1 + 41")
    assert "42" in captured.stdout + "".join(output.data["text/plain"] for output in captured.outputs)
    with capture_output():
        result = ip.run_cell("%%hotpaths\nx = 1\n1 / 0", store_history=True)
    with pytest.raises(ZeroDivisionError):
        result.raise_error()
    assert active() is None


@pytest.mark.parametrize("line", ["--threshold many", "--treshold 3", "chain(x)"])
def test_mistakes_say_what_is_allowed(ip, line):
    with capture_output():
        result = ip.run_cell(f"%%hotpaths {line}\n1", store_history=True)
    with pytest.raises(ex.errors.ExpressionError, match="Hint"):
        result.raise_error()


@pytest.mark.slow
def test_options_complete(ip):
    with provisionalcompleter():
        texts = {completion.text for completion in ip.Completer.completions("%%hotpaths --", 13)}
    assert {"--threshold", "--wait", "--html"} <= {text.strip() for text in texts}
