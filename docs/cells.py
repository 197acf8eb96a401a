"""A Sphinx extension: how cells that were run while a page was built are shown, and what a screen reader needs."""

from __future__ import annotations

import re
import tempfile

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform

__all__ = ["setup"]

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Where MyST-NB runs a page.
_FOLDER = re.compile(re.escape(tempfile.gettempdir()) + r"/tmp\w+/")
_FILE = "%%writefile "


def show_cells(_: Sphinx, doctree: nodes.document) -> None:
    """What a page ran by `%%bash` is shown as a shell's, what it wrote by `%%writefile` as a file of that name."""
    for cell in [element for element in doctree.findall(nodes.container) if "cell" in element["classes"]]:
        join_streams(cell)
        source = next(iter(cell.findall(nodes.literal_block)), None)
        if source is None:
            continue
        magic, _, rest = source.rawsource.partition("\n")
        if magic == "%%bash":
            replace_text(source, rest, "bash")
        elif magic.startswith(_FILE):
            replace_text(source, rest, "python")
            name = magic.removeprefix(_FILE).strip()
            cell.insert(0, nodes.paragraph(name, name, classes=["file-name"]))
            for output in [child for child in cell.children if "cell_output" in child.get("classes", ())]:
                cell.remove(output)  # "Writing train.py"


def drop_empty_headers(_: Sphinx, doctree: nodes.document) -> None:
    """Markdown has no table without a header; one without words has none."""
    for header in list(doctree.findall(nodes.thead)):
        if not header.astext().strip():
            header.parent.remove(header)


class IndexedPages(SphinxTransform):
    """What is indexed above a page's title stands for its first section, not for the empty place above it.

    The site's search shows the text of a result's place, and fails where there is none.
    """

    default_priority = 840  # before the entries are collected

    def apply(self, **_: object) -> None:
        section = next(self.document.findall(nodes.section), None)
        for index in [child for child in self.document.children if isinstance(child, addnodes.index)]:
            assert section is not None
            index["entries"] = [
                (kind, words, section["ids"][0], main, key) for kind, words, _, main, key in index["entries"]
            ]


def indexed_pages(_: Sphinx, environment: BuildEnvironment) -> list[str]:
    """The pages to write again though nothing changed: Sphinx's search forgets what is indexed on pages that aren't."""
    return [page for page, entries in environment.get_domain("index").entries.items() if entries]


def join_streams(cell: nodes.Element) -> None:
    """Join what came in several pieces. MyST-NB's own merging breaks lines where a piece ends.

    What a shell printed loses its colours: Pygments has no lexer that is right about them.
    """
    before: nodes.literal_block | None = None
    for block in list(cell.findall(nodes.literal_block)):
        if "stream" not in block["classes"]:
            before = None
            continue
        if before is not None and before.parent is block.parent and before["classes"] == block["classes"]:
            replace_text(before, before.rawsource + block.rawsource, before["language"])
            block.parent.remove(block)
        else:
            before = block
    for block in cell.findall(nodes.literal_block):
        if "\x1b" in block.rawsource or _FOLDER.search(block.rawsource):
            replace_text(block, _FOLDER.sub("", _COLOUR.sub("", block.rawsource)), "text")


def replace_text(block: nodes.literal_block, text: str, language: str) -> None:
    block.rawsource = text
    block.children = [nodes.Text(text)]
    block["language"] = language


def name_headings(_: Sphinx, page: str, template: str, context: dict[str, object], doctree: object) -> None:
    """Mend what a screen reader would stumble over, in what others write.

    The captions of the table of contents are headings without a level; the corner of a pandas table is a header
    without words.
    """
    for name in ("furo_navigation_tree", "body"):
        if isinstance(html := context.get(name), str):
            html = html.replace('role="heading"', 'role="heading" aria-level="2"')
            context[name] = html.replace("<th></th>", "<td></td>")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(IndexedPages)
    app.connect("env-updated", indexed_pages)
    app.connect("doctree-read", show_cells)
    app.connect("doctree-read", drop_empty_headers)
    app.connect("html-page-context", name_headings, priority=900)  # behind Furo's
    return {"parallel_read_safe": True, "parallel_write_safe": True}
