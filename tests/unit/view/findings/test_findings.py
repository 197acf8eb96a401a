"""How findings are shown: as HTML, in a terminal, in a capture; and how a cure becomes a cell."""

import json
import re
import sys
from html.parser import HTMLParser

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer as ex
from explorer.files import capture as wire
from explorer.files import container
from explorer.model.findings import SEVERITIES, Finding, Findings, Fix
from explorer.view.capture.html import picture
from explorer.view.capture.summary import summarize
from explorer.view.display import render
from explorer.view.findings import html, terminal, text_parts
from explorer.view.findings.html import fragment

ATTACK = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


def noisy(x):
    print("seen", x)
    return x * 2


def behind(x):
    return ["é", jnp.sin(x), print("héé", x)][1]


def several(count):
    return [
        Finding("weak-type", SEVERITIES[i % 3], f"number {i}", f"f{i % 4}.py", i + 1, code="EX015", text="x")
        for i in range(count)
    ]


class Tags(HTMLParser):
    """Every tag of a page with its attributes, and all that is text."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


def shown(findings):
    """The HTML without its style and its script, which are the same for all."""
    html = fragment(findings)
    return Tags(re.sub(r"<style>.*?</style>|<script type=\"module\">.*\Z", "", html, count=2, flags=re.DOTALL))


def test_a_finding_says_severity_place_line_evidence_cure_page_and_how_to_silence_it(capsys):
    text = "".join(shown(ex.lint(noisy, jnp.ones(3))).text)
    for part in ("▲ warning", "print() ran while noisy was traced", 'print("seen", x)', "it ran once",
                 'jax.debug.print("seen {}", x)', "# explorer: ignore[EX001]", "impure-print"):  # fmt: skip
        assert part in text, part


def test_the_piece_that_is_meant_is_marked_also_behind_letters_of_several_bytes(capsys):
    [finding] = ex.lint(behind, jnp.ones(3)).of("impure-print")
    [line] = text_parts.lines_of(finding)
    assert (line.before, line.piece) == ('return ["é", jnp.sin(x), ', 'print("héé", x)')
    assert line.carets == " " * len(line.before) + "^" * len(line.piece)
    assert line.carets in render(terminal.tree(Findings([finding])), 100)


def test_a_finding_whose_file_is_gone_or_has_changed_shows_the_line_that_it_knows(tmp_path):
    file = tmp_path / "f.py"
    one = Finding("impure-print", "warning", "m", str(file), 1, text="print(x)", end_line=1, column=4, end_column=12)
    assert [line.text for line in text_parts.lines_of(one)] == ["print(x)"]
    file.write_text("something_else()\n")
    assert [line.text for line in text_parts.lines_of(one)] == ["print(x)"]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such file")
def test_a_file_without_an_end_is_not_read():
    endless = Finding("impure-print", "warning", "m", "/dev/zero", 1, text="print(x)")
    assert [line.text for line in text_parts.lines_of(endless)] == ["print(x)"]


def test_hostile_texts_make_no_tag():
    one = Finding(
        ATTACK, "error", ATTACK, ATTACK, 1, ATTACK, Fix(ATTACK, ATTACK, f"@@\n-{ATTACK}"), ATTACK, ATTACK, ATTACK
    )
    calm = Finding("r", "error", "m", "f", 1, "e", Fix("t", "c", "@@\n-d"), "c", "l", "t")
    hostile, harmless = shown(Findings([one], ATTACK, [ATTACK])), shown(Findings([calm], "f", ["f"]))
    own = [[tag for tag, _ in page.tags if tag != "code"] for page in (hostile, harmless)]
    assert own[0] == own[1]
    assert not any(name.startswith("on") for _, attributes in hostile.tags for name in attributes)


@pytest.mark.parametrize("page", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", ""])
def test_only_pages_of_the_web_are_linked(page):
    assert "a" not in [tag for tag, _ in shown(Findings([Finding("r", "note", "m", documentation=page)])).tags]


@given(st.text(), st.text(), st.text())
def test_any_text_can_be_shown_everywhere(message, evidence, fix):
    found = Findings([Finding("r", "note", message, "f.py", 1, evidence, Fix(fix, fix, fix), text=message)], evidence)
    fragment(found).encode()
    assert "\x1b" not in render(terminal.tree(found), 100).encode().decode()


@given(st.text(alphabet="ab`()'\" .,", max_size=40))
def test_the_parts_of_a_sentence_are_the_sentence(text):
    parts = list(text_parts.split_code(text))
    assert "".join(part for part, _ in parts).replace("`", "") == text.replace("`", "")


def test_calls_and_what_stands_in_backticks_are_code():
    parts = list(text_parts.split_code('jax.debug.print("a) {}", x) prints `y`, while (x) not'))
    assert [part for part, is_code in parts if is_code] == ['jax.debug.print("a) {}", x)', "y"]


@pytest.mark.parametrize("count", [0, 1, 10, 300])
def test_however_many_there_are_the_page_stays_small_and_counts_all(count):
    html = fragment(Findings(several(count), "step"))
    assert len(html) < 160_000
    assert html.count('<details class="xf-one') == min(count, 100)
    assert html.count(" open>") == min(count, 4)
    assert ("and 200 more" in html) == (count == 300)
    assert len(render(terminal.tree(Findings(several(count), "step")), 100).splitlines()) < 200


def test_the_gravest_file_comes_first_and_all_of_a_file_stand_together():
    groups = text_parts.group_by_file(Findings([*several(7), Finding("r", "error", "m", "z.py", 1)]))
    assert [group.file for group in groups][:2] == ["f0.py", "f2.py"]
    assert [finding.severity for _, finding in groups[0].numbered] == ["error", "warning"]


def test_nothing_found_says_what_was_looked_at():
    clean = ex.lint(lambda x: x * 2, jnp.ones(3))
    assert clean.rules
    assert not clean
    assert f"{len(clean.rules)} rules checked one trace" in "".join(shown(clean).text)
    assert f"{len(clean.rules)} rules checked one trace" in " ".join(render(terminal.tree(clean), 100).split())
    assert Findings.from_json(clean.to_json()).rules == clean.rules
    some = ex.lint(lambda x: x * 2, jnp.ones(3), rules="EX001")
    assert some.rules == ("impure-print",)
    assert "1 rule checked" in "".join(shown(some).text)


def test_what_it_was_compiled_for_is_named_wherever_findings_are_shown():
    there = Findings([calm := Finding("r", "note", "m")], "step", rules=["r"], target="8xh100")
    for findings in (there, there.errors, Findings([calm], "step", target="8xh100")):
        assert "".join(shown(findings).text).startswith("step for 8xh100 ")
        assert render(terminal.tree(findings), 100).startswith("step for 8xh100  ")
        assert repr(findings).startswith("Findings(step for 8xh100: ")
        assert findings.to_text().startswith("step for 8xh100: ")
    assert "one trace of step, compiled for 8xh100: the calls" in "".join(shown(there.errors).text)
    assert "i" not in [tag for tag, _ in shown(Findings([], "step", target="<i>")).tags]


def test_hardware_is_kept_in_files_and_older_ones_name_none():
    there, here = (Findings([], "step", target=target) for target in ("v5e:2x4", ""))
    assert there != here
    assert [Findings.from_json(each.to_json()) for each in (there, here)] == [there, here]
    assert json.loads(there.to_json())["summary"] == ["step for v5e:2x4: nothing was found."]
    assert [there.to_dict()["target"], here.to_dict()["target"]] == ["v5e:2x4", None]
    older = {name: value for name, value in json.loads(here.to_json()).items() if name != "target"}
    assert Findings.from_json(json.dumps(older)) == here


def test_a_failed_trace_is_never_called_clean():
    failed = ex.lint(lambda x: x @ jnp.ones(7), jnp.ones(3))
    text = "".join(shown(failed).text)
    assert "could not be traced" in render(terminal.tree(failed), 100)
    assert not any("nothing found" in said for said in (text, render(terminal.tree(failed), 100)))
    assert "the trace failed: TypeError" in text
    assert "not checked" in text


def test_a_notebook_gets_html_and_text_and_one_finding_can_be_shown_alone(capsys):
    found = ex.lint(noisy, jnp.ones(3))
    bundle = found._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert "▲ warning" in bundle["text/plain"]
    assert "0x" not in bundle["text/plain"]
    assert "explorer-findings" in found[0]._repr_mimebundle_()["text/html"]
    assert "explorer-findings" in found[0]._repr_html_()


def test_a_fault_in_the_view_costs_nothing(monkeypatch):
    monkeypatch.setattr("explorer.view.findings.html.group_by_file", lambda findings: 1 / 0)
    bundle = Findings([], "step")._repr_mimebundle_()
    assert bundle == {
        "text/plain": "Findings(step: nothing found)\n(the view failed: ZeroDivisionError: division by zero)"
    }


def test_a_page_is_written(tmp_path, capsys):
    page = ex.lint(noisy, jnp.ones(3)).to_html(tmp_path / "found.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "impure-print" in page


class Cell:
    """The part of IPython's shell that writes the next cell."""

    def __init__(self):
        self.written = []

    def set_next_input(self, text, replace):
        self.written.append((text, replace))


