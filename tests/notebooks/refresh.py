"""Run every notebook and write it back with its outputs, the same on every machine as far as that goes.

python tests/notebooks/refresh.py [NAME…]
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from execution import NOTEBOOKS, execute, output_problems, saved_problems
from nbformat import NotebookNode

__all__ = ["normalise"]


def normalise(notebook: NotebookNode) -> None:
    """Drop what tells about the run and not about the lesson: timings, widget state, the interpreter's version."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for cell in notebook.cells:
        cell.metadata = {"tags": cell.metadata["tags"]} if cell.metadata.get("tags") else {}


def refresh(path: Path) -> list[str]:
    """Run one notebook; it is written only if nothing is wrong with it."""
    notebook = nbformat.read(path, as_version=4)
    normalise(notebook)
    execute(notebook)
    normalise(notebook)
    problems = output_problems(notebook) + saved_problems(notebook)
    if not problems:
        nbformat.write(notebook, path)
    return problems


def main(names: list[str]) -> int:
    failed = 0
    for path in NOTEBOOKS:
        if names and path.name not in names:
            continue
        problems = refresh(path)
        print(
            f"{path.name}: "
            + ("\n  ".join(["not written", *problems]) if problems else f"{path.stat().st_size:,} bytes")
        )
        failed += bool(problems)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
