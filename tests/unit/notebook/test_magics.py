"""%explore and %%explore in an IPython shell of this process."""

import linecache
import re
import resource
import subprocess
import sys

import jax
import pytest

import explorer as ex

pytest.importorskip("IPython", reason="the magics need IPython")

from IPython.core.completer import provisionalcompleter
from IPython.utils.capture import capture_output

from tests.support.shells import fresh_shell, run

DEFINITIONS = """
import jax, jax.numpy as jnp
x = jnp.ones((4, 4))
runs = []
def layer(x, scale=1):
    runs.append(1)
    return jnp.tanh(x) * scale
def branch(x):
    return x if x.sum() > 0 else -x
"""


@pytest.fixture
def shell():
    with fresh_shell(DEFINITIONS) as shell:
        yield shell


@pytest.fixture
def ip(shell):
    run(shell, "%load_ext explorer")
    return shell


def failing(ip, cell, error, match=None):
    """Run a cell that must fail; give the error, and all that was printed and displayed."""
    with capture_output() as shown:
        result = ip.run_cell(cell, store_history=True)
    with pytest.raises(error, match=match) as caught:
        result.raise_error()
    return caught.value, shown


def displayed(shown):
    """What a person without a browser sees of a cell's output."""
    return shown.stdout + "".join(output.data["text/plain"] for output in shown.outputs)


def frames(capture):
    return {frame for node in capture.jaxpr.graph.nodes for frame in node.source}


def state(ip):
    """All that loading may change in a shell."""
    return (
        {kind: dict(table) for kind, table in ip.magics_manager.magics.items()},
        dict(ip.magics_manager.registry),
        list(ip.configurables),
        {key: list(chain.chain) for key, chain in ip.strdispatchers["complete_command"].strs.items()},
        {name for name in ip.user_ns if not name.startswith("_")},
    )


# --- loading


def test_loading_twice_and_unloading_once_leaves_nothing(shell):
    before = state(shell)
    ex.load_ipython_extension(shell)
    ex.load_ipython_extension(shell)
    assert len(shell.strdispatchers["complete_command"].strs["%explore"].chain) == 1
    assert shell.find_line_magic("explore")
    ex.unload_ipython_extension(shell)
    assert state(shell) == before
    ex.unload_ipython_extension(shell)
    assert state(shell) == before


def test_unloading_gives_back_a_magic_whose_name_was_taken(shell):
    @shell.magics_manager.register_function
    def explore(line):
        return "somebody else's"

    before = state(shell)
    ex.load_ipython_extension(shell)
    assert isinstance(run(shell, "%explore layer(x)"), ex.Capture)
    ex.unload_ipython_extension(shell)
    assert state(shell) == before
    assert run(shell, "%explore layer(x)") == "somebody else's"


def test_unloading_leaves_a_magic_that_took_the_name_later(ip):
    def explore(line):
        return "somebody else's"

    ip.register_magic_function(explore, "line")
    ex.unload_ipython_extension(ip)
    assert run(ip, "%explore layer(x)") == "somebody else's"
    assert ip.find_cell_magic("explore") is None


def test_it_loads_unloads_and_reloads_silently(shell):
    for command in ("load_ext", "reload_ext", "unload_ext", "load_ext"):
        with capture_output() as shown:
            shell.run_cell(f"%{command} explorer").raise_error()
        assert (shown.stdout, shown.stderr, shown.outputs) == ("", "", [])
    assert isinstance(run(shell, "%explore layer(x)"), ex.Capture)


def test_loading_imports_nothing_but_the_magics():
    program = """
import sys, warnings, explorer
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
shell = InteractiveShell(config=Config(HistoryManager={"enabled": False}))
assert "explorer.notebook.magics" not in sys.modules
before = set(sys.modules)
shell.run_cell("%load_ext explorer").raise_error()
new = {name.partition(".")[0] for name in set(sys.modules) - before}
assert "explorer.notebook.magics" in sys.modules
print(*sorted(new - {"explorer", "IPython"} - sys.stdlib_module_names))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_importing_explorer_does_not_import_ipython():
    program = "import sys, explorer; print('IPython' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# --- %explore


def test_the_magic_returns_the_capture_of_a_call_that_is_not_made(ip):
    capture = run(ip, "%explore layer(x, scale=2)")
    assert repr(capture) == "Capture(layer: jaxpr → stablehlo → hlo)"
    assert ip.user_ns["runs"] == [1]  # traced once


def test_an_assigned_capture_is_not_displayed(ip):
    with capture_output() as shown:
        ip.run_cell("capture = %explore layer(x)").raise_error()
    assert (shown.stdout, shown.outputs) == ("", [])
    assert isinstance(ip.user_ns["capture"], ex.Capture)


def test_a_capture_that_is_not_assigned_is_displayed_once(ip):
    with capture_output() as shown:
        ip.run_cell("%explore layer(x)").raise_error()
    assert displayed(shown).count("Capture(layer:") == 1


def test_starred_arguments_are_those_of_the_call(ip):
    capture = run(ip, "%explore layer(*[x], **{'scale': 3})")
    assert "mul" in {node.op for node in capture.jaxpr.graph.nodes}
    failing(ip, "%explore layer(x, scale=1, **{'scale': 3})", TypeError, "multiple values")


def test_quotes_spaces_dollars_and_comments_in_the_call_are_pythons(ip):
    run(ip, "tables = {'a  b $x {x}': x}")
    capture = run(ip, """%explore layer(tables['a  b $x {x}'], scale=len("it's"))  # isn't it --save""")
    assert capture.function == "layer"


