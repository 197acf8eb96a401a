"""What happened to hot functions, as values."""

from itertools import groupby

import jax.numpy as jnp
import pytest

import explorer as ex
from explorer.hotpath.hot import HotFunction, Options
from explorer.hotpath.report import labels_of, row_of
from explorer.hotpath.timing import Journal, Times

X = jnp.linspace(0.1, 1.0, 64 * 64).reshape(64, 64)
SCALE = jnp.float32(2)


def chain(x):
    for _ in range(6):
        x = jnp.tanh(x @ x) * SCALE + 1
    return x


def prints(x):
    y = jnp.sin(x)
    print("called")
    return y


def run_hot(function, calls):
    """A hot function after so many calls that are compiled at once, and its journal."""
    journal = Journal()
    hot = HotFunction(function, Options(3, 0.0, lambda work: work(), journal, is_forced=True))
    hot.watch()
    try:
        for _ in range(calls):
            function(X)
    finally:
        hot.release()
    return hot, journal


def test_a_compiled_function_has_its_way_in_events_and_calls():
    hot, journal = run_hot(chain, 40)
    row = row_of(hot, journal.began)
    kinds = [event.kind for event in journal.events]
    assert kinds == ["detected", "trigger", "compile", "compiled", "speedup", "restored"]
    ways = [(way, len(list(calls))) for way, calls in groupby(way for *_, way in row.times)]
    assert [way for way, _ in ways] == ["eager", "both", "compiled"]
    (_, eager), (_, both), (_, compiled) = ways
    assert eager == 3
    assert both >= 3  # more on a busy machine, where three don't say how fast it is
    assert repr(row.times) == "CallTimes(40 calls)"
    assert (row.state, row.eager_calls, row.compiled_calls, row.calls) == ("compiled", eager + both, compiled, 40)
    # The lower of the two estimates counts, whichever that is on this machine now.
    assert (row.eager_samples, row.basis) in ((both, "both ways"), (eager, "before"))
    assert row.compiled_samples >= both
    assert row.speedup > 0
    assert ex.types.HeldValue("SCALE", "global", is_input=True) in row.holds
    # The compile, which the program waited for here, is in the time of the call that began it.
    assert row.times.seconds[3] > row.compile_seconds > row.times.seconds[-1]
    assert (row.file, row.line) == (__file__, chain.__code__.co_firstlineno)


def test_what_stays_eager_has_the_line_and_the_reason(capsys):
    hot, journal = run_hot(prints, 5)
    row = row_of(hot, journal.began)
    assert (row.state, row.reason_file, row.reason_line) == ("eager", __file__, prints.__code__.co_firstlineno + 2)
    assert "print" in row.reason
    last = journal.events[-1]
    assert (last.kind, last.text, last.line) == ("eager", row.reason, row.reason_line)
    assert (row.basis, row.saved_seconds) == ("returned", 0.0)


def test_the_value_survives_a_file_and_shows_as_a_table(tmp_path, capsys):
    runs = [run_hot(chain, 12), run_hot(prints, 5)]
    rows = tuple(row_of(hot, journal.began) for hot, journal in runs)
    paths = ex.HotPaths(rows, runs[0][1].events, seconds=0.5, labels=labels_of(rows))
    paths.save(tmp_path / "hot.json")
    loaded = ex.HotPaths.load(tmp_path / "hot.json")
    # As text: NaN is equal to none.
    assert repr((loaded.functions, loaded.labels, loaded.events)) == repr((rows, paths.labels, paths.events))
    assert list(paths.to_frame()["calls"]) == [12, 4]  # whoever stays eager isn't counted any more
    assert "(test_report.py, line" in repr(paths)
    with pytest.raises(ex.errors.UnknownNameError, match="Did you mean `chain`"):
        paths["chian"]


def test_a_file_with_a_state_that_there_is_not_is_refused(tmp_path):
    path = tmp_path / "hot.json"
    ex.HotPaths((ex.types.HotRow("f", state="melting"),)).save(path)
    with pytest.raises(ex.errors.ResultFileError, match="'melting' is none of 'counting'"):
        ex.HotPaths.load(path)


def test_times_are_bounded_and_know_their_numbers():
    times = Times()
    for number in range(10_000):
        times.add(number, number + 0.5, "eager")
    columns = times.columns(0.0)
    assert len(columns) == 512
    assert (columns.numbers[0], columns.numbers[255], columns.numbers[256], columns.numbers[-1]) == (
        1,
        256,
        9745,
        10000,
    )
    assert times.median("eager") == (0.5, 512)


def test_a_journal_is_bounded_counts_what_it_dropped_and_survives_its_listeners():
    heard = []

    def fails(event):
        raise ValueError

    journal = Journal([fails, heard.append])
    hot = HotFunction(chain, Options(3, 0.0, lambda work: work(), journal))
    for _ in range(5000):
        journal.add("miss", hot, "SCALE")
    assert (len(journal.events), journal.dropped, len(heard)) == (4096, 904, 5000)


@pytest.mark.parametrize(
    ("paths", "sentence"),
    [
        (ex.HotPaths(), "no function was called often"),
        (ex.HotPaths((ex.types.HotRow("f"),), is_on=True), "1 hot function, none compiled yet"),
        (ex.HotPaths((ex.types.HotRow("f"),)), "1 hot function, none compiled"),
        (ex.HotPaths((ex.types.HotRow("f", state="compiled"),)), "`f` runs compiled"),
        (
            ex.HotPaths((ex.types.HotRow("f", state="compiled"), ex.types.HotRow("g", state="comparing"))),
            "`f` runs compiled; 1 undecided when it ended",
        ),
        (
            ex.HotPaths((ex.types.HotRow("f", state="compiled"), ex.types.HotRow("g", state="comparing")), is_on=True),
            "1 of 2 hot functions runs compiled",
        ),
        (
            ex.HotPaths((ex.types.HotRow("f", state="eager", reason="it prints"), ex.types.HotRow("g", state="eager"))),
            "2 hot functions, none compiled; 2 stay eager",
        ),
    ],
)
def test_it_is_said_in_a_sentence(paths, sentence):
    assert paths.headline == sentence
