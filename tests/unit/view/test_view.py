"""What a capture looks like where no script runs, and what travels to where one does."""

import base64
import bz2
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.capture import recording
from explorer.errors import NotRecordedError
from explorer.files import container
from explorer.files.capture import decode
from explorer.model.capture import Capture
from explorer.model.stage import Durations
from explorer.view import diff as diff_view
from explorer.view.capture.html import fragment, picture, table_rows
from explorer.view.capture.summary import summarize
from explorer.view.page import ALPHABET, bundle, chunks, module, pack, unpack
from explorer.view.session import carries_all
from tests.examples import small

SVG = "{http://www.w3.org/2000/svg}"


def normalise(x):
    return (x - x.mean()) / x.std()


def two_steps(x):
    return jnp.tanh(normalise(x)) + normalise(x * 2)


@pytest.fixture(scope="module")
def capture():
    return ex.explore(two_steps, jnp.ones((8, 16)))


def part(html: str, name: str) -> bytes:
    found = re.search(rf'data-part="{name}"[^>]*>([^<]*)<', html)
    assert found
    return unpack(found[1])


@pytest.mark.slow
def test_model_and_view_work_without_jax(capture, tmp_path):
    capture.save(tmp_path / "f.capture")
    code = (
        "import sys; sys.modules['jax'] = sys.modules['jaxlib'] = None\n"
        "import explorer, explorer.model, explorer.view\n"
        f"capture = explorer.load({str(tmp_path / 'f.capture')!r})\n"
        f"capture.to_html({str(tmp_path / 'f.html')!r})\n"
        "print(capture, len(capture.hlo.graph))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{capture} {len(capture.hlo.graph)}"
    assert "explorer-output" in (tmp_path / "f.html").read_text()


def test_a_display_has_text_and_html(capture):
    bundle_ = capture._repr_mimebundle_()
    assert bundle_["text/plain"] == "Capture(two_steps: jaxpr → stablehlo → hlo)"
    assert 'class="explorer-output"' in bundle_["text/html"]


def test_the_page_carries_the_whole_capture_and_the_viewer(capture):
    html = fragment(capture)
    assert part(html, "capture") == capture.wire
    first, later, _ = scripts_of(html)
    names = chunks_of(html)[1:]
    assert first.split("\f") == [bundle("viewer"), bundle("viewer.viewer")]
    assert later.split("\f") == [bundle(f"viewer.{name}") for name in names[1:]]


@given(st.binary(max_size=300))
def test_packed_bytes_are_text_for_any_page_and_come_back(data):
    text = pack(data)
    assert unpack(text) == data
    assert len(text) <= len(data) * 5 / 4 + 2
    assert not set(text) & set('<>&"\\$`\n')
    assert json.dumps(text) == f'"{text}"'


def test_the_alphabet_has_85_letters():
    assert len(set(ALPHABET)) == 85


class Kernel:
    """A notebook that runs one cell after the other, as JupyterLab tells its kernel."""

    def __init__(self, monkeypatch):
        self.metadata = {}
        self.content = {"allow_stdin": True, "code": "the same in every cell"}
        monkeypatch.setitem(sys.modules, "IPython", self)
        monkeypatch.setattr("explorer.view.session._carriers", [])
        self.kernel = self

    def get_ipython(self):
        return self

    def get_parent(self):
        return {"metadata": self.metadata, "content": self.content}

    def run(self, cell, deleted=()):
        self.metadata = {"cellId": cell, "deletedCells": list(deleted)}
        return carries_all()


def test_two_cells_carry_every_pane_and_carry_them_again(monkeypatch):
    kernel = Kernel(monkeypatch)
    assert [kernel.run(cell) for cell in "abcdabc"] == [True, True, False, False, True, True, False]


def test_for_a_deleted_carrier_the_next_cell_stands_in(monkeypatch):
    kernel = Kernel(monkeypatch)
    assert [kernel.run(cell) for cell in "abc"] == [True, True, False]
    assert kernel.run("c", deleted="a")


def test_where_cells_are_unknown_or_outputs_apart_each_carries_every_pane(monkeypatch):
    assert carries_all()
    kernel = Kernel(monkeypatch)
    assert [kernel.run(None) for _ in range(5)] == [True] * 5
    monkeypatch.setitem(sys.modules, "google.colab", kernel)
    assert [kernel.run(cell) for cell in "abcd"] == [True] * 4


def test_a_run_without_a_person_goes_by_the_cells_text(monkeypatch):
    kernel = Kernel(monkeypatch)
    shown = []
    for code in "abcab":
        kernel.content = {"allow_stdin": False, "code": code}
        shown.append(kernel.run(None))
    assert shown == [True, True, False, True, True]


@pytest.mark.slow
def test_each_of_ten_small_views_starts_alone(monkeypatch):
    captures = [ex.explore(small.two_steps, jnp.ones((8, n))) for n in range(16, 26)]
    kernel = Kernel(monkeypatch)
    shown = [fragment(capture, kernel.run(str(n))) for n, capture in enumerate(captures)]
    assert all(chunks_of(html)[:2] == ["core", "viewer"] for html in shown)
    assert sum("memory_pane" in chunks_of(html) for html in shown) == 2
    # Of a kernel or two each, with some 10 kB of passes; five kernels take 3 kB more.
    assert sum(len(json.dumps(html)) for html in shown) <= 1_200_000


def scripts_of(html):
    """All scripts of a page, unpacked: what it starts with, what comes later, and the loader."""
    packed = re.findall(r'data-part="viewer" [^>]*>([^<]+)<', html)
    texts = [bz2.decompress(unpack(text)).decode() for text in packed]
    return texts + re.findall(r'<script type="module">(.*?)</script>', html, re.DOTALL)


def chunks_of(html):
    return " ".join(re.findall(r'data-chunks="([^"]*)"', html)).split()


LATER = ["ask", "help", "keeper", "lines_pane", "save_picture", "shown_way", "text_pane"]


def test_the_scripts_of_a_page_stay_small(capture):
    html = fragment(capture)
    assert chunks_of(html) == ["core", "viewer", *LATER, "why_pane", "memory_pane", "passes_pane"]
    first, later, loader = (len(text.encode()) for text in scripts_of(html))
    # What runs when a page opens, of the 220 kB that its scripts may have; the rest stays packed until it is wanted.
    assert 100_000 < first + loader <= 185_000
    assert later <= 105_000
    assert loader + sum(map(len, re.findall(r'data-part="viewer" [^>]*>([^<]+)<', html))) <= 120_000  # as they travel


def test_what_a_page_does_not_show_is_not_in_it(capture):
    opened = fragment(ex.open_hlo(capture.hlo.text))
    assert chunks_of(opened) == ["core", "viewer", *LATER, "memory_pane"]
    compared = diff_view.fragment(ex.diff(capture, capture))
    assert chunks_of(compared) == ["core", "diff_viewer", "passes_pane"]
    everything = scripts_of(fragment(capture))
    for html, absent in ((opened, "why-answer"), (opened, "pass-title"), (compared, "record the passes")):
        assert any(absent in text for text in everything)
        assert not any(absent in text for text in scripts_of(html))


def test_every_chunk_is_shown_by_some_page(capture):
    with_code = ex.explore(jnp.sin, jnp.ones(8))
    assert "machine_code_pane" not in chunks_of(fragment(with_code))
    assert with_code.machine_code.platform == "cpu"
    pages = [fragment(capture), fragment(with_code), diff_view.fragment(ex.diff(capture, capture))]
    shown = {chunk for page in pages for chunk in chunks_of(page)}
    assert shown | {"what_if"} == {"core", *chunks()}  # only a kernel has a use for that, and sends it


def test_a_file_carries_answers_and_a_display_leaves_them_to_its_kernel(capture, tmp_path):
    def asked(html):
        return container.unpack(part(html, "capture"))[1].get("ask")

    assert asked(capture._repr_mimebundle_()["text/html"]) is None
    carried = asked(capture.to_html(tmp_path / "report.html").read_text(encoding="utf-8"))
    assert carried["answers"]["largest"][0] == capture.ask("what is the largest array?").text


def test_nothing_is_loaded_from_anywhere(capture, tmp_path):
    html = capture.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    sources: list[str] = []

    class Loads(HTMLParser):
        def handle_starttag(self, tag, attrs):
            sources.extend(value for name, value in attrs if name in ("src", "href"))

    Loads().feed(html)
    assert sources
    assert all(source.startswith("data:") for source in sources)
    assert not re.search(r"https?://(?!www\.w3\.org/)", module())


def test_the_picture_names_every_stage_and_function(capture):
    texts = [text.text or "" for text in ElementTree.fromstring(picture(summarize(capture))).iter(f"{SVG}text")]
    assert any(text.startswith("two_steps") for text in texts)
    for title in ("jaxpr", "StableHLO", "HLO"):
        assert any(text.startswith(title) for text in texts)
    assert any("normalise" in text for text in texts)


def test_the_table_counts_what_the_stages_hold(capture):
    _, *rows = table_rows(summarize(capture))
    assert [row[1] for row in rows[:3]] == [f"{len(stage.graph):,}" for stage in capture.stages]


def test_the_text_and_the_table_say_how_surely_each_stage_is_linked(capture):
    _, *rows = table_rows(summarize(capture))
    text = " ".join(capture.to_text(200).split())
    for stage, (*_, grades) in zip(capture.stages[1:], rows[1:], strict=False):
        shares = {grade: capture.coverage(stage.name, grade) for grade in ("exact", "inferred", "unknown")}
        whole = [grade for grade, share in shares.items() if share == 1]
        for grade, share in shares.items():
            assert (grade in grades) == (share > 0)
            assert whole or not share or f"{int(100 * share + 1e-6) or '<1'}% {grade}" in grades
        assert f"source mapping {grades}" in text


def test_the_users_text_is_never_html():
    def f(x):
        return x * 2

    f.__name__ = "<script>alert(1)</script>"
    html = fragment(ex.explore(f, jnp.ones(3)))
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)" in html


