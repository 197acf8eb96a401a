"""A chart in its static form: the table of its figures."""

import pytest

from explorer.view.chart import Table, html_table


@pytest.mark.parametrize(
    ("cells", "is_right"),
    [
        (("326", "1,024"), True),
        (("25.1 ms", "not counted"), True),
        (("35.7 MB", "-"), True),
        (("≈ 43.8 µs",), True),
        (("0.97×", "1.2%"), True),
        (("2.5 GFLOP/s",), True),
        (("12 … 14 ms",), True),
        (("tokens: (32, 65)",), False),
        (("3 values",), False),
        (("20: add, multiply",), False),
        (("1d convolution",), False),
        ((), False),
    ],
)
def test_figures_stand_to_the_right_of_their_column_and_words_to_the_left(cells, is_right):
    made = html_table(Table("t", ("name", "what"), [("a", cell) for cell in cells]), is_open=True)
    column = made.partition("what</th>")[0].rpartition("<th")[2]
    assert column == (">" if is_right else ' style="text-align:left">')
    assert made.count("text-align:left") == (1 + len(cells)) * (1 if is_right else 2)


def test_a_table_that_is_folded_away_is_as_short_as_it_can_be():
    assert "style" not in html_table(Table("t", ("name",), [("a",)]))
