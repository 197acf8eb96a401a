"""Programs that hypothesis draws do the same hot as they do otherwise."""

import pytest
from hypothesis import given, settings

from tests.unit.hotpath.generated import maker, programs
from tests.unit.hotpath.oracle import account_of


def is_same_hot(program):
    make = maker(program)
    expected, _ = account_of(make, is_hot=False)
    found, hot = account_of(make, is_hot=True)
    assert found == expected
    return hot


@pytest.mark.slow
@given(program=programs())
@settings(max_examples=8, deadline=None, derandomize=True)
def test_a_drawn_program_does_the_same(program):
    is_same_hot(program)


@pytest.mark.slow
@given(program=programs())
@settings(max_examples=80, deadline=None)
def test_many_drawn_programs_do_the_same(program):
    is_same_hot(program)
