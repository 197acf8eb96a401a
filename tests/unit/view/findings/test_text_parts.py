"""How findings are said: which parts of a sentence are code, which lines and pieces are meant, counts and words."""

import linecache
from dataclasses import replace

import pytest

from explorer.model.findings import Finding, Findings, Fix
from explorer.view.findings import text_parts
from explorer.view.findings.text_parts import changed_lines, code_html, lines_of, split_code

# Code in a sentence ---------------------------------------------------------------------------------------------------


def test_backticks_and_calls_are_code_and_the_words_between_are_not():
    assert list(split_code("use `x` or jnp.where(a, (b)), please")) == [
        ("use ", False), ("x", True), (" or ", False), ("jnp.where(a, (b))", True), (", please", False),
    ]  # fmt: skip
    assert list(split_code("nothing here")) == [("nothing here", False)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("`x`", [("x", True)]),
        ("`x` is", [("x", True), (" is", False)]),
        ("f(x)`y`", [("f(x)", True), ("y", True)]),  # beside each other, with nothing between
        ("f(g(x)) is", [("f(g(x))", True), (" is", False)]),  # a call in a call is one piece
        ("f([x) y", [("f([x) y", False)]),  # a bracket is open: no call
        ("f({1: [2]}) y", [("f({1: [2]})", True), (" y", False)]),
        ("f(')') y", [("f(')')", True), (" y", False)]),
        ("f('\")') y", [("f('\")')", True), (" y", False)]),
        ("f() y", [("f()", True), (" y", False)]),
        ("no f( here but g(x)", [("no f( here but ", False), ("g(x)", True)]),  # the first one never closes
        ("`f(` and (x)", [("f(", True), (" and (x)", False)]),
        ("f(" + "x" * 998 + ")", [("f(" + "x" * 998 + ")", True)]),  # its bracket closes within 1,000 letters
        ("f(" + "x" * 999 + ")", [("f(" + "x" * 999 + ")", False)]),
    ],
)
def test_the_parts_of_a_sentence(text, parts):
    assert list(split_code(text)) == parts


def test_as_html_code_is_marked_up_and_nothing_else_is():
    assert code_html("a < `b < c` & f(d)") == "a &lt; <code>b &lt; c</code> &amp; <code>f(d)</code>"


# The lines that are meant ---------------------------------------------------------------------------------------------

FILE = "<cell of a test>"
TEXTS = ["def f(x):", "    y = g(x) + héé(x)", "    z = [", "", "        x,", "    ]", "  return z", "end", "last", "e"]


@pytest.fixture(autouse=True)
def cell():
    linecache.cache[FILE] = (1, None, [f"{text}\n" for text in TEXTS], FILE)
    yield
    del linecache.cache[FILE]


def finding(line, text="", **where):
    return Finding("r", "note", "m", FILE, line, text=text or TEXTS[line - 1], **where)


@pytest.mark.parametrize(
    ("where", "before", "piece", "after", "carets"),
    [
        ({"end_line": 2, "column": 8, "end_column": 12}, "y = ", "g(x)", " + héé(x)", "    ^^^^"),
        # Columns are bytes, and é is two of them.
        ({"end_line": 2, "column": 15, "end_column": 23}, "y = g(x) + ", "héé(x)", "", "           ^^^^^^"),
        # All of the line: nothing to point at.
        ({"end_line": 2, "column": 4, "end_column": 23}, "", "y = g(x) + héé(x)", "", ""),
        ({}, "", "y = g(x) + héé(x)", "", ""),
        # No end that comes behind the beginning: the line is meant.
        ({"end_line": 2, "column": 8, "end_column": 8}, "", "y = g(x) + héé(x)", "", ""),
        ({"end_line": 2, "column": 8, "end_column": 9}, "y = ", "g", "(x) + héé(x)", "    ^"),
        # From the indentation: what stands before it is no part of the piece.
        ({"end_line": 2, "column": 0, "end_column": 12}, "", "y = g(x)", " + héé(x)", "^^^^^^^^"),
    ],
)
def test_the_piece_of_a_line(where, before, piece, after, carets):
    (line,) = lines_of(finding(2, **where))
    assert (line.number, line.before, line.piece, line.after, line.carets) == (2, before, piece, after, carets)
    assert line.text == "y = g(x) + héé(x)"


