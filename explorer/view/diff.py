"""Diff of two captures as interactive HTML with a table for readers without scripts."""

from __future__ import annotations

from hashlib import blake2b
from html import escape

from explorer.analysis.diff.diff import Diff, Fusion
from explorer.files.capture_writing import encode_diff
from explorer.view.interface import View
from explorer.view.page import interactive

_MOST_FUSIONS = 40  # of a kind, in the table
_MOST_LINES = 200  # of a stage's text, in the table


class DiffView(View[Diff]):
    """Interactive view of both programs, with a table of the differences where no script runs."""

    def title(self, value: Diff) -> str:
        return f"{value.a.function} → {value.b.function}"

    def html(self, value: Diff) -> str:
        return fragment(value)

    def output(self, value: Diff) -> dict[str, str]:
        return {"text/html": fragment(value)}


def fragment(diff: Diff) -> str:
    """Return the HTML of a diff's notebook output: the interactive view, or tables without scripts."""
    data = encode_diff(diff)
    static = f'<div class="explorer-static">{table(diff)}<p>Trust the notebook for the interactive view.</p></div>'
    return interactive(blake2b(data, digest_size=8).hexdigest(), data, static, "diff", ("diff_viewer", "passes_pane"))


def table(diff: Diff) -> str:
    """Return a diff as HTML without scripts: a table of the differences, and each stage's text difference."""
    return facts(diff) + _texts(diff)


def facts(diff: Diff, names: tuple[str, str] | None = None) -> str:
    """Return a diff's headline and table as HTML; `names` label the two sides, by default with the functions' names."""
    one, other = names or (diff.a.function, diff.b.function)
    rows = [(value.name, value.a, value.b) for value in (*diff.values, *diff.durations)]
    for name, stage in diff.stages.items():
        effect = str(stage.step).partition(": ")[2]
        rows.append((name, f"{len(stage.a.graph.names):,}", f"{len(stage.b.graph.names):,} ({effect})"))
    rows += [("fusion lost", _fusion_text(one), "") for one in diff.fusions_lost[:_MOST_FUSIONS]]
    rows += [("fusion gained", "", _fusion_text(one)) for one in diff.fusions_gained[:_MOST_FUSIONS]]
    rows += [
        ("fusion changed", _fusion_text(old), _fusion_text(new)) for old, new in diff.fusions_changed[:_MOST_FUSIONS]
    ]
    cells = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    head = f"<tr><th>fact</th><th>{escape(one)}</th><th>{escape(other)}</th></tr>"
    verdict = escape(f"{diff.headline[0].upper()}{diff.headline[1:]}.")
    return f"<p><strong>{verdict}</strong></p><table><thead>{head}</thead><tbody>{cells}</tbody></table>"


def _texts(diff: Diff) -> str:
    texts: list[str] = []
    for name, stage in diff.stages.items():
        lines = stage.text().splitlines()
        if lines:
            more = f"\n… {len(lines) - _MOST_LINES:,} more lines" if len(lines) > _MOST_LINES else ""
            shown = escape("\n".join(lines[:_MOST_LINES]) + more)
            texts.append(f"<details><summary>{escape(name)}</summary><pre>{shown}</pre></details>")
    return "".join(texts)


def _fusion_text(fusion: Fusion) -> str:
    return f"{fusion.name}: {fusion.holds}" + f" ({', '.join(fusion.lines)})" * bool(fusion.lines)
