"""The pages of the documentation that come from code: the reference, the errors, the rules, the shell and the magics.

`python -m docs.pages FOLDER` writes them below a folder, which the build of the site does before anything else.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from docs.pages import errors, reference, rules, shell

SECTIONS = {"reference": reference.pages, "errors": errors.pages, "rules": rules.pages, "shell": shell.pages}


def write_pages(folder: Path) -> None:
    """Write every generated page below a folder, and remove those of an earlier time that are there no more.

    A page whose text is the same is not touched, so that a second build reads only what changed.
    """
    for section, pages in SECTIONS.items():
        _write(folder / section, pages())


def _write(folder: Path, pages: Mapping[str, str]) -> None:
    paths = {folder / f"{name}.md": text for name, text in pages.items()}
    for old in folder.rglob("*.md"):
        if old not in paths:
            old.unlink()
    for path, text in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def remove_pages(folder: Path) -> None:
    """Remove every generated page below a folder."""
    for section in SECTIONS:
        shutil.rmtree(folder / section, ignore_errors=True)
