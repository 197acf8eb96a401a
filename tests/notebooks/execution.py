"""Running a notebook as a person would, in a real kernel, and what may be wrong with it afterwards."""

from __future__ import annotations

import json
import re
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

from explorer.files.capture import decode
from explorer.model.capture import Capture
from explorer.view.page import unpack

__all__ = ["NOTEBOOKS", "captures", "execute", "output_problems", "saved_problems"]

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
LARGEST = 1_000_000  # bytes of a notebook: each view in it stands alone, with the code that it shows
SECONDS = 120  # for one cell

# Where a machine keeps its users, programs and scraps; the lookbehind leaves addresses on the web alone.
_MACHINE = re.compile(r"(?<![\w.:/])/(?:home|Users|root|tmp|var|work|opt|mnt)/[\w.-]+|[A-Z]:\\\\?Users|site-packages/")
_SKIPPED = "skipped: the compiler"  # what `%%needs` of a notebook says where it can't run a cell
_CELL = re.compile(r"[/\\]ipykernel_\d+[/\\]\d+\.py$")
_EMBEDDED = re.compile(r'data-part="capture">([^<]+)<')


def execute(notebook: NotebookNode) -> None:
    """Run every cell in a kernel of this interpreter, in the notebook itself; a cell that fails raises.

    The state of widgets is left out, as JupyterLab leaves it out: a saved notebook must not depend on it.
    """
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=SECONDS,
        force_raise_errors=True,
        store_widget_state=False,
        record_timing=False,
        coalesce_streams=True,
    )
    client.execute()


def output_problems(notebook: NotebookNode) -> list[str]:
    """What is wrong with a notebook that ran, though every cell was answered with success."""
    found: list[str] = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            where = f"cell {cell.id}: "
            if output.output_type == "error":
                found.append(f"{where}error output {output.ename}")
            elif output.output_type == "stream":
                if output.name == "stderr" and "UsageError" in output.text:
                    found.append(f"{where}UsageError on stderr")
            elif "text/plain" not in output.data:
                found.append(f"{where}a display without text/plain: {', '.join(output.data)}")
    if "widgets" in notebook.metadata:
        found.append("metadata.widgets: the state of widgets is saved")
    if (size := len(nbformat.writes(notebook).encode())) > LARGEST:
        found.append(f"{size:,} bytes, more than {LARGEST:,}")
    return found


def saved_problems(notebook: NotebookNode) -> list[str]:
    """What is wrong with a notebook as it is committed: cells not run, traces of the machine."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    found = [f"cell {cell.id}: not run" for cell in code if cell.execution_count is None]
    if not any(cell.outputs for cell in code):
        found.append("no outputs")
    texts = ((cell.id, output.get("text", "")) for cell in code for output in cell.outputs)
    found += [f"cell {name}: saved without what it needs: {text.strip()}" for name, text in texts if _SKIPPED in text]
    found += [f"a path of a machine: {path}" for path in _MACHINE.findall(json.dumps(notebook, ensure_ascii=False))]
    for capture in captures(notebook):
        files = {frame.file for stage in capture.stages for frame in stage.graph.frames} | set(capture.sources)
        found += [f"in a capture, a path of a machine: {file}" for file in sorted(files) if not _CELL.search(file)]
    return found


def captures(notebook: NotebookNode) -> list[Capture]:
    """The captures that a notebook's outputs carry."""
    shown = [
        "".join(o.data.get("text/html", "")) for cell in notebook.cells for o in cell.get("outputs", ()) if "data" in o
    ]
    return [decode(unpack(data)) for html in shown for data in _EMBEDDED.findall(html)]
