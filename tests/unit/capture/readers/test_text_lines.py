"""The lines of a text, a block of them at a time, and what reads HLO from them."""

import pytest

from explorer.capture.readers import text_lines
from explorer.capture.readers.hlo import read_hlo
from explorer.capture.readers.text_lines import TextLines

TEXTS = ["", "\n", "one", "one\n", "one\ntwo", "\n\none\r\n two\u2028three\n\n", "x" * 50 + "\n" + "y" * 50]


@pytest.mark.parametrize("size", [0, 1, 7, 1 << 20])
@pytest.mark.parametrize("text", TEXTS)
def test_the_blocks_of_a_text_are_its_lines(text: str, size: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(text_lines, "_BLOCK", size)
    lines, split = TextLines(text), [""][:0]
    while block := lines.block(len(split)):
        split += block
    assert split == text.split("\n")
    assert [lines.start(line) for line in range(len(split))] == [
        sum(len(line) + 1 for line in split[:number]) for number in range(len(split))
    ]


@pytest.mark.parametrize("size", [0, 1, 7, 1 << 20])
@pytest.mark.parametrize("text", TEXTS)
def test_the_line_of_a_character_is_how_many_newlines_are_before_it(
    text: str, size: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(text_lines, "_BLOCK", size)
    for at in range(len(text) + 1):
        assert TextLines(text).line_at(at) == text[:at].count("\n")


MODULE = """HloModule broken, is_scheduled=true

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

/* a comment
   over two lines */
ENTRY main {
  x = f32[8] parameter(0)
  zero = f32[] constant(0)
  this is no instruction

  ROOT total = f32[] reduce(x,
    zero), dimensions={0},
    to_apply=add
}
"""


@pytest.mark.parametrize("size", [0, 20, 60])
def test_what_goes_over_the_end_of_a_block_is_read(size: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(text_lines, "_BLOCK", size)
    graph = read_hlo(MODULE)
    lines = MODULE.split("\n")
    assert graph.names == ["a", "b", "sum", "x", "zero", "total"]
    assert all(f"{node.name} = " in lines[node.line] for node in graph.nodes)
    assert [lines[line] for line in graph.unread] == ["  this is no instruction"]
    assert [node.name for node in graph["total"].operands] == ["x", "zero"]
    assert graph["total"].attributes["to_apply"] == "add"
