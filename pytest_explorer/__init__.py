"""pytest plugin: fixtures `ledger`, `no_recompiles` and `explorer_golden`, marks `no_recompiles` and `max_compiles`.

It is a package of its own because pytest always imports it; only a test that uses a fixture or mark imports
`explorer` and JAX.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from explorer.golden.record import GoldenTest
    from explorer.ledger.guards import Guard
    from explorer.ledger.watch import Watch

__all__ = [
    "explorer_golden",
    "ledger",
    "no_recompiles",
    "pytest_addoption",
    "pytest_configure",
    "pytest_runtest_call",
]

_MARKS = (
    "no_recompiles(*functions, allow_first=True): fail if one of the functions (any, if none is given) compiles again",
    "max_compiles(function, n): fail if the test calls more than n programs of the function (or its name)",
)
_GUARDS = pytest.StashKey["list[Guard]"]()
_UPDATE = "--update-golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    about = "update the golden files of tests that use explorer_golden"
    parser.getgroup("explorer").addoption(_UPDATE, action="store_true", help=about)


def pytest_configure(config: pytest.Config) -> None:
    for mark in _MARKS:
        config.addinivalue_line("markers", mark)


@pytest.fixture
def ledger() -> Iterator[Watch]:
    """Watch traces, lowerings and compiles until the end of the test, with their reasons (`explorer.watch()`)."""
    import explorer

    with explorer.watch() as watch:
        yield watch


@pytest.fixture
def no_recompiles(request: pytest.FixtureRequest) -> Iterator[Watch]:
    """Fail the test if it calls a second program of a function; what compiled earlier doesn't count."""
    import explorer

    guard = explorer.assert_no_recompiles()
    # It ends in `pytest_runtest_call`: in the teardown a failure would count as an error.
    watch = guard.__enter__()
    guards: list[Guard] = request.node.stash.setdefault(_GUARDS, [])
    guards.append(guard)
    yield watch
    watch.stop()  # if the test never ran, because a later fixture failed


@pytest.fixture
def explorer_golden(request: pytest.FixtureRequest) -> Iterator[GoldenTest]:
    """Compare `explorer_golden(step, batch)` with `golden/TEST.step.golden` next to the test; fail if its cost grew.

    The file records the costs of `explorer.record`, and the number of the test's compiles so far.
    """
    import explorer
    from explorer.golden.record import GoldenTest

    def path(function: str) -> Path:
        name = re.sub(r"[^\w.=,-]+", "_", f"{request.node.name}.{function}")
        return request.path.parent / "golden" / f"{name}.golden"

    with explorer.watch() as watch:
        yield GoldenTest(
            path, bool(request.config.getoption(_UPDATE)), watch, lambda text: pytest.fail(text, pytrace=False)
        )


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
    # Every guard must end, so their messages come together.
    broken: list[str] = []
    for guard in guards:
        try:
            guard.__exit__(None, None, None)
        except explorer.errors.RecompilationError as error:
            broken.append(str(error))
    if broken:
        pytest.fail("\n".join(broken), pytrace=False)
    return result