def test_a_capture_without_stages_shows_its_failure():
    html = fragment(Capture("f", "", (), Durations(), failure="trace failed: ValueError"))
    image = base64.b64decode(re.search(r"base64,([^\"]*)", html)[1]).decode()
    assert "trace failed: ValueError" in image
    assert "<script" not in html


def test_a_fault_in_the_view_leaves_the_text_and_says_why(capture, monkeypatch):
    monkeypatch.setattr("explorer.view.capture.html.picture", lambda *_, **__: 1 / 0)
    shown = capture._repr_mimebundle_()
    assert list(shown) == ["text/plain"]
    assert shown["text/plain"].startswith(f"{capture}\n(the view failed: ZeroDivisionError")


def test_the_widget_carries_the_capture_and_has_a_plain_text():
    capture = ex.explore(two_steps, jnp.ones((8, 16)))
    widget = capture.widget()
    assert widget.wire == capture.wire
    assert widget._repr_mimebundle_()["text/plain"] == f"Widget({capture})"


def test_what_the_browser_selects_is_a_python_value_and_is_checked():
    capture = ex.explore(two_steps, jnp.ones((8, 16)))
    widget = capture.widget()
    assert capture.selection == ()
    widget.selected = {"stage": "jaxpr", "nodes": [1, 0, 10**9, "2", -1]}
    assert [node.index for node in capture.selection] == [0, 1]
    assert widget.selection == [node.name for node in capture.selection]
    widget.selected = {"stage": "no such stage", "nodes": [0]}
    assert capture.selection == ()


