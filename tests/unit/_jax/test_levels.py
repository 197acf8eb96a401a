"""What an optimization level tells XLA."""

import jax
import pytest

from explorer._jax.settings import LEVELS, MORE, level_options


@pytest.mark.parametrize("level", range(4))
def test_a_level_up_to_three_says_the_same_on_each_backend(level) -> None:
    assert level_options(level) == LEVELS[level]
    assert level_options(level).get("xla_backend_optimization_level") == (level if level < 3 else None)


def test_level_four_asks_for_more_than_xla_does_by_itself_where_there_is_more() -> None:
    assert level_options(4) == MORE.get(jax.default_backend(), {})