def test_the_callee_may_be_any_expression(ip):
    assert run(ip, "%explore jax.jit(jax.grad(lambda x: layer(x).sum()))(x)").hlo


def test_in_a_function_it_sees_the_local_names(ip):
    run(ip, "def inside(value):\n    k = 2.0\n    made = %explore (lambda v: jnp.sin(v) * k)(value)\n    return made")
    capture = run(ip, "inside(x)")
    assert {node.op for node in capture.jaxpr.graph.nodes} >= {"sin", "mul"}
    assert {frame.line for frame in frames(capture)} == {3}
    assert "k" not in ip.user_ns


def test_a_lambda_in_the_call_is_found_at_its_place_in_the_cell(ip):
    capture = run(ip, "import math\n%explore (lambda v: jnp.sin(v))(x)")
    (frame,) = frames(capture)
    source = capture.sources[frame.file]
    assert source.label == f"cell [{ip.execution_count - 1}]"
    assert source.text.splitlines()[frame.line - 1][frame.column : frame.end_column] == "jnp.sin(v)"


def test_nothing_hidden_is_left_in_the_users_names(ip):
    before = set(ip.user_ns)
    for cell in ("%explore layer(x)", "%explore branch(x)", "%%explore\nlayer(x)", "%%explore\nbranch(x)"):
        with capture_output():
            ip.run_cell(cell)
    assert {name for name in set(ip.user_ns) - before if not re.fullmatch(r"_+|_\d+", name)} == set()  # IPython's own


# --- %%explore


CELL = """%%explore

def inner(v):
    return jnp.sin(v)
def outer(v):
    return inner(v) + 1
outer(x)"""


def test_a_cell_runs_but_for_its_last_call_which_is_explored(ip):
    capture = run(ip, CELL)
    assert repr(capture) == "Capture(outer: jaxpr → stablehlo → hlo)"
    assert callable(ip.user_ns["outer"])


def test_frames_lead_to_the_cell_and_the_lines_that_the_person_sees(ip):
    capture = run(ip, CELL)
    source = capture.sources[ip.user_ns["outer"].__code__.co_filename]
    assert source.text.rstrip("\n") == CELL
    assert source.label == f"cell [{ip.execution_count - 1}]"
    assert {frame.file for frame in frames(capture)} == {source.file}
    sin = next(node for node in capture.jaxpr.graph.nodes if node.op == "sin")
    assert [(frame.function, frame.line) for frame in sin.source] == [("inner", 4), ("outer", 6)]
    assert "sin" in {node.op for node in capture.nodes_at(4, "jaxpr")}
    assert "sine" in {node.op for node in capture.nodes_at(4)} | {node.op for node in capture.nodes_at(6)}


def test_an_assigned_call_is_explored_and_made(ip):
    capture = run(ip, "%%explore\ny = layer(x, 3)")
    assert isinstance(capture, ex.Capture)
    assert (ip.user_ns["y"] == 3 * jax.numpy.tanh(1.0)).all()


@pytest.mark.parametrize(
    "statement", ["d['k'] = layer(x)", "d['k']: object = layer(x)", "d['k'] += layer(x)", "a = d['k'] = layer(x)"]
)
def test_every_form_of_assignment_keeps_its_meaning(ip, statement):
    capture = run(ip, f"%%explore\nd = {{'k': 0}}\n{statement}")
    assert capture.function == "layer"
    assert ip.user_ns["d"]["k"].shape == (4, 4)


def test_arguments_of_an_assigned_call_are_evaluated_once(ip):
    run(ip, "%%explore\nfeed = iter([x, 'never'])\ny = layer(next(feed))")
    assert next(ip.user_ns["feed"]) == "never"