def compiles(run):
    """How many programs a piece of code compiles."""
    compiled = []
    listener = lambda event, seconds, **_: compiled.append(event) if "backend_compile" in event else None  # noqa: E731
    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        run()
    finally:
        jax.monitoring.unregister_event_duration_listener(listener)
    return len(compiled)


def explore_anew():
    """The capture of a function that JAX keeps nothing of."""
    return ex.explore(lambda x: two_steps(x), jnp.ones((8, 16)))


def of_usual_size(monkeypatch):
    """Passes that are read in a moment."""


def of_large_size(monkeypatch):
    """Passes that are kept, and read in some seconds."""
    monkeypatch.setattr(recording, "_READ_IN_A_SECOND", 1)


def of_huge_size(monkeypatch):
    """Passes that are too large to be kept."""
    monkeypatch.setattr(recording, "dump_place", lambda size, always=False: "" if always else None)


@pytest.mark.parametrize("size", [of_usual_size, of_large_size, of_huge_size])
def test_nothing_compiles_in_a_display_a_page_or_a_file(monkeypatch, tmp_path, size):
    size(monkeypatch)
    captures = []
    assert compiles(lambda: captures.append(explore_anew())) == 1
    (capture,) = captures
    assert capture.has_passes == (size is of_usual_size)

    def show():
        capture._repr_mimebundle_()
        capture.widget()
        capture.to_text()
        capture.to_svg(tmp_path / "f.svg")
        capture.to_html(tmp_path / "f.html")
        capture.save(tmp_path / "f.capture")

    assert compiles(show) == 0
    assert ex.load(tmp_path / "f.capture").has_passes == (size is not of_huge_size)


