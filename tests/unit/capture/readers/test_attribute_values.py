"""Values of attributes: how long they may be, and what a quoted one says."""

import json

import pytest

from explorer.capture.readers.graph_builder import shorten_value, unescape
from explorer.capture.readers.hlo_attributes import read_attributes, read_header
from explorer.model.attributes import LONGEST_VALUE


def test_a_value_is_whole_up_to_the_longest_and_says_what_it_lost():
    whole = "x" * LONGEST_VALUE
    assert shorten_value(whole) == whole
    assert shorten_value(whole + "yz") == f"{whole}… ({LONGEST_VALUE + 2:,} characters)"
    assert shorten_value("x" * 12_345).endswith("x… (12,345 characters)")


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("plain", "plain"),
        (r"state[\'step\']", "state['step']"),
        (r"a\\b", "a\\b"),
        (r"a\nb\tc\r\a\b\f\v", "a\nb\tc\r\a\b\f\v"),
        (r"\303\251t\303\251", "été"),  # bytes of UTF-8 in octal
        (r"\xc3\xa9", "é"),
        (r"\x41\102C", "ABC"),
        (r"\7", "\a"),
        (r"\541", "a"),  # 0o541 is 353, of which a byte keeps 97
        (r"\377", "\ufffd"),  # no character
        (r"\q", "q"),
    ],
)
def test_escapes_are_those_of_c(written, says):
    assert unescape(written) == says


def config(**values):
    return ", backend_config=" + json.dumps(values, separators=(",", ":"))


def expected(*models):
    return {"reification_cost": [{"exec_time_us": time, "compute_time_us": 0, "name": name} for name, time in models]}


NEAR, ANY = "indexing-cost-model", ""


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        (config(known_trip_count={"n": "7"}), "known_trip_count", "7"),
        (config(lhs_contracting_dimensions=["1", "2"]), "lhs_contracting_dims", "{1,2}"),
        (config(lhs_contracting_dimensions=[]), "lhs_contracting_dims", "{}"),
        # Of several models the one of the tiles that XLA chose, where it says anything.
        (config(**expected((ANY, 8600.5), (NEAR, 0.6))), "estimated_microseconds", "0.6"),
        (config(**expected((NEAR, 0), (ANY, 8600.5))), "estimated_microseconds", "8600.5"),
        (config(**expected((ANY, 1.5e-3))), "estimated_microseconds", "0.0015"),
        (config(**expected((NEAR, 0.0))), "estimated_microseconds", None),
        (config(**expected(("another", 3.0))), "estimated_microseconds", None),
        (config(window={}, estimated_cycles="1234"), "estimated_cycles", "1234"),
        (config(estimated_cycles="0"), "estimated_cycles", None),
        (config(known_trip_count={"n": "7"}), "estimated_cycles", None),
        # What looks like it elsewhere is not a backend's.
        (', frontend_attributes={c="{\\"known_trip_count\\":{\\"n\\":\\"7\\"}}"}', "known_trip_count", None),
        (", a={1,/*index=5*/2}, b=3", "a", "{1,2}"),
        (", a={1,/*index=5*/2}, b=3", "b", "3"),
        (", a=1, a=2", "a", "1"),
        (", a=1, flag, b=2", "flag", None),
        (', s="a, b=1", b=2', "s", "a, b=1"),
        (', s="a, b=1", b=2', "b", "2"),
        (", to_apply=%add", "to_apply", "add"),
        (", called_computations={%a, %b}", "called_computations", "{a, b}"),
        (", other=%add", "other", "%add"),  # not the name of a computation
        (", x=" + "1" * (LONGEST_VALUE + 1), "x", shorten_value("1" * (LONGEST_VALUE + 1))),
    ],
)  # fmt: skip
def test_an_attribute_of_an_instruction(text, key, value):
    assert dict(read_attributes(text)).get(key) == value


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("HloModule m", {"name": "m"}),
        ("HloModule m, a={1, 2}, b", {"name": "m", "a": "{1, 2}"}),
        ('HloModule m, frontend="x, y=1"', {"name": "m", "frontend": "x, y=1"}),
        ("HloModule", {}),
    ],
)
def test_the_first_line_of_a_module(line, says):
    assert read_header(line) == says
