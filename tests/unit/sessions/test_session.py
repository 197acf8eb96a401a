"""What a session says of its functions is what was counted beside it, and it keeps nothing alive."""

import gc
import json
import re
import weakref

import jax
import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.model.results.session import SessionReport, SessionRow


def scaled(x):
    return jnp.tanh(x) * 3


@pytest.fixture(scope="module")
def watched():
    """A watch over a function that compiles three times, and one that is only explored."""
    traced = []

    @jax.jit
    def summed(x):
        traced.append(x.shape)
        return (x * 2).sum()

    arrays = [jnp.ones(size) for size in (3, 4, 5)]
    with ex.watch() as ledger:
        for array in arrays:
            summed(array)
        capture = ex.explore(scaled, jnp.ones(4))
    return ledger, traced, capture, summed


def test_a_watched_function_has_the_counts_and_seconds_of_the_ledger(watched):
    ledger, traced, _, _ = watched
    row = ex.session()["summed"]
    assert (row.basis, row.compiles, row.recompiles) == ("watched", len(traced), len(traced) - 1)
    events = [event for event in ledger.events if event.function == "summed"]
    assert row.seconds == pytest.approx(sum(event.seconds for event in events))
    assert row.leaf == "x.shape[0]"
    assert row.why.startswith("`x.shape[0]` changed twice")
    assert row.cure


def test_what_is_explored_is_its_own_cost_and_opens(watched):
    capture = watched[2]
    row = ex.session()["scaled"]
    assert (row.basis, row.compiles) == ("explored", 1)
    assert row.seconds == pytest.approx(sum(capture.durations.seconds.values()))
    (item,) = (item for item in row.items if item.kind == "capture")
    assert ex.session().open(item.key) is capture


def test_the_ledger_and_the_program_of_a_function_open(watched):
    items = {item.kind: item.key for item in ex.session()["summed"].items}
    ledger = ex.session().open(items["ledger"])
    assert {event.function for event in ledger.events} == {"summed"}
    assert len([event for event in ledger.events if event.kind == "compile"]) == 3
    assert ex.session().open(items["compiled"]).signature == "(x: f32[5])"


def test_rows_stand_by_cost_and_the_summary_names_what_recompiled(watched):
    session = ex.session()
    seconds = [row.seconds for row in session.rows if row.seconds == row.seconds]
    assert seconds == sorted(seconds, reverse=True)
    assert "`summed` recompiled twice because `x.shape[0]` varied." in session.summary
    assert session.summary[-1] == "The watch has ended: later compiles are missing here."


def test_a_capture_that_the_user_drops_is_gone_from_the_page():
    def dropped(x):
        return x + 17

    capture = ex.explore(dropped, jnp.ones(3))
    assert "dropped" in [row.name for row in ex.session().rows]
    (item,) = (item for item in ex.session()["dropped"].items if item.kind == "capture")
    html = ex.session()._repr_mimebundle_()["text/html"]  # showing it holds nothing either
    assert "dropped" in html
    alive = weakref.ref(capture)
    del capture
    gc.collect()
    assert alive() is None
    assert [row.basis for row in ex.session().rows if row.name == "dropped"] in ([], ["before"])
    with pytest.raises(ex.errors.UnknownNameError, match="no variable refers to it"):
        ex.session().open(item.key)


def test_measurements_findings_and_executables_are_on_the_function_s_row():
    def measured(x):
        print("hello")
        return x * 2

    x = jnp.ones(64)
    timing = ex.time(measured, x, seconds=0.01)
    findings = ex.lint(measured, x)
    executable = ex.compile(measured, args=[ex.InputInfo((4,), "float32")])
    row = ex.session()["measured"]
    assert row.run == timing.steady.median
    assert row.findings == len(findings) > 0
    opened = {item.kind: ex.session().open(item.key) for item in row.items}
    assert opened["timing"] is timing
    assert list(opened["findings"]) == list(findings)
    assert opened["executable"] is executable


def test_what_compiled_before_a_watch_is_said_not_to_be_known():
    @jax.jit
    def early(x):
        return x - 5

    early(jnp.ones(2))
    early(jnp.ones(3))
    row = ex.session()["early"]
    assert (row.basis, row.compiles) == ("before", 2)
    assert row.seconds != row.seconds
    assert any(sentence.endswith("time unknown.") for sentence in ex.session().summary)


def test_the_page_has_every_row_and_each_item_in_a_file_of_its_own(watched, tmp_path):
    page = ex.session().save(tmp_path / "session.html").read_text(encoding="utf-8")
    assert "http://" not in re.sub(r"http://www\.w3\.org/\S+", "", page)
    rows = ex.session().rows
    names = re.findall(r"<h3><code>(.*?)</code>", page.partition("<template")[0])
    assert names == [row.name.replace("<", "&lt;").replace(">", "&gt;") for row in rows]
    assert page.count("<template data-page=") == sum(len(row.items) for row in rows)


def test_a_watch_is_read_from_its_first_moment_until_it_is_dropped(watched):
    gc.disable()
    try:
        with ex.watch() as ledger:
            assert ex.session().ledger is ledger
            assert ex.session().report().watching == "now"
        del ledger
        assert ex.session().ledger is watched[0]
    finally:
        gc.enable()


def test_a_report_is_a_value_that_says_what_it_lacks():
    report = SessionReport((SessionRow("f", basis="before", compiles=2),))
    assert report.summary == (
        "`f` compiled before watching began: time unknown.",
        "Not watching: `%explorer` or `ex.watch()` records later compiles and their reasons.",
    )
    assert SessionReport().summary[0] == "Nothing has compiled yet."
    assert "f" in report.to_text()
    assert "unwatched" in report._repr_mimebundle_()["text/html"]


def test_a_value_that_can_t_be_read_costs_no_other_its_row(watched, monkeypatch):
    monkeypatch.setattr(type(watched[2].findings), "__len__", lambda self: json.loads("no"))
    row = ex.session()["summed"]
    assert (row.basis, row.compiles) == ("watched", 3)
