"""What Explorer gives to pytest: fixtures `ledger` and `no_recompiles`, marks `no_recompiles` and `max_compiles`.

A package of its own, because pytest imports it whenever Explorer is installed: `explorer` and JAX are only imported
by a test that asks for one of these.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from explorer.ledger.guards import Guard
    from explorer.ledger.watch import Watch

__all__ = ["ledger", "no_recompiles", "pytest_configure", "pytest_runtest_call"]

_MARKS = (
    "no_recompiles(*functions, allow_first=True): fail if one of the functions (any, if none is given) compiles again",
    "max_compiles(function, n): fail if the function (or its name) compiles more than n times in the test",
)
_GUARDS = pytest.StashKey["list[Guard]"]()


def pytest_configure(config: pytest.Config) -> None:
    for mark in _MARKS:
        config.addinivalue_line("markers", mark)


@pytest.fixture
def ledger() -> Iterator[Watch]:
    """What JAX traces, lowers and compiles from here to the end of the test, and why: an `explorer.watch()`."""
    import explorer

    with explorer.watch() as watch:
        yield watch


@pytest.fixture
def no_recompiles(request: pytest.FixtureRequest) -> Iterator[Watch]:
    """Fails the test if it compiles something again; what fixtures before this one compiled has compiled before."""
    import explorer

    guard = explorer.assert_no_recompiles()
    watch = guard.__enter__()
    guards: list[Guard] = request.node.stash.setdefault(_GUARDS, [])
    guards.append(guard)
    yield watch
    watch.stop()  # if the test never ran, because a later fixture failed


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    marks = [mark for name in ("no_recompiles", "max_compiles") for mark in item.iter_markers(name)]
    opened = item.stash.setdefault(_GUARDS, [])
    if not marks and not opened:
        return (yield)
    import explorer

    makers: dict[str, Any] = {"no_recompiles": explorer.assert_no_recompiles, "max_compiles": explorer.max_compiles}
    guards = [makers[mark.name](*mark.args, **mark.kwargs) for mark in marks]
    for guard in guards:
        guard.__enter__()
    guards += opened
    opened.clear()
    try:
        result = yield
    except BaseException as error:
        for guard in guards:
            guard.__exit__(type(error), error, error.__traceback__)
        raise
    broken: list[str] = []
    for guard in guards:
        try:
            guard.__exit__(None, None, None)
        except explorer.RecompilationError as error:
            broken.append(str(error))
    if broken:
        pytest.fail("\n".join(broken), pytrace=False)
    return result
