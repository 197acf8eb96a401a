"""Attributes by column: rows, codes, numbers, and values that are cut."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from explorer.capture.readers.graph_builder import shorten_value
from explorer.model.attributes import LONGEST_VALUE, Attributes, is_shortened, tabulate

KEYS = st.sampled_from(["dimensions", "kind", "root", "index"])
ROWS = st.lists(st.dictionaries(KEYS, st.sampled_from(["{0}", "12", "kLoop", "", "9999999999"])), max_size=8)


@given(ROWS, st.data())
def test_every_node_has_the_pairs_of_its_set(sets, data):
    codes = data.draw(st.lists(st.integers(0, len(sets) - 1), max_size=12)) if sets else []
    attributes = Attributes(lambda: tabulate(codes, [tuple(row.items()) for row in sets]))
    assert [attributes.of(i) for i in range(len(codes))] == [sets[code] for code in codes]
    for key in ("dimensions", "kind", "root", "index"):
        own = [sets[code].get(key) for code in codes]
        assert [attributes.get(i, key, "none") for i in range(len(codes))] == [
            v if v is not None else "none" for v in own
        ]
        assert attributes.nodes(key).tolist() == [i for i, value in enumerate(own) if value is not None]
        assert attributes.integers(key).tolist() == [12 if value == "12" else -1 for value in own]


def test_numbers_are_those_that_an_int32_holds():
    values = ("0", "999999999", "2147483647", "2147483648", "9" * 5000, "-1", "1.5", "")
    attributes = Attributes(lambda: tabulate(range(len(values)), [(("n", value),) for value in values]))
    assert attributes.integers("n").tolist() == [0, 999_999_999, 2**31 - 1, -1, -1, -1, -1, -1]


def test_the_columns_are_read_once_and_only_when_they_are_asked_for():
    reads = []

    def read():
        reads.append(1)
        return tabulate([0], [[("kind", "kLoop")]])

    attributes = Attributes(read)
    assert reads == []
    assert attributes.of(0) == attributes.of(0) == {"kind": "kLoop"}
    assert reads == [1]


def test_a_long_value_is_cut_and_says_how_long_it_was():
    text = "0" * (LONGEST_VALUE + 1)
    assert shorten_value(text) == f"{'0' * LONGEST_VALUE}… (4,001 characters)"
    assert is_shortened(shorten_value(text))
    assert shorten_value(text[1:]) == text[1:]
    assert not is_shortened(text[1:])


def test_no_node_no_columns():
    columns = tabulate([], [])
    assert (columns.start.tolist(), len(columns.key), columns.keys) == ([0], 0, [])
    assert columns.start.dtype == np.int32