def test_a_piece_over_several_lines_begins_and_ends_where_it_does_and_the_indentation_of_all_is_left_out():
    lines = lines_of(finding(3, column=8, end_line=6, end_column=5))
    assert [(line.number, line.before, line.piece, line.after) for line in lines] == [
        (3, "z = ", "[", ""), (4, "", "", ""), (5, "    ", "x,", ""), (6, "", "]", ""),
    ]  # fmt: skip


def test_of_a_long_finding_six_lines_are_shown():
    assert [line.number for line in lines_of(finding(3, end_line=8, end_column=3))] == [3, 4, 5, 6, 7, 8]
    assert [line.number for line in lines_of(finding(3, end_line=9, end_column=3))] == [3, 4, 5, 6, 7, 8]
    assert [line.number for line in lines_of(finding(3, end_line=2))] == [3]


def test_of_a_wide_line_200_letters_are_shown_before_the_piece_of_it_and_behind_it():
    # Lines of 201 letters beside and in the piece, and of 200, which fit.
    for count, more, shown in ((200, "", 200), (201, "…", 200)):
        wide = "a" * count + "b" * count + "c" * count
        linecache.cache[FILE] = (1, None, [wide + "\n"], FILE)
        (line,) = lines_of(finding(1, wide, end_line=1, column=count, end_column=2 * count))
        rest = "b" * (count - 200) + "c" * count  # what the piece lacks is behind it
        assert (line.before, line.piece) == ("a" * shown, "b" * shown)
        assert line.after == rest[:200] + "…" * (len(rest) > 200) == rest[:200] + (more or "")
    tabs = replace(text_parts.Line(1, "\tx\t", "y", ""))
    assert tabs.carets == "\t \t^"  # a tab is as wide above as below


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        (finding(2, "another text"), ["another text"]),  # the file has changed
        (finding(4, " "), []),  # nothing stands there, nothing is known
        (replace(finding(2), line=0), ["y = g(x) + héé(x)"]),
        (replace(finding(2), file="gone.py"), ["y = g(x) + héé(x)"]),
    ],
)
def test_where_the_lines_are_gone_the_text_that_is_known_stands_alone(given, lines):
    assert [line.text for line in lines_of(given)] == lines


def test_only_python_files_below_the_working_folder_that_are_not_huge_are_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text("x = 1\n")
    (tmp_path / "f.txt").write_text("x = 1\n")
    (tmp_path / "full.py").write_text("x = 1\n" + "#" * (2_000_000 - 6))
    (tmp_path / "huge.py").write_text("x = 1\n" + "#" * (2_000_000 - 5))
    (tmp_path / "below").mkdir()
    for name, text in (("f.py", "x = 1"), ("f.txt", ""), ("full.py", "x = 1"), ("huge.py", ""), ("no.py", "")):
        assert text_parts.text_at(str(tmp_path / name), 1) == text, name
    monkeypatch.chdir(tmp_path / "below")
    (tmp_path / "g.py").write_text("x = 1\n")
    assert text_parts.text_at(str(tmp_path / "g.py"), 1) == ""


# Words ----------------------------------------------------------------------------------------------------------------


def of(*rows):
    return Findings([Finding(rule, severity, "m", "f.py", line) for severity, rule, line in rows])


