"""The ledger's views without a browser: HTML that stands alone, the message to the page, text, picture, chart."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import explorer as ex
from explorer.model.events.event import Event, Place, Reason
from explorer.model.events.ledger import Ledger
from explorer.model.text import code_parts
from explorer.view.ledger import Clock, fragment, picture, static
from explorer.view.ledger.calls import calls_of, flat, group_by_family, plain, varied, verdict_of
from explorer.view.ledger.message import COLUMNS, Tables, encode_message, message, tables_of
from tests.examples import ledgers


class Tags(HTMLParser):
    """What an HTML reader makes of a text: every tag must be closed, in order."""

    VOID = ("img", "meta", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs), attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


# The verdict ----------------------------------------------------------------------------------------------------------


def test_the_verdict_names_what_recompiled_most_what_it_cost_and_what_varied():
    found = verdict_of(calls_of(ledgers.typical().events))
    assert plain(found.text) == "`step` compiled 9 times: 41.2 s of 44.9 s spent compiling"
    assert plain(found.cause) == "`batch['x'].shape[0]` varied: `32 … 40 (9 values)`"
    assert "NamedDimension" in found.cure


def test_one_compile_and_none_are_said_too():
    assert plain(verdict_of(calls_of(ledgers.one().events)).text) == "`step` compiled once: 330 ms."
    assert flat(verdict_of([]).text) == "Nothing has compiled yet."


def test_the_function_that_cost_most_again_is_worse_than_one_that_cost_much_once():
    slow = ledgers.call(1, "slow", 0, (1, 1, 90), Reason("first"))
    quick = [ledgers.call(n, "quick", 100 + n, (0, 0, 1), ledgers.varied(n, n - 1), run=n) for n in (2, 3)]
    assert verdict_of(calls_of(ledgers.ledger_of([slow, *quick]).events)).function == "quick"


def test_eager_operations_are_one_group_and_never_the_verdict():
    calls = calls_of(ledgers.typical().events)
    [eager] = [group for group in group_by_family(calls) if group.family.eager]
    assert (eager.family.name, eager.compiles) == ("eager operations", 15)


@pytest.mark.parametrize(
    ("values", "text"),
    [(["8", "9"], "8 → 9"), (["8", "9", "10"], "8 … 10 (3 values)"), (["a", "b", "c", "d"], "a → b → c … (4 values)")],
)
def test_what_varied_is_told_by_its_ends_or_its_first_values(values: list[str], text: str):
    pairs = pairwise(values)
    events = [Event("compile", "f", reason=Reason("shape", "x", a, b), call=n) for n, (a, b) in enumerate(pairs, 1)]
    assert varied(calls_of(events)) == text


@given(st.text())
def test_backticks_tell_code_from_words_and_nothing_is_lost(text: str):
    paired = text.count("`") // 2 * 2  # one that is left over is a letter
    assert flat(code_parts(text)) == text.replace("`", "", paired)


# Calls ----------------------------------------------------------------------------------------------------------------


def test_the_events_of_a_call_are_one_call():
    [call] = calls_of(ledgers.one().events)
    assert (call.trace, call.lower, call.compile) == (0.02, 0.01, 0.3)
    assert not call.is_again


def test_events_without_a_call_number_stand_for_themselves():
    assert len(calls_of([Event("compile", "f"), Event("compile", "f")])) == 2


def test_calls_of_several_processes_with_one_number_are_several():
    assert len(calls_of([Event("compile", "f", call=1, process=name) for name in "ab"])) == 2


def test_a_call_that_compiled_nothing_is_no_compile():
    [call] = calls_of([Event("miss", "f", call=1, seconds=0.1)])
    assert call.is_miss
    assert call.seconds == 0


# The message ----------------------------------------------------------------------------------------------------------


def test_slices_of_the_tables_put_together_are_the_tables():
    ledger = ledgers.typical()
    whole, grown = Tables(), Tables()
    whole.add(ledger.events)
    reader: dict[str, list[object]] = {name: [] for name in ("strings", "places", "reasons", "functions", "stacks")}
    starts: list[int] = []
    sizes: dict[str, int] = {}
    for first in range(0, len(ledger), 9):
        grown.add(ledger.events[first : first + 9])
        new = grown.since(sizes)
        for name, rows in reader.items():
            rows += new[name]
        at = 0
        for step in new["calls"]["start"]:
            starts.append(at := at + step)
        sizes = grown.sizes
    assert reader == {name: whole.rows[name] for name in reader}
    assert starts == [row[COLUMNS.index("start")] for row in whole.rows["calls"]]
    assert starts == sorted(starts)


@given(st.text(), st.text(), st.text())
@example("[]", "", "")
def test_any_text_survives_the_way_to_the_page(name: str, line: str, value: str):
    place = Place(name or "f.py", 1, line, value, name)
    event = Event("compile", name, place, 0.5, Reason("static", line, value, name, value, line), stack=(place,), call=1)
    ledger = Ledger()
    ledger.add((event,))
    tables, _ = tables_of(ledger)
    sent = json.loads(json.dumps(message(ledger, tables)))
    assert sent["strings"] == tables.rows["strings"]
    assert encode_message(sent)
    Tags(static(tables.fold.calls))


def test_a_ledger_of_many_events_is_cut_between_calls_and_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("explorer.view.ledger.message.MOST", 31)
    ledger = ledgers.typical()
    tables, left_out = tables_of(ledger)
    assert left_out % 3 == 0
    assert len(tables.fold.calls) * 3 == len(ledger) - left_out == 30
    [note] = message(ledger, tables, None, left_out)["status"]["notes"]
    assert f"{left_out} events are not in this view" in note


def test_what_varied_and_what_did_not_is_told_by_argument():
    ledger = ledgers.typical()
    tables, _ = tables_of(ledger)
    told = {one["function"]: one["rows"] for one in message(ledger, tables)["status"]["varying"]}
    varies = [row for row in told["step"] if row["distinct"] > 1]
    assert [(row["path"], row["aspect"], row["distinct"]) for row in varies] == [("batch['x']", "shape[0]", 9)]
    assert {"path": "batch['x']", "aspect": "", "values": [["float32[*, 128]", 9]], "distinct": 1} in told["step"]


# HTML -----------------------------------------------------------------------------------------------------------------


def test_the_page_needs_no_script_for_the_tables(tmp_path):
    html = ledgers.typical().to_html(tmp_path / "ledger.html").read_text(encoding="utf-8")
    words = Tags(html.partition("<script")[0] + "</div></main></body></html>").words
    for told in ("step", "batch['x'].shape[0]", "[step/9]", "cell [3], line 12", "fit(data)"):
        assert any(told in word for word in words), told
    assert "NamedDimension" in "".join(words)


def test_names_that_are_markup_stay_text():
    html = static(calls_of(ledgers.hostile().events))
    tags = Tags(html)
    assert set(tags.seen) == {"div", "img", "pre", "details", "summary", "table", "thead", "tbody", "tr", "th", "td"}
    assert any(ledgers.HOSTILE in word for word in tags.words)


def test_no_script_of_the_page_is_ended_by_a_name():
    html = fragment(ledgers.hostile())
    assert html.count("<script") == html.count("</script>") == 3


@pytest.mark.parametrize("ledger", [Ledger(), ledgers.one(), ledgers.typical(), ledgers.hostile()])
def test_the_picture_is_an_image(ledger: Ledger):
    calls = calls_of(ledger.events)
    assert ElementTree.fromstring(picture(calls)).tag.endswith("svg")


def test_an_output_has_html_and_text():
    bundle = ledgers.typical()._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert bundle["text/plain"].startswith("Ledger(")
    assert len(bundle["text/html"]) < 60_000


def test_a_view_that_fails_leaves_the_text_and_its_reason(monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object) -> str:
        raise RuntimeError("no view today")

    monkeypatch.setattr("explorer.view.ledger.fragment", broken)
    bundle = ledgers.one()._repr_mimebundle_()
    assert set(bundle) == {"text/plain"}
    assert "no view today" in bundle["text/plain"]


# Text -----------------------------------------------------------------------------------------------------------------


def test_the_text_has_the_verdict_the_cure_and_every_function():
    text = ledgers.typical().text(100)
    assert text.startswith("RECOMPILE STORM  step compiled 9 times: 41.2 s of 44.9 s spent compiling\n")
    assert "fix: step = ex.compile(" in text
    for name in ("evaluate", "<lambda>", "init_params", "eager operations"):
        assert name in text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_names_in_brackets_are_no_markup_of_the_terminal():
    calls = [ledgers.call(n, "[bold]f[/bold]", n, (0, 0, 1), ledgers.varied(n, n - 1), run=n) for n in (1, 2)]
    assert "[bold]f[/bold]" in ledgers.ledger_of(calls).text(120)


@pytest.mark.slow
def test_ipython_in_a_terminal_shows_the_text_of_a_watch_that_is_on():
    pytest.importorskip("IPython")
    code = "import jax, explorer as ex\nledger = ex.watch()\n_ = jax.jit(lambda x: x + 1)(2.0)\nledger\n"
    command = [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor", "--simple-prompt", "--quick"]
    done = subprocess.run(command, input=code, capture_output=True, text=True, timeout=120, check=True)
    assert "<lambda> compiled once" in done.stdout, done.stdout
    assert "explorer-output" not in done.stdout


# The chart ------------------------------------------------------------------------------------------------------------


def test_the_chart_stacks_the_steps_of_each_function():
    pytest.importorskip("plotly")
    chart = ledgers.typical().timeline()
    assert repr(chart) == "Chart(timeline: 31 compiles)"
    trace, lower, compile = chart.figure.data
    at = trace.y.index("step (line 1)")
    assert trace.base[at] + trace.x[at] == pytest.approx(lower.base[at])
    assert lower.base[at] + lower.x[at] == pytest.approx(compile.base[at])
    assert {"cell [4]", "cell [6]"} <= {shape.label.text for shape in chart.figure.layout.shapes}


def test_the_chart_shows_as_picture_and_table_where_plotly_does_not():
    pytest.importorskip("plotly")
    bundle = ledgers.hostile().timeline()._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.plotly.v1+json", "text/html", "text/plain"}
    assert {"img", "table"} <= set(Tags(bundle["text/html"]).seen)
    assert "<script" not in json.dumps(bundle["application/vnd.plotly.v1+json"]), "plotly reads markup in names"


def test_without_plotly_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(ex.errors.MissingPackageError, match="pip install plotly"):
        ledgers.one().timeline()


def test_a_chart_is_one_page(tmp_path):
    pytest.importorskip("plotly")
    page = ledgers.one().timeline().to_html(tmp_path / "chart.html").read_text(encoding="utf-8")
    assert "Plotly.newPlot" in page
    assert 'src="https://' not in page


def test_a_long_wait_is_cut_from_the_axis():
    calls = calls_of(ledgers.typical().events)
    clock = Clock(calls)
    whole = clock.at(max(call.start + call.seconds for call in calls))
    assert whole < 60 < calls[-1].start - calls[0].start
    places = [clock.at(call.start) for call in calls]
    assert places == sorted(places)


def test_the_view_of_a_ledger_imports_neither_jax_nor_plotly_nor_ipython():
    code = (
        "import sys; from explorer import Ledger;"
        "Ledger()._repr_mimebundle_(); Ledger().text();"
        "print([name for name in ('jax', 'plotly', 'IPython') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
