"""%lint and %%lint in an IPython shell of this process."""

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
def noisy(x, rules=1):
    runs.append(1)
    print("seen", x)
    return jnp.tanh(x) * rules
def clean(x):
    return x * 2
"""


@pytest.fixture
def shell():
    with fresh_shell(DEFINITIONS) as shell:
        yield shell


@pytest.fixture
def ip(shell):
    run(shell, "%load_ext explorer")
    return shell


def failing(ip, cell, error, match):
    with capture_output(), pytest.raises(error, match=match):
        ip.run_cell(cell, store_history=True).raise_error()


def rules(findings):
    return {one.rule for one in findings}


def test_a_line_is_linted_and_not_run(ip):
    found = run(ip, "%lint noisy(x)")
    assert isinstance(found, ex.Findings)
    assert "impure-print" in rules(found)
    assert run(ip, "len(runs)") == 1, "traced once"


def test_it_gives_what_lint_gives(ip):
    assert run(ip, "%lint clean(x)") == run(ip, "import explorer; explorer.lint(clean, x)")


def test_findings_lie_in_the_cell_that_defined_the_function(ip):
    run(ip, "def late(x):\n    print(x)\n    return x")
    [one] = run(ip, "%lint late(x)")
    assert (one.line, one.text) == (2, "print(x)")
    assert one.label.startswith("cell [")


def test_a_call_can_have_arguments_with_the_names_of_options(ip):
    assert "impure-print" in rules(run(ip, "%lint noisy(x, rules=2)"))


def test_the_value_is_kept_by_an_assignment(ip):
    run(ip, "found = %lint noisy(x)")
    assert "impure-print" in rules(ip.user_ns["found"])


def test_options_choose_the_rules(ip):
    assert rules(run(ip, "%lint --rules EX001 noisy(x)")) == {"impure-print"}
    assert run(ip, "%lint --rules EX001 noisy(x)").rules == ("impure-print",)
    assert "impure-print" not in rules(run(ip, "%lint --ignore impure-print noisy(x)"))
    assert "impure-print" not in run(ip, "%lint --thorough --ignore impure-print noisy(x)").rules


def test_fixes_are_made_when_asked_for(ip):
    [plain] = run(ip, "%lint --rules EX001 noisy(x)")
    [fixed] = run(ip, "%lint --fix --rules EX001 noisy(x)")
    assert not plain.fix.code
    assert 'jax.debug.print("seen {}", x)' in fixed.fix.code


def test_a_page_is_written_when_asked_for(ip, tmp_path):
    run(ip, f"%lint --html {tmp_path / 'found.html'} noisy(x)")
    assert "impure-print" in (tmp_path / "found.html").read_text()


def test_a_cell_runs_but_for_its_last_call(ip):
    found = run(ip, "%%lint\nz = x + 1\ndef here(v):\n    print(v)\n    return v\nhere(z)")
    [one] = found.of("impure-print")
    assert (one.line, one.text) == (4, "print(v)")
    assert "z" in ip.user_ns


def test_a_cell_that_keeps_the_value_is_also_run(ip):
    found = run(ip, "%%lint\ny = noisy(x)")
    assert "impure-print" in rules(found)
    assert run(ip, "float(y[0, 0])") == pytest.approx(0.7615942)


def test_in_a_function_its_own_names_are_known(ip):
    run(ip, "def inside(v):\n    return get_ipython().run_line_magic('lint', 'noisy(v)')\nfound = inside(x)")
    assert "impure-print" in rules(ip.user_ns["found"])


@pytest.mark.parametrize(
    ("cell", "match"),
    [
        ("%lint", "%lint takes one call"),
        ("%lint x + 1", "%lint takes one call"),
        ("%lint noisy(", r"traced instead of run"),
        ("%lint --unknown 3 noisy(x)", "--unknown"),
        ("%lint --html /nowhere/f.html noisy(x)", "there is no folder"),
        ("%lint --rules EX999 noisy(x)", "EX999"),
        ("%%lint noisy(x)\nnoisy(x)", "only options on its first line"),
        ("%%lint\n1 + 1", "a cell that ends in a call"),
        ("%lint noisy(x).block_until_ready()", "no result to wait for"),
    ],
)
def test_what_is_no_call_is_refused_with_a_hint(ip, cell, match):
    failing(ip, cell, ex.ExplorerError, match)


def test_what_was_found_is_kept_when_the_call_itself_fails(ip):
    run(
        ip,
        "def fails(x):\n    print(x)\n    if not isinstance(x, jax.core.Tracer): raise KeyError('own')\n    return x",
    )
    with capture_output() as shown, pytest.raises(KeyError, match="own"):
        ip.run_cell("%%lint\ny = fails(x)", store_history=True).raise_error()
    assert "Findings" in str(shown.outputs) or "impure-print" in str(shown.outputs[0].data)


def completions(ip, text):
    with provisionalcompleter():
        return {one.text for one in ip.Completer.completions(text, len(text))}


@pytest.mark.slow
def test_options_functions_and_rules_are_completed(ip):
    assert {"noisy", "--fix", "--rules", "--thorough"} <= completions(ip, "%lint ")
    assert "--fix" in completions(ip, "%%lint ")
    assert {"EX001", "impure-print"} <= completions(ip, "%lint --rules ")
    assert "x" in completions(ip, "%lint noisy(x")


def test_unloading_takes_away_what_loading_added_and_no_more(shell):
    before = {kind: set(table) for kind, table in shell.magics_manager.magics.items()}
    run(shell, "%load_ext explorer")
    assert all("lint" in shell.magics_manager.magics[kind] for kind in ("line", "cell"))
    run(shell, "%unload_ext explorer")
    assert {kind: set(table) for kind, table in shell.magics_manager.magics.items()} == before
    assert "%lint" not in shell.strdispatchers["complete_command"].strs
