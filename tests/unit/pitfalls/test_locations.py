"""Where a finding points: the smallest piece of a line that is meant, or the line."""

import ast

import pytest

from explorer.capture.sources import Span
from explorer.pitfalls.function_source import expression_on_line


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("def f(x, y):\n    if (x < y) == (y < 'ö'):  \n        return (x\n                < 2)\n")
    return str(path)


def is_comparison(node):
    return isinstance(node, ast.Compare)


def test_the_smallest_that_is_meant(file):
    assert expression_on_line(file, 2, is_comparison) == Span(2, 8, 2, 13)
    assert expression_on_line(file, 3, is_comparison) == Span(3, 16, 4, 19)
    assert expression_on_line(file, 4, is_comparison) == Span(3, 16, 4, 19)


def test_the_line_where_nothing_is(file):
    assert expression_on_line(file, 2, lambda node: False) == Span(2, 4, 2, 29)
    assert expression_on_line(file, 4, lambda node: False) == Span(4, 16, 4, 20)


@pytest.mark.parametrize("line", [0, 5, -1])
def test_a_line_that_is_not_there_is_empty(file, line):
    assert expression_on_line(file, line, lambda node: True) == Span(line, 0, line, 0)
