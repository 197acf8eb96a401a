"""Arrays in tiles, held against the sizes that a TPU's compiler gave them in its own buffer assignment."""

from pathlib import Path

import pytest

from explorer.model.types import parse_type

# As libtpu 0.0.42 wrote them for programs of `tests.corpus_targets`: one of each layout that they have.
_LINES = Path(__file__).with_name("tpu_array_sizes.txt").read_text().splitlines()


@pytest.mark.parametrize("line", _LINES)
def test_an_array_takes_the_tiles_that_it_fills_up(line: str) -> None:
    text, size = line.split()
    (array,) = parse_type(text).arrays
    assert array.allocated == int(size)


def test_no_tile_changes_how_many_elements_an_array_has() -> None:
    (tiled,), (plain,) = (parse_type(text).arrays for text in ("f32[2,3]{1,0:T(8,128)}", "f32[2,3]"))
    assert (tiled.elements, tiled.size_in_bits) == (plain.elements, plain.size_in_bits) == (6, 192)
    assert (tiled.allocated, plain.allocated) == (4096, 24)


@pytest.mark.parametrize(
    "layout",
    ["{1:T(8,128)}", "{9,0:T(8,128)}", "{1,0:T()}", "{1,0:T(*,128)}", "{1,0:T(128,*)}", "{1,0:T(0,0)}", "{1,0:T(,)}"],
)
def test_a_damaged_layout_still_has_a_size(layout: str) -> None:
    (array,) = parse_type(f"f32[2,3]{{{layout}}}").arrays
    assert array.allocated >= 24


def test_a_tpu_writes_over_what_lies_alike_by_whatever_name_its_dimensions_go() -> None:
    texts = ("f32[2048,32,128]{2,0,1:T(8,128)}", "f32[2048,128,32]{1,0,2:T(8,128)}", "f32[2048,128,32]{2,1,0:T(8,128)}")
    one, alike, other = (parse_type(text).arrays[0] for text in texts)
    assert one.is_stored_as(alike)
    assert not one.is_stored_as(other)