def test_a_value_is_assigned_even_where_the_call_can_not_be_compiled(ip):
    error, shown = failing(ip, "%%explore\ny = branch(x)", ex.errors.ExploreError)
    assert (ip.user_ns["y"] == 1).all()
    assert shown.outputs == []
    assert isinstance(error.__cause__, jax.errors.TracerBoolConversionError)


def test_a_cell_with_magics_and_blank_lines_keeps_its_line_numbers(ip):
    capture = run(ip, "%%explore\n\n   \nhere = %pwd\ndef f(v):\n    return jnp.cos(v)\nf(x)")
    assert {frame.line for frame in frames(capture)} == {6}
    assert isinstance(ip.user_ns["here"], str)


def test_an_error_of_the_cells_own_comes_as_it_is_at_its_line(ip):
    error, shown = failing(ip, "%%explore\nfine = 1\nmissing + 1\nlayer(x)", NameError)
    assert ip.user_ns["fine"] == 1
    assert "----> 3 missing + 1" in plain(shown.stdout)
    error, _ = failing(ip, "%%explore\nfine = 2\nif fine\n    layer(x)", SyntaxError)
    assert error.lineno == 3
    assert ip.user_ns["fine"] == 1


def test_called_by_a_program_it_does_not_touch_the_programs_text(ip):
    program = 'z = 1\ncapture = get_ipython().run_cell_magic("explore", "", "layer(x)")\n'
    run(ip, program)
    file = next(f for f, n in ip.compile._filename_map.items() if n == ip.execution_count - 1)
    assert "".join(linecache.getlines(file)) == program


# --- errors


def test_the_passes_are_recorded_where_they_are_asked_for(ip, monkeypatch):
    monkeypatch.setattr("explorer.capture.recording._READ_IN_A_SECOND", 1)  # as if the program were a large one
    assert not run(ip, "%explore layer(x)").has_passes
    assert run(ip, "%explore --passes layer(x)").has_passes
    assert run(ip, "%%explore --passes\nlayer(x)").passes.all


def plain(text):
    return re.sub(r"\x1b\[[\d;]*m", "", text)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "given:  nothing"),
        ("layer", "given:  layer"),
        ("x + 1", r"given:  x \+ 1"),
        ("y = layer(x)", "given:  y = layer"),
        ("layer(x); layer(x)", "given:  layer"),
        ("layer(x", "'\\(' was never closed"),
        ("await layer(x)", "given:  await"),
        ("layer(x).block_until_ready()", r"leave the waiting out: layer\(x\)"),
        ("--stage hlo layer(x)", "unrecognized arguments: --stage hlo"),
        ("--save", "expected one argument"),
        ("--save nowhere/at/all layer(x)", "there is no folder 'nowhere/at'"),
        ("--html . layer(x)", "'.' is a folder"),
        (f"--save {'long' * 99} layer(x)", "File name too long"),
    ],
)
def test_what_is_no_call_is_refused_before_anything_runs(ip, line, says):
    error, _ = failing(ip, f"%explore {line}", ex.ExplorerError, says)
    assert isinstance(error, ValueError)
    assert "Hint: " in str(error)
    assert ip.user_ns["runs"] == []


@pytest.mark.parametrize("cell", ["runs.append(2)\nz = 1", "runs.append(2)\ndef f(): pass", "# nothing", " "])
def test_a_cell_that_ends_in_no_call_is_refused_before_anything_runs(ip, cell):
    failing(ip, f"%%explore\n{cell}\n", ex.ExplorerError, "takes a cell that ends in a call")
    assert ip.user_ns["runs"] == []


def test_a_call_on_the_first_line_of_a_cell_is_refused(ip):
    failing(ip, "%%explore layer(x)\nruns.append(2)", ex.ExplorerError, r"write %explore layer\(x\)")
    assert ip.user_ns["runs"] == []


def test_a_trace_that_fails_shows_what_is_known_and_ends_on_the_users_line(ip):
    cell = "%%explore\ndef f(v):\n    w = jnp.sin(v)\n    return w if w.sum() > 0 else -w\nf(x)"
    error, shown = failing(ip, cell, ex.errors.TracedValueError, "needs a value")
    assert shown.outputs == []  # there is no stage to look at
    assert repr(error.capture).startswith("Capture(f: nothing (trace failed")
    assert isinstance(error.__cause__, jax.errors.TracerBoolConversionError)
    places = [line for line in plain(shown.stdout).splitlines() if line.startswith("---->")]
    assert places[-1] == "----> 4     return w if w.sum() > 0 else -w"
    assert "----> 5 f(x)" in places
    assert isinstance(run(ip, "%explore layer(x)"), ex.Capture)