@pytest.mark.parametrize(
    ("rows", "counts", "summary"),
    [
        ([], "", ""),
        ([("note", "a", 0)], "1 note", "● 1 note: a"),
        (
            [("error", "a", 3), ("warning", "b", 5)],
            "1 error, 1 warning",
            "✖ 1 error, 1 warning: a in line 3, b in line 5",
        ),
        ([("warning", "a", 3)] * 2, "2 warnings", "▲ 2 warnings: a in line 3"),  # a rule of a line is named once
        (
            [("note", "c", 2), ("note", "a", 1), ("note", "b", 0)],  # in the order of the file
            "3 notes",
            "● 3 notes: b, a in line 1, …",
        ),
        ([("note", "a", 1)] * 1200, "1,200 notes", "● 1,200 notes: a in line 1"),
    ],
)
def test_counts_and_rules_in_a_line(rows, counts, summary):
    assert text_parts.format_counts(of(*rows)) == counts
    assert text_parts.summarize_rules(of(*rows)) == summary


PARTS = "the calls that its Python makes, its jaxpr, and the state that it reaches."


@pytest.mark.parametrize(
    ("findings", "text"),
    [
        (Findings([], "step"), "No rule found anything in step."),
        (Findings([]), "No rule found anything in it."),
        (Findings([], "step", rules=("a",)), f"1 rule checked one trace of step: {PARTS}"),
        (Findings([], "step", rules=("a", "b")), f"2 rules checked one trace of step: {PARTS}"),
        (
            Findings([], "step", rules=("a",), failure="TypeError: no"),
            "The trace of step failed, and the code after the failure was not checked.",
        ),
    ],
)
def test_where_nothing_was_found_it_says_what_was_looked_at(findings, text):
    assert text_parts.describe_no_findings(findings) == text


def test_a_comment_silences_by_the_code_or_else_by_the_rule():
    assert text_parts.silencing(Finding("weak-type", "note", "m", code="EX015")) == "# explorer: ignore[EX015]"
    assert text_parts.silencing(Finding("weak-type", "note", "m")) == "# explorer: ignore[weak-type]"


def test_findings_stand_by_file_under_its_label_or_else_its_name():
    rows = [Finding("r", "error", "1", "/x/b.py"), Finding("r", "note", "2", "a", label="cell [2]"),
            Finding("r", "note", "3", "/x/b.py")]  # fmt: skip
    groups = text_parts.group_by_file(Findings(rows))
    shown = {group.label: [(number, finding.message) for number, finding in group.numbered] for group in groups}
    assert shown == {"b.py": [(0, "1"), (1, "3")], "cell [2]": [(2, "2")]}


@pytest.mark.parametrize(
    "letter", ["\x00", "\x08", "\x0b", "\x0d", "\x1b", "\x1f", "\x7f", "\x9f", "\ud800", chr(0xDFFF)]
)
def test_what_can_stand_in_no_page_is_shown_as_unknown_everywhere(letter):
    odd = Finding("r", "note", f"m{letter}", f"f{letter}", 3, fix=Fix(f"t{letter}"), evidence=letter)
    clean = text_parts.printable(Findings([odd], letter, [letter], failure=letter))
    assert [(one.message, one.file, one.line, one.fix.text, one.evidence) for one in clean] == [
        ("m\ufffd", "f\ufffd", 3, "t\ufffd", "\ufffd")
    ]
    assert (clean.function, clean.faults, clean.failure) == ("\ufffd", ("\ufffd",), "\ufffd")


def test_findings_that_need_no_change_are_themselves():
    calm = Findings([Finding("r", "note", "a\tb\nc", "f.py")], "f", ["x"])
    assert text_parts.printable(calm) is calm


def test_a_diffs_lines_are_what_becomes_of_them_and_where_some_are_left_out():
    diff = "--- before\n+++ after\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\n@@ -9 +9 @@\n-d\n"
    assert changed_lines(diff) == [(" ", "a"), ("-", "b"), ("+", "c"), (" ", ""), ("@", "⋯"), ("-", "d")]
    assert changed_lines("") == []
    assert changed_lines("-x") == [("-", "x")]
