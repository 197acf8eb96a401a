"""A profile's rows in another order."""

from dataclasses import replace
from math import nan

from explorer.model.results.profile import LineTime
from tests.support.displays.values import VALUES


def test_rows_are_sorted_by_what_is_wasted_where_that_is_known_then_by_time() -> None:
    rows = [(1, 1.0, None), (2, 3.0, None), (3, 0.5, 0.1), (4, 0.4, 0.3), (5, 0.9, 0.1), (6, 2.0, 0.0)]
    lines = [LineTime("f.py", line, "", seconds, 0.1, 1, wasted, nan, nan) for line, seconds, wasted in rows]
    profile = VALUES["Profile_alone"]()
    profile = replace(profile, lines=lines, ops=[replace(op, wasted=0.0) for op in profile.ops])
    assert [row.line for row in profile.sort("wasted").lines] == [4, 5, 3, 6, 2, 1]
    assert [row.line for row in profile.sort().lines] == [2, 6, 1, 5, 3, 4]