def test_a_compile_that_fails_shows_the_stages_before_it(ip):
    cell = """%%explore
def unknown(v):
    return jax.ffi.ffi_call("no_such_target", jax.ShapeDtypeStruct(v.shape, v.dtype))(v)
unknown(x)"""
    error, shown = failing(ip, cell, ex.errors.ExploreError, "compile failed")
    assert "Capture(unknown: jaxpr → stablehlo" in displayed(shown)
    assert error.capture.stablehlo.text


def test_arguments_that_do_not_fit_end_on_the_users_line(ip):
    _, shown = failing(ip, "%explore layer(x, 1, 2)", ex.errors.ArgumentsError, "too many positional")
    places = [line for line in plain(shown.stdout).splitlines() if line.startswith("---->")]
    assert "layer(x, 1, 2)" in places[-1]


def test_an_error_in_an_argument_is_the_users_own(ip):
    failing(ip, "%explore layer(nobody)", NameError, "nobody")
    assert ip.user_ns["runs"] == []


def test_a_view_that_fails_does_not_cost_the_capture(ip, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("the view is broken")

    monkeypatch.setattr("explorer.view.capture.CaptureView.output", broken)
    with capture_output() as shown:
        result = ip.run_cell("%explore layer(x)", store_history=True)
    result.raise_error()
    assert repr(result.result) == "Capture(layer: jaxpr → stablehlo → hlo)"
    assert "Capture(layer:" in displayed(shown)
    failing(ip, "%explore branch(x)", ex.errors.ExploreError, "branch could not be explored")


# --- options


def test_save_writes_the_capture(ip, tmp_path):
    capture = run(ip, f'%explore --save "{tmp_path}/a file.capture" layer(x)')
    assert ex.load(tmp_path / "a file.capture").hlo.text == capture.hlo.text


def test_options_go_on_the_first_line_of_a_cell(ip, tmp_path):
    run(ip, f"%%explore --save={tmp_path}/a.capture\nlayer(x)")
    assert ex.load(tmp_path / "a.capture").function == "layer"


def test_a_capture_that_can_not_be_written_is_not_lost(ip, tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))  # as on a full disk
    try:
        error, shown = failing(
            ip, f"%explore --save {tmp_path}/a layer(x)", ex.errors.ExploreError, "could not be written"
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert error.capture.hlo.text
    assert isinstance(error.__cause__, OSError)
    assert "Capture(layer:" in displayed(shown)


# --- help and completion


def test_help_tells_both_forms_and_the_options(ip):
    help_text = ip.find_line_magic("explore").__doc__
    assert help_text == ip.find_cell_magic("explore").__doc__
    for word in ("%explore f(x, y=1)", "%%explore", "y = f(x)", "not run", "--save FILE", "--html FILE"):
        assert word in help_text


def completions(ip, line):
    """The words that the line may become, as the kernel offers them."""
    with provisionalcompleter():
        return [line[: c.start] + c.text for c in ip.Completer.completions(line, len(line))]


@pytest.mark.parametrize("jedi", [False, True])
def test_completion_offers_options_and_what_can_be_called(ip, jedi):
    ip.Completer.use_jedi = jedi
    offered = completions(ip, "%explore ")
    assert {f"%explore {word}" for word in ("--save", "--html", "layer", "branch", "jnp")} <= set(offered)
    assert not {f"%explore {word}" for word in ("x", "runs", "get_ipython", "_")} & set(offered)
    for line, word in [("la", "layer"), ("--s", "--save"), ("--html a.html la", "--html a.html layer")]:
        offered = completions(ip, f"%explore {line}")
        assert f"%explore {word}" in offered
        assert jedi or len(offered) == 1  # IPython adds Jedi's guesses to any answer
    assert set(completions(ip, "%%explore --")) >= {"%%explore --html", "%%explore --save"}
    assert "%%explore layer" not in completions(ip, "%%explore ")


def test_completion_offers_files_where_an_option_takes_one(ip, tmp_path):
    (tmp_path / "old.capture").touch()
    ip.Completer.use_jedi = False
    assert completions(ip, f"%explore --save {tmp_path}/o") == [f"%explore --save {tmp_path}/old.capture"]


def test_completion_inside_the_call_is_ipythons(ip):
    ip.Completer.use_jedi = False
    assert "%explore layer(x, scale=" in completions(ip, "%explore layer(x, sc")
    assert "%explore jnp.tanh" in completions(ip, "%explore jnp.tan")