def watch(capture, monkeypatch):
    """A live view of a capture, and what is sent to it."""
    widget, sent = capture.widget(), []
    monkeypatch.setattr(widget, "send", lambda message, buffers=(): sent.append((message, buffers)))
    return widget, sent


def test_passes_that_are_kept_are_read_for_the_page_that_asks(monkeypatch):
    of_large_size(monkeypatch)
    capture = explore_anew()
    widget, sent = watch(capture, monkeypatch)
    assert widget.shown["reads"]
    assert "records" not in widget.shown
    before = capture.wire
    assert compiles(capture.view.record) == 0
    (started, _), (done, (wire,)) = sent
    assert started == {"recording": "started", "expected": capture.reading_passes}
    assert done == {"recording": "done"}
    assert wire == capture.wire != before
    assert decode(wire).has_passes
    assert "reads" not in widget.shown
    assert decode(wire).fates() == capture.fates()


def test_passes_that_are_not_kept_are_recorded_when_a_person_asks_who_knows_the_seconds(monkeypatch):
    of_huge_size(monkeypatch)
    capture = explore_anew()
    widget, sent = watch(capture, monkeypatch)
    assert widget.shown["records"] == pytest.approx(1.3 * capture.durations.compile)
    assert "reads" not in widget.shown
    assert compiles(capture.view.record) == 1
    (started, _), (done, (wire,)) = sent
    assert started == {"recording": "started", "expected": pytest.approx(1.3 * capture.durations.compile)}
    assert done == {"recording": "done"}
    assert decode(wire).has_passes
    assert "records" not in widget.shown


def test_a_recording_that_fails_says_why_in_the_page(monkeypatch):
    of_huge_size(monkeypatch)

    def fail():
        raise NotRecordedError("the compiler wrote nothing")

    capture = replace(explore_anew(), record=fail)
    widget, sent = watch(capture, monkeypatch)
    capture.view.record()
    assert sent[-1][0] == {"recording": "failed", "why": "the compiler wrote nothing"}
    assert widget.shown["records"]


def test_links_are_a_share_of_what_carries_a_name_and_inferred_in_a_module_from_elsewhere(capture):
    assert "source mapping exact 100%" in plain_text(capture)
    assert not re.search("inferred|unknown", plain_text(capture))
    untouched = ex.explore(two_steps, jnp.ones((8, 16)), record=False)
    assert re.search(r"source mapping inferred \d+%", plain_text(untouched))
    opened = ex.open_hlo(untouched.hlo.text)
    assert "source mapping" not in plain_text(opened)  # it has no equations to be linked to


def plain_text(capture):
    return " ".join(capture.to_text(200).split())


def test_a_page_gets_the_text_of_a_module_and_a_reason_where_it_asks_for_nothing_there_is():
    capture = ex.explore(lambda x: jnp.sin(x) @ x, jnp.ones((8, 8)))
    sine = capture.hlo.graph.where("op:sine")[0]
    ask = {"stage": "hlo", "node": sine.index, "height": 0, "key": "hlo:1"}
    assert capture.view.extract(ask) == {"extracted": "hlo:1", "module": capture.extract(sine)}
    for wrong in (
        {"node": -1},
        {"node": "1"},
        {"node": 10**9},
        {"stage": "llvm"},
        {"height": None},
        {"stage": "jaxpr"},
    ):
        answer = capture.view.extract(ask | wrong)
        assert answer["extracted"] == "hlo:1"
        assert answer["why"]
        assert "module" not in answer
