"""Give the outputs of saved notebooks the viewer of now, with the data that they have: nothing is run.

python tests/notebooks/viewer_code.py [NAME…]
"""

from __future__ import annotations

import re
import sys

import nbformat
from execution import NOTEBOOKS, output_problems, saved_problems

from explorer.view.capture.html import later_chunks
from explorer.view.page import elements, loader

OUTPUT = re.compile(
    r'(?P<data><script type="text/plain" data-part="(?P<part>capture|diff|ledger|profile)">[^<]*</script>)'
    r'(?P<code>(?:<script type="text/plain" data-part="viewer"[^>]*>[^<]*</script>)+)'
    r'</div><script type="module">const ID="(?P<id>[^"]*)".*?</script>',
    re.DOTALL,
)


def renewed(output: re.Match[str]) -> str:
    """An output's data, with the code that shows them; one that brought every pane does so still."""
    part, before = output["part"], " ".join(re.findall(r'data-chunks="([^"]*)"', output["code"])).split()
    name = part if part in ("ledger", "profile") else "viewer"
    first = {"capture": ("viewer",), "diff": ("diff_viewer", "passes_pane")}.get(part, ())
    later: tuple[str, ...] = ()
    if part == "capture" and "text_pane" in before:
        later = later_chunks(*(pane in before for pane in ("why_pane", "memory_pane", "passes_pane")))
    code = elements(name, first, later)
    return f'{output["data"]}{code}</div><script type="module">{loader(output["id"], name)}</script>'


def main(names: list[str]) -> int:
    failed = 0
    for path in NOTEBOOKS:
        if names and path.name not in names:
            continue
        notebook = nbformat.read(path, as_version=4)
        count = 0
        for output in (output for cell in notebook.cells for output in cell.get("outputs", ())):
            if "text/html" in output.get("data", {}):
                output.data["text/html"], found = OUTPUT.subn(renewed, output.data["text/html"])
                count += found
        problems = output_problems(notebook) + saved_problems(notebook)
        if not problems:
            nbformat.write(notebook, path)
        print(f"{path.name}: {count} outputs, {path.stat().st_size:,} bytes", *problems, sep="\n  ")
        failed += bool(problems)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
