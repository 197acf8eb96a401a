"""The picture of the README, made by the README's own lines in a real JupyterLab.

python tests/browser/picture.py
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from conftest import chromium_path, launched
from lab import Browser, running_lab
from view import View

ROOT = Path(__file__).parents[2]
LINE = "weights = "


def main() -> None:
    code = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[0].rstrip()
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    with (
        TemporaryDirectory() as home,
        running_lab(Path(home)) as lab,
        launched(chromium_path() or "chromium") as chromium,
    ):
        nbformat.write(notebook, lab.root / "readme.ipynb")
        for theme in ("Light", "Dark"):
            browser = Browser(chromium.new_context(viewport={"width": 1500, "height": 1000}, device_scale_factor=1))
            shown = browser.open(lab, "readme.ipynb")
            shown.set_theme(f"JupyterLab {theme}")
            shown.run_all()
            view = View(shown.page)
            view.click_line(LINE)
            shown.page.mouse.move(0, 0)
            view.root.screenshot(path=ROOT / "docs" / f"view-{theme.lower()}.png")
            print(f"docs/view-{theme.lower()}.png is written")
            shown.shut_down()


if __name__ == "__main__":
    main()
