"""The documentation site: Sphinx, MyST and Furo, built by `make docs`; nothing is fetched when it is built or read."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT))
# Pages with code run it while they are built, each in a kernel and a folder of its own, with this Explorer.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
os.environ["PYTHONPATH"] = str(ROOT)
os.environ["JAX_PLATFORMS"] = "cpu"

from docs.pages import write_pages  # noqa: E402 - below the root of the repository, which is on the path from here on
from explorer import __version__  # noqa: E402

project = "Explorer"
author = "the authors of Explorer"
release = version = __version__
language = "en"

extensions = ["myst_nb", "docs.cells"]
root_doc = "index"
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
exclude_patterns = ["_*", "pages", "**/.ipynb_checkpoints"]

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = (
    "off"  # the notebooks are shown as they were saved, nbval runs them; a page that says `force` is run
)
nb_execution_in_temp = True
nb_execution_timeout = 120  # seconds, for one cell
nb_execution_show_tb = True
nb_ipywidgets_js = {}  # from a network; the views need none

html_theme = "furo"
html_title = "Explorer"
html_static_path, templates_path = ["_static"], ["_templates"]
html_favicon = "_static/icon.svg"
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_copy_source = html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "sidebar_hide_name": False,
    "top_of_page_buttons": [],
    # the colours of the views: explorer/view/js/src/core/tokens.css
    "light_css_variables": {"color-brand-primary": "#0b62c4", "color-brand-content": "#0b62c4"},
    "dark_css_variables": {"color-brand-primary": "#6cb0ff", "color-brand-content": "#6cb0ff"},
}


def copy_notebooks(app: Sphinx) -> None:
    """The notebooks as pages: Sphinx reads below this folder alone. One that has not changed isn't read again.

    A chart is shown as its picture: plotly's own form of it wants five megabytes of scripts.
    """
    guides = Path(app.srcdir) / "guides"
    for copy in guides.glob("*.ipynb"):
        if not (ROOT / "notebooks" / copy.name).exists():
            copy.unlink()
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        content = json.loads(notebook.read_text(encoding="utf-8"))
        for output in (output for cell in content["cells"] for output in cell.get("outputs", ())):
            output.get("data", {}).pop("application/vnd.plotly.v1+json", None)
        text, copy = json.dumps(content, ensure_ascii=False), guides / notebook.name
        if not copy.exists() or copy.read_text(encoding="utf-8") != text:
            copy.write_text(text, encoding="utf-8")


def generate(app: Sphinx) -> None:
    """The pages that come from code: reference, errors, rules, shell."""
    write_pages(Path(app.srcdir))


def list_own_section(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """List in the sidebar the pages of the section that is open: all 340 on each page took half of the build.

    Furo asks for all of them; it is asked after this.
    """
    if "toctree" in context:
        context["toctree"] = partial(list_collapsed, context["toctree"])


def list_collapsed(toctree: Callable[..., str], **options: Any) -> str:
    """Call Sphinx's `toctree` with closed sections, whatever a theme asks for."""
    return toctree(**{**options, "collapse": True})


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", list_own_section, priority=400)
    app.connect("builder-inited", generate)
    app.connect("builder-inited", copy_notebooks)
