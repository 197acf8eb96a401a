"""A real Chromium and a real JupyterLab; without Chromium the tests are skipped, or fail where CI insists."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lab import Browser, Lab, running_lab, running_notebook
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-dev-shm-usage",  # a container's shared memory is small
]
# For as long as an action waits for what it acts on: a machine may be slow, and do other things, too.
expect.set_options(timeout=30_000)
# Names other than this machine's don't resolve, so nothing can load from a network even if a test forgot to look.
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"


@contextmanager
def launched(path: str) -> Iterator[Chromium]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=[*FLAGS, OFFLINE])
        yield running
        running.close()


def chromium_path() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Chromium]:
    path = chromium_path()
    if path is None:
        reason = f"the browser tests need Chromium: none of {', '.join(NAMES)} is on the PATH"
        if os.environ.get("EXPLORER_CI") == "1":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    with launched(path) as running:
        yield running


@pytest.fixture(scope="package")
def lab(chromium: Chromium, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """It needs Chromium only so as not to start a server for nobody."""
    with running_lab(tmp_path_factory.mktemp("lab")) as running:
        yield running


@pytest.fixture(scope="package")
def notebook7(chromium: Chromium, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with running_notebook(tmp_path_factory.mktemp("notebook7")) as running:
        yield running


@pytest.fixture
def browser(chromium: Chromium) -> Iterator[Browser]:
    """Pages that share nothing with another test's; a request to the network, or an error in the console, fails it."""
    context = chromium.new_context(viewport={"width": 1500, "height": 1000}, color_scheme="light")
    pages = Browser(context)
    yield pages
    context.close()
    assert not pages.foreign, f"the network was asked for {pages.foreign}"
    assert not pages.errors, f"in the console: {pages.errors}"


@pytest.fixture
def notebooks() -> Path:
    return Path(__file__).parents[2] / "notebooks"
