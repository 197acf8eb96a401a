"""%recompiles and %%recompiles in an IPython shell of this process."""

import re
import subprocess
import sys

import pytest

import explorer as ex

pytest.importorskip("IPython", reason="the magics need IPython")

from IPython.core.completer import provisionalcompleter
from IPython.utils.capture import capture_output

from explorer.ledger.watch import session, stop_session
from tests.support.shells import fresh_shell, run

DEFINITIONS = """\
import jax, jax.numpy as jnp
def step_of(batch): return batch["x"] * 2
step = jax.jit(step_of)
def call(*sizes):
    for size in sizes:
        step({"x": jnp.ones(size)})
"""


@pytest.fixture
def ip():
    with fresh_shell(DEFINITIONS) as shell:
        run(shell, "%load_ext explorer")
        yield shell
        ex.unload_ipython_extension(shell)
        stop_session()


def shown(ip, cell):
    """The cell's value, and what was printed and displayed."""
    with capture_output() as captured:
        result = ip.run_cell(cell, store_history=True)
    result.raise_error()
    return result.result, captured


def failing(ip, cell, error, match=None):
    """Run a cell that must fail; give the error, and all that was printed and displayed."""
    with capture_output() as captured:
        result = ip.run_cell(cell, store_history=True)
    with pytest.raises(error, match=match) as caught:
        result.raise_error()
    return caught.value, captured


def displayed(captured):
    return captured.stdout + "".join(output.data["text/plain"] for output in captured.outputs)


def plain(text):
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def own(ledger):
    return [
        (event.function, event.reason.kind)
        for event in ledger.events
        if event.kind == "compile" and not event.key.function.eager
    ]


# --- the session


