"""A place in a view as a value: through JSON, an address and a file, and what is no bookmark."""

import json
from pathlib import Path

import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.model.bookmark import PANES
from tests.examples import small

SHARED = json.loads((Path(ex.__file__).parent / "view/js/test/bookmarks.json").read_text(encoding="utf-8"))

names = st.text(min_size=1, max_size=12)
notes = st.builds(
    ex.Note, on=names, text=st.text(max_size=40), stage=st.sampled_from(["", "hlo", "jaxpr", "a,b&c=d#e"])
)
bookmarks = st.builds(
    ex.Bookmark,
    stage=st.text(max_size=8),
    pane=st.sampled_from(PANES),
    selection=st.lists(names, max_size=3).map(tuple),
    search=st.text(max_size=12),
    open_groups=st.none() | st.lists(names, max_size=3).map(tuple),
    notes=st.lists(notes, max_size=3).map(tuple),
)


@given(bookmarks)
def test_a_bookmark_is_the_same_through_json_a_dict_and_an_address(mark):
    assert ex.Bookmark.from_json(mark.to_json()) == mark
    assert ex.Bookmark.from_dict(json.loads(json.dumps(mark.to_dict()))) == mark
    for before in ("", "#", "file:///home/a/report.html#", "https://a.example/r.html?x=1#"):
        assert ex.Bookmark.from_address(before + mark.address) == mark
    assert mark.address.isascii()
    assert not set(mark.address) & set(' "<>\\^`{|}')


@pytest.mark.parametrize("row", SHARED, ids=lambda row: row["address"])
def test_a_browser_writes_the_same_address(row):
    mark = ex.Bookmark.from_dict(row["bookmark"])
    assert mark.address == row["address"]
    assert mark.to_dict() == row["bookmark"]
    assert ex.Bookmark.from_address(f"report.html#{row['address']}") == mark


def test_an_empty_bookmark_is_false_and_says_nothing():
    assert not ex.Bookmark()
    assert ex.Bookmark().address == ""
    assert ex.Bookmark(open_groups=())  # nothing is open: that is something
    assert ex.Bookmark.from_address("report.html") == ex.Bookmark.from_address("report.html#top") == ex.Bookmark()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"pane": "grap"}, "no pane 'grap'; it has: graph, text"),
        ({"selection": "dot.3"}, "selection is a sequence"),
        ({"selection": [3]}, "a text"),
        ({"selection": [""]}, "is empty"),
        ({"open_groups": {"a": 1}}, "open_groups is a sequence"),
        ({"stage": None}, "stage is a text"),
        ({"search": "x" * 10_001}, "at most 10,000"),
        ({"notes": [["a", "b"]]}, "row of target"),
        ({"notes": [["a", 1, ""]]}, "a note's text is a text"),
        ({"notes": "abc"}, "row of target"),
        ({"zoom": 2}, "no 'zoom'"),
        ([], "an object with names"),
    ],
)
def test_what_is_no_bookmark_is_refused_with_the_reason(given, words):
    with pytest.raises(ex.errors.ViewError, match=words):
        ex.Bookmark.from_dict(given)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "3"])
def test_a_text_that_is_no_bookmark_is_refused(text):
    with pytest.raises(ex.errors.ViewError, match="bookmark"):
        ex.Bookmark.from_json(text)


def test_notes_are_notes():
    with pytest.raises(ex.errors.ViewError, match=r"explorer\.Note"):
        ex.Bookmark(notes=("why?",))  # pyright: ignore


@pytest.fixture(scope="module")
def capture():
    return ex.explore(small.two_steps, jnp.ones((4, 4)))


MARK = ex.Bookmark(
    "jaxpr", "text", selection=(":11",), notes=(ex.Note(":7", "twice <b>"), ex.Note("b", "tanh", "jaxpr"))
)


def test_a_capture_keeps_its_bookmark_in_its_file(capture, tmp_path):
    assert capture.bookmark == ex.Bookmark()
    capture.save(tmp_path / "plain.capture")
    capture.view.bookmark = MARK
    assert capture.bookmark == MARK
    capture.save(tmp_path / "marked.capture")
    again = ex.load(tmp_path / "marked.capture")
    assert again.bookmark == again.view.bookmark == MARK
    assert ex.load(tmp_path / "plain.capture").bookmark == ex.Bookmark()
    assert again.id == capture.id  # it is no part of what was compiled
    assert again.hlo.text == capture.hlo.text
    capture.view.bookmark = ex.Bookmark()
    assert (tmp_path / "plain.capture").read_bytes() == capture.wire


def test_a_page_opens_at_a_bookmark_and_shows_the_notes_without_scripts(capture, tmp_path):
    plain = capture.to_html(tmp_path / "plain.html").read_text("utf-8")
    assert "data-bookmark=" not in plain
    page = capture.to_html(tmp_path / "marked.html", bookmark=MARK).read_text("utf-8")
    assert '<div class="explorer-output"' in page
    assert "twice &lt;b&gt;" in page
    assert "twice <b>" not in page
    assert capture.bookmark == ex.Bookmark()


def test_a_live_view_hears_where_a_person_is_and_every_view_shows_their_notes(capture):
    first, second = capture.widget(), capture.widget()
    first.place = {"stage": "jaxpr", "selection": ["b"], "notes": [["b", "why?", "jaxpr"]]}
    assert capture.bookmark == ex.Bookmark("jaxpr", selection=("b",), notes=(ex.Note("b", "why?", "jaxpr"),))
    assert second.shown["notes"] == [["b", "why?", "jaxpr"]]
    assert "bookmark" not in second.shown  # nobody is taken where another one is
    assert capture.view.opening == ex.Bookmark(notes=capture.bookmark.notes)
    first.place = {"pane": 3}
    assert capture.bookmark.stage == "jaxpr"
    second.bookmark = MARK
    assert first.shown["bookmark"] == MARK.to_dict()
    assert capture.view.opening == first.bookmark == MARK
    with pytest.raises(ex.errors.ViewError, match="Bookmark"):
        capture.view.bookmark = {"stage": "hlo"}


def test_an_altered_bookmark_in_a_file_is_refused(capture, tmp_path):
    from explorer.files.container import with_entry

    (tmp_path / "altered.capture").write_bytes(with_entry(capture.wire, "bookmark", {"pane": "nowhere"}))
    with pytest.raises(ex.errors.CaptureFileError, match="nowhere"):
        ex.load(tmp_path / "altered.capture")