def test_a_cure_is_applied_into_the_next_cell(monkeypatch, capsys):
    cell = Cell()
    monkeypatch.setattr(html, "ipython_shell", lambda: cell)
    found = ex.lint(noisy, jnp.ones(3))
    found.apply(0)
    found.fix(0).apply()
    rewritten = 'import jax\n\n\ndef noisy(x):\n    jax.debug.print("seen {}", x)\n    return x * 2'
    assert cell.written == [(rewritten, False)] * 2


def test_what_cannot_be_applied_says_why(monkeypatch, capsys):
    found = ex.lint(noisy, jnp.ones(3))
    with pytest.raises(ex.errors.ViewError, match="no certain rewrite"):
        found[0].fix.apply()
    monkeypatch.setattr(html, "ipython_shell", lambda: None)
    with pytest.raises(ex.errors.ViewError, match="no notebook here"):
        found.apply(0)
    with pytest.raises(ex.errors.NotRecordedError, match="were loaded"):
        Findings.from_json(found.to_json()).apply(0)


def test_the_page_asks_and_gets_a_proven_rewrite_or_why_there_is_none(capsys):
    found = ex.lint(noisy, jnp.ones(3))
    capsys.readouterr()
    answer = html._answer(found, {"ask": "fix", "of": 0})
    assert answer["of"] == 0
    assert 'jax.debug.print("seen {}", x)' in answer["code"]
    assert capsys.readouterr().out == "", "what the proof prints is nobody's output"
    for asked in ({"ask": "fix", "of": 7}, {"ask": "fix", "of": "0"}, {"of": 0}, "fix", None):
        assert "no such finding" in html._answer(found, asked)["failed"]
    assert "no longer in memory" in html._answer(None, {"ask": "fix", "of": 0})["failed"]
    loaded = Findings.from_json(found.to_json())
    assert "were loaded" in html._answer(loaded, {"ask": "fix", "of": 0})["failed"]


