"""What all unit tests share."""

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes depends on the machine's other work: time is measured in tests/benchmarks, not here.
settings.register_profile("explorer", deadline=None, print_blob=True)
# Where a change is judged the examples are the same each time: new ones are for where somebody can look into them.
settings.register_profile("judged", settings.get_profile("explorer"), derandomize=True)
settings.load_profile("judged" if os.environ.get("EXPLORER_CI") == "1" else "explorer")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a file whose tests are all slow where none of them is asked for: some compile as they are imported."""
    if config.option.markexpr != "not slow" or collection_path.suffix != ".py":
        return None
    return "\npytestmark = pytest.mark.slow" in collection_path.read_text(encoding="utf-8") or None


@pytest.fixture(autouse=True, scope="module")
def _frozen() -> Iterator[None]:
    """What earlier modules left in JAX's caches isn't looked at for garbage again: after 1,000 tests that took 1 s."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _unwatched() -> Iterator[None]:
    """A shell that a module loads Explorer into starts the session's watch: it ends with the module."""
    yield
    if watching := sys.modules.get("explorer.ledger.watch"):
        watching.stop_session()


@pytest.fixture(autouse=True)
def _traced() -> Iterator[None]:
    """A test leaves the tracer that was there: without coverage's, all tests after it would seem to cover nothing."""
    before = sys.gettrace()
    yield
    assert sys.gettrace() is before, "the test took another's tracer away"