LATE = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "explorer")
assert "jax" not in sys.modules  # settings in the environment that follow are still read
shell.run_cell("import jax\\ndouble = jax.jit(lambda x: x * 2)\\n_ = double(1.0), double(2)").raise_error()
from explorer.ledger.watch import session
print([event.reason.kind for event in session().events if event.kind == "compile"])
"""


def test_loading_starts_the_watch_as_soon_as_jax_is_imported():
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[-2] == "['first', 'dtype']"


def test_loading_starts_the_watch_and_a_known_call_costs_nothing(ip):
    run(ip, "x = {'x': jnp.ones(3)}; step(x)")
    events = len(session().events)
    run(ip, "for _ in range(100): step(x)")
    assert len(session().events) == events


def test_it_shows_what_was_compiled_since_the_extension_was_loaded(ip):
    run(ip, "call(8, 5)")
    _, said = shown(ip, "ledger = %recompiles")
    ledger = ip.user_ns["ledger"]
    assert isinstance(ledger, ex.types.Watch)
    assert ledger.on
    assert displayed(said) == ""
    _, said = shown(ip, "again = %recompiles")
    assert displayed(said) == ""
    assert ip.user_ns["again"] is ledger is session()
    assert own(ledger) == [("step_of", "first"), ("step_of", "shape")]
    _, said = shown(ip, "%recompiles")
    assert "2 compiles of 1 function" in displayed(said)


def test_off_stops_it_and_returns_what_was_seen(ip):
    run(ip, "%recompiles on")
    run(ip, "call(8)")
    run(ip, "seen = %recompiles off")
    assert session() is None
    assert not ip.user_ns["seen"].on
    run(ip, "call(5)")
    assert len(own(ip.user_ns["seen"])) == 1
    value, captured = shown(ip, "%recompiles off")
    assert value is None
    assert "Not watching" in displayed(captured)


def test_one_function_is_shown_alone(ip):
    run(ip, "%recompiles on")
    run(ip, "call(8)\njax.jit(lambda x: x)(1.0)")
    run(ip, "part = %recompiles step_of")
    assert {event.function for event in ip.user_ns["part"].events} == {"step_of"}
    failing(ip, "%recompiles stepp", ex.errors.NotRecordedError, "no function 'stepp'")


def test_unloading_ends_what_the_magic_began(ip):
    run(ip, "watch = %recompiles on")
    ex.unload_ipython_extension(ip)
    assert session() is None
    assert not ip.user_ns["watch"].on


def test_a_call_site_is_the_users_cell_and_line(ip):
    run(ip, "%recompiles on")
    run(ip, "call(8)")
    (event,) = [event for event in session().events if event.function == "step_of" and event.kind == "compile"]
    assert str(event.call_site) == "cell [1], line 6"
    assert str(event.stack[-1]) == f"cell [{ip.execution_count - 1}], line 1"


# --- one cell


def test_a_cell_is_watched_alone_and_runs_as_ever(ip):
    run(ip, "%recompiles off")
    run(ip, "call(8)")
    run(ip, "%recompiles on")
    ledger = run(ip, "%%recompiles\nmade = 3\ncall(5)\ncall(4)")
    assert isinstance(ledger, ex.types.Watch)
    assert not ledger.on
    assert ip.user_ns["made"] == 3
    assert own(ledger) == [("step_of", "shape"), ("step_of", "shape")]
    assert session().on
    assert len(own(session())) == 2


def test_a_cell_watched_without_a_session_leaves_none(ip):
    run(ip, "%recompiles off")
    assert run(ip, "%%recompiles\ncall(8)").events
    assert session() is None


def test_the_value_of_the_cells_last_expression_is_displayed_too(ip):
    _, captured = shown(ip, "%%recompiles\n'the value'")
    assert "'the value'" in displayed(captured)
    _, captured = shown(ip, "%%recompiles\n'the value';")
    assert "'the value'" not in displayed(captured)


def test_frames_lead_to_the_lines_that_the_person_sees(ip):
    ledger = run(ip, "%%recompiles\n\nwhere = %pwd\nstep({'x': jnp.ones(8)})\nstep({'x': jnp.ones(5)})")
    sites = [event.call_site for event in ledger.events if event.function == "step_of" and event.kind == "compile"]
    count = ip.execution_count - 1
    assert [str(site) for site in sites] == [f"cell [{count}], line 4", f"cell [{count}], line 5"]
    assert sites[1].text == "step({'x': jnp.ones(5)})"
    assert isinstance(ip.user_ns["where"], str)


def test_a_cell_of_one_function_shows_that_alone(ip):
    ledger = run(ip, "%%recompiles step_of\ncall(8)\njax.jit(lambda x: x)(1.0)")
    assert {event.function for event in ledger.events} == {"step_of"}


def test_an_error_of_the_cells_own_comes_as_it_is_and_the_ledger_is_shown(ip):
    run(ip, "%recompiles off")
    error, captured = failing(ip, "%%recompiles\ncall(8)\nmissing + 1\ncall(5)", NameError)
    assert str(error) == "name 'missing' is not defined"
    assert "1 compile of 1 function" in displayed(captured)
    assert "----> 3 missing + 1" in plain(captured.stdout)
    assert session() is None
    run(ip, "call(4)")  # and nothing is left on: no hook of ours is in JAX
    from jax._src import pjit

    assert pjit._infer_params.__module__.startswith("jax.")


def test_an_empty_cell_shows_an_empty_ledger(ip):
    assert run(ip, "%%recompiles\n# nothing").events == ()


# --- options


def test_the_ledger_is_saved_and_written_as_a_page(ip, tmp_path):
    run(ip, f'%%recompiles --save "{tmp_path}/a b.jsonl" --html {tmp_path}/a.html\ncall(8, 5)')
    from explorer.model.events.ledger import Ledger

    assert own(Ledger.load(tmp_path / "a b.jsonl")) == [("step_of", "first"), ("step_of", "shape")]
    assert "step_of" in (tmp_path / "a.html").read_text()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--stage x", "unrecognized arguments: --stage"),
        ("one two", "unrecognized arguments: two"),
        ("--save", "expected one argument"),
        ("--save nowhere/at/all", "there is no folder"),
        ("--html .", "is a folder"),
        ('"', "No closing quotation"),
    ],
)
def test_what_can_not_be_read_is_refused_and_nothing_is_turned_on(ip, line, says):
    run(ip, "%recompiles off")
    error, _ = failing(ip, f"%recompiles {line}", ex.errors.ExpressionError, re.escape(says))
    assert "Hint: " in str(error)
    assert session() is None


@pytest.mark.parametrize("what", ["on", "off"])
def test_a_cell_can_not_be_turned_on_or_off(ip, what):
    failing(ip, f"%%recompiles {what}\ncall(8)", ex.errors.ExpressionError, f"it can't be turned {what}")


# --- help and completion


def test_help_tells_both_forms_and_the_options(ip):
    text = ip.find_line_magic("recompiles").__doc__
    assert text == ip.find_cell_magic("recompiles").__doc__
    for word in ("%recompiles on", "%%recompiles", "--save FILE", "--html FILE"):
        assert word in text


@pytest.mark.parametrize("jedi", [False, True])
def test_completion_offers_on_off_options_and_functions_that_compiled(ip, jedi):
    def completions(line):
        with provisionalcompleter():
            return {line[: c.start] + c.text for c in ip.Completer.completions(line, len(line))}

    ip.Completer.use_jedi = jedi
    run(ip, "%recompiles on")
    run(ip, "call(8)")
    assert {f"%recompiles {word}" for word in ("on", "off", "step_of", "--save", "--html")} <= completions(
        "%recompiles "
    )
    assert "%recompiles step_of" in completions("%recompiles st")
    assert completions("%%recompiles --") >= {"%%recompiles --html", "%%recompiles --save"}


def test_loading_imports_nothing_of_jax():
    program = """
import sys
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
shell = InteractiveShell(config=Config(HistoryManager={"enabled": False}))
shell.run_cell("%load_ext explorer").raise_error()
print(sorted({"explorer.ledger.watch", "plotly"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
