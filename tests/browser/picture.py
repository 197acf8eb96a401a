"""The pictures of the README, made by its own lines and those of the pages that it points to, in a real JupyterLab.

python tests/browser/picture.py
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from conftest import chromium_path, launched
from lab import Browser, Lab, Notebook, running_lab
from playwright.sync_api import Locator
from view import View

ROOT = Path(__file__).parents[2]
LINE = "weights = "
LEDGER = '.explorer.ledger[data-ready="true"]'
FINDINGS = ".explorer-findings[data-started]"
PROFILE = '.explorer.profile[data-ready="true"]'


def main() -> None:
    viewed = cells("README.md")[0]
    recompiles = cells("docs/use/recompiles.md")
    linted = next(cell for cell in cells("docs/use/pitfalls.md") if "ex.lint(" in cell)
    profiled = next(cell for cell in cells("docs/use/measure.md") if "ex.profile(" in cell)
    with (
        TemporaryDirectory() as home,
        running_lab(Path(home)) as lab,
        launched(chromium_path() or "chromium") as chromium,
    ):
        lab.write("view.ipynb", viewed)
        lab.write("ledger.ipynb", *recompiles[:2])
        lab.write("findings.ipynb", linted)
        lab.write("profile.ipynb", profiled)
        for theme in ("Light", "Dark"):
            browser = Browser(chromium.new_context(viewport={"width": 1500, "height": 1000}, device_scale_factor=1))
            shown = opened(browser, lab, "view.ipynb", theme)
            view = View(shown.page)
            view.click_line(LINE)
            keep(shown, view.root, f"view-{theme.lower()}.png")
            shown = opened(browser, lab, "ledger.ipynb", theme)
            shown.page.wait_for_selector(LEDGER, timeout=60_000)
            keep(shown, shown.page.locator(LEDGER).last, f"ledger-{theme.lower()}.png")
            shown = opened(browser, lab, "findings.ipynb", theme)
            shown.page.wait_for_selector(FINDINGS, timeout=60_000)
            keep(shown, shown.page.locator(FINDINGS).last, f"findings-{theme.lower()}.png")
            shown = opened(browser, lab, "profile.ipynb", theme)
            shown.page.wait_for_selector(PROFILE, timeout=60_000)
            keep(shown, shown.page.locator(PROFILE).last, f"profile-{theme.lower()}.png")


def cells(page: str) -> list[str]:
    """The Python of a page, block by block."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [block.rstrip() for block in re.findall(r"```(?:python|\{code-cell\})\n(.*?)```", text, re.DOTALL)]


def opened(browser: Browser, lab: Lab, name: str, theme: str) -> Notebook:
    shown = browser.open(lab, name)
    shown.set_theme(f"JupyterLab {theme}")
    shown.run_all()
    return shown


def keep(shown: Notebook, what: Locator, name: str) -> None:
    shown.page.mouse.move(0, 0)
    what.screenshot(path=ROOT / "docs" / name)
    print(f"docs/{name} is written")
    shown.shut_down()


if __name__ == "__main__":
    main()