def test_what_may_have_a_rewrite_is_known_without_making_it(capsys):
    found = ex.lint(noisy, jnp.ones(3))
    assert found.can_fix(found[0])
    assert not Findings.from_json(found.to_json()).can_fix(found[0])
    assert not found.can_fix(Finding("large-constant", "warning", "…"))


BIG = np.ones((512, 512), np.float32)


def heavy(x):
    return (x @ BIG)[:, 600]


def test_picture_table_and_terminal_of_a_capture_name_its_findings():
    capture = ex.explore(heavy, jnp.ones((2, 512)))
    assert {one.rule for one in capture.findings} >= {"large-constant", "out-of-bounds"}
    for text in (picture(summarize(capture)), capture.to_text(200)):
        assert "✖ 1 error, 1 warning: out-of-bounds in line" in text
    assert "large-constant: `BIG` is a constant" in capture._repr_mimebundle_()["text/html"]


def test_the_comment_that_silences_is_written_out():
    assert "# explorer: ignore[r]" in render(terminal.tree(Findings([Finding("r", "note", "m")])), 100)


def test_a_capture_from_before_there_were_findings_still_opens_and_altered_ones_are_refused():
    _, header, content = container.unpack(ex.explore(heavy, jnp.ones((2, 512))).wire)
    blobs = container.Blobs()
    blobs.parts = [bytes(content.data)]
    assert len(wire.decode(container.pack(header, blobs)).findings) == 2
    for altered in ({"findings": 3}, {"findings": {"function": "f"}}, {"findings": header["findings"] | {"faults": 1}}):
        with pytest.raises(ex.errors.CaptureFileError):
            wire.decode(container.pack(header | altered, blobs))
    del header["findings"]
    assert len(wire.decode(container.pack(header, blobs)).findings) == 0


def test_a_capture_without_findings_says_nothing_of_them():
    capture = ex.explore(lambda x: x * 2, jnp.ones(3))
    assert "✖" not in capture.to_text(200)
    assert text_parts.summarize_rules(capture.findings) == ""


def test_in_a_notebook_a_text_is_given_not_displayed(monkeypatch):
    # rich would take the notebook for a console of its own
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert "nothing found" in render(terminal.tree(Findings([], "step")), 100)
