"""%jtime and %jprofile, as lines and on top of cells, in an IPython shell of this process."""

import pytest

import explorer as ex

pytest.importorskip("IPython", reason="the magics need IPython")

from IPython.core.completer import provisionalcompleter
from IPython.utils.capture import capture_output

from tests.support.shells import fresh_shell, run

DEFINITIONS = """
import jax, jax.numpy as jnp
x = jnp.ones((16, 16))
@jax.jit
def twice(x, seconds=1):
    return jnp.tanh(x) @ x * seconds
"""
FAST = "--seconds 0.02"


@pytest.fixture
def shell():
    with fresh_shell(DEFINITIONS) as shell:
        yield shell


@pytest.fixture
def ip(shell):
    run(shell, "%load_ext explorer")
    return shell


def test_a_line_is_timed_and_the_timing_is_its_value(ip):
    timing = run(ip, f"%jtime {FAST} twice(x)")
    assert isinstance(timing, ex.Timing)
    assert timing.function == "twice"
    assert timing.eager is not None
    assert timing.steady.median > 0


def test_a_line_is_profiled_and_its_lines_are_those_of_the_cell(ip):
    run(ip, "def late(x):\n    y = jnp.sin(x)\n    return jnp.sort(y @ y, axis=0)")
    found = run(ip, "%jprofile --runs 3 late(x)")
    assert isinstance(found, ex.Profile)
    assert 0 < found.runs <= 3
    assert {line.line for line in found.lines} <= {2, 3}
    assert "return jnp.sort(y @ y, axis=0)" in {line.text for line in found.lines}


def test_an_assignment_keeps_what_was_measured(ip):
    run(ip, f"timing = %jtime {FAST} twice(x)")
    run(ip, "found = %jprofile --runs 2 twice(x)")
    assert isinstance(ip.user_ns["timing"], ex.Timing)
    assert isinstance(ip.user_ns["found"], ex.Profile)


@pytest.mark.parametrize("magic", [f"%%jtime {FAST}", "%%jprofile --runs 2"])
def test_a_cell_runs_once_but_for_its_last_call_whose_value_is_kept(ip, magic):
    found = run(ip, f"{magic}\nseen = [*globals().get('seen', []), 1]\nz = x + 1\ny = twice(z)")
    assert found.function == "twice"
    assert run(ip, "seen") == [1]
    assert run(ip, "jnp.allclose(y, twice(x + 1))")


def test_eager_calls_can_be_left_out(ip):
    assert run(ip, f"%jtime {FAST} --no-eager twice(x)").eager is None


@pytest.mark.parametrize("magic", [f"%jtime {FAST} --no-eager", "%jprofile --runs 2"])
def test_a_call_can_have_arguments_with_the_names_of_options(ip, magic):
    assert run(ip, f"{magic} twice(x, seconds=3)") is not None


def test_donated_arguments_survive(ip):
    run(ip, "give = jax.jit(lambda x: x + 1, donate_argnums=0)")
    run(ip, f"%jtime {FAST} --no-eager give(x)")
    run(ip, "%jprofile --runs 2 give(x)")
    assert run(ip, "float(x.sum())") == 256


def test_the_chart_of_a_timing_is_written_when_asked_for(ip, tmp_path):
    pytest.importorskip("plotly", reason="it draws the chart")
    run(ip, f"%jtime {FAST} --no-eager --html {tmp_path / 'time.html'} twice(x)")
    assert "twice" in (tmp_path / "time.html").read_text()


def test_what_was_measured_is_shown_where_it_cannot_be_written(ip, tmp_path):
    folder = tmp_path / "there"
    folder.mkdir()
    run(ip, f"import shutil\ndef away(x):\n    shutil.rmtree({str(folder)!r}, ignore_errors=True)\n    return x + 1")
    with capture_output() as shown, pytest.raises(ex.errors.ExpressionError, match="could not be written"):
        ip.run_cell(f"%jprofile --runs 2 --html {folder / 'p.html'} away(x)").raise_error()
    assert "away" in str(shown.outputs[0].data)


def test_pages_and_traces_of_a_profile_are_written_when_asked_for(ip, tmp_path):
    run(ip, f"%jprofile --runs 2 --html {tmp_path / 'p.html'} --perfetto {tmp_path / 'p.json'} twice(x)")
    assert "twice" in (tmp_path / "p.html").read_text()
    assert "traceEvents" in (tmp_path / "p.json").read_text()


def test_in_a_function_its_own_names_are_known(ip):
    run(ip, "def inside(v):\n    return get_ipython().run_line_magic('jprofile', '--runs 2 twice(v)')\nf = inside(x)")
    assert ip.user_ns["f"].function == "twice"


@pytest.mark.parametrize(
    ("cell", "match"),
    [
        ("%jtime", "%jtime takes one call"),
        ("%jprofile x + 1", "%jprofile takes one call"),
        ("%jtime twice(", "run again and again"),
        ("%jprofile --unknown 3 twice(x)", "--unknown"),
        ("%jtime --seconds soon twice(x)", "soon"),
        ("%jtime --seconds -1 twice(x)", "seconds"),
        ("%jprofile --runs 0 twice(x)", "runs=0"),
        ("%jprofile --html /nowhere/f.html twice(x)", "there is no folder"),
        ("%%jtime twice(x)\ntwice(x)", "only options on its first line"),
        ("%%jprofile\n1 + 1", "a cell that ends in a call"),
        ("%jtime twice(x).block_until_ready()", "waits for results itself"),
        ("%jtime 3(x)", "it got int"),
    ],
)
@pytest.mark.filterwarnings("ignore:'int' object is not callable:SyntaxWarning")
def test_what_cannot_be_measured_is_refused_with_a_hint(ip, cell, match):
    with capture_output(), pytest.raises(ex.ExplorerError, match=match):
        ip.run_cell(cell, store_history=True).raise_error()


@pytest.mark.slow
def test_an_error_of_the_call_points_at_the_cell(ip):
    with capture_output(), pytest.raises(TypeError) as caught:
        ip.run_cell("%%jprofile --runs 2\nz = x\ntwice(z @ jnp.ones(3))", store_history=True).raise_error()
    lines = [(step.path, step.lineno + 1) for step in caught.traceback if "ipython-input" in str(step.path)]
    assert lines[-1][1] == 3


def completions(ip, text):
    with provisionalcompleter():
        return {one.text for one in ip.Completer.completions(text, len(text))}


def test_options_and_functions_are_completed(ip):
    assert {"twice", "--seconds", "--no-eager"} <= completions(ip, "%jtime ")
    assert {"twice", "--runs", "--perfetto", "--roofline"} <= completions(ip, "%jprofile ")
    assert {"twice", "--seconds"} <= completions(ip, "%jtime --no-eager ")
    assert "--html" in completions(ip, "%%jprofile ")
    assert "x" in completions(ip, "%jprofile --roofline twice(x")


def test_unloading_takes_away_what_loading_added_and_no_more(shell):
    before = {kind: set(table) for kind, table in shell.magics_manager.magics.items()}
    run(shell, "%load_ext explorer")
    assert all({"jtime", "jprofile"} <= set(shell.magics_manager.magics[kind]) for kind in ("line", "cell"))
    run(shell, "%unload_ext explorer")
    assert {kind: set(table) for kind, table in shell.magics_manager.magics.items()} == before
    assert not {"%jtime", "%%jprofile"} & set(shell.strdispatchers["complete_command"].strs)
