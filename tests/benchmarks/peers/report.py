"""The table of docs/peers.md, made of docs/peers.json and of nothing else."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.benchmarks.peers.chart import drawn
from tests.benchmarks.peers.explain import sentences
from tests.benchmarks.peers.figures import FIELDS
from tests.benchmarks.peers.units import seconds

__all__ = ["BEGIN", "END", "JSON", "PAGE", "PICTURES", "keep", "read", "table", "with_table", "write"]

_ROOT = Path(__file__).parents[3]
PAGE = _ROOT / "docs" / "peers.md"
JSON = _ROOT / "docs" / "peers.json"
PICTURES = {theme: _ROOT / "docs" / f"peers-{theme}.svg" for theme in ("light", "dark")}
BEGIN, END = "<!-- peers -->", "<!-- /peers -->"
_ALT = "How many times as long as Explorer's compiled functions others take, on a scale of powers of ten"
_PICTURE = "\n".join(f"![{_ALT}](peers-{theme}.svg){{.only-{theme}}}" for theme in ("light", "dark"))
_HEAD = {"jax": "JAX, eager", "torch": "torch, eager", "mlx": "mlx, eager"}


def read(path: Path = JSON) -> dict[str, Any]:
    """What a run wrote."""
    return json.loads(path.read_text(encoding="utf-8"))


def write(figures: Mapping[str, Any], path: Path = JSON) -> None:
    """Keep a run; lists of numbers on one line, so that a change is one line too."""
    text = json.dumps(figures, indent=1, ensure_ascii=False)
    text = re.sub(r"\[\s+([^\[\]{}\"]+?)\s+\]", lambda list_: "[" + re.sub(r"\s+", " ", list_[1]) + "]", text)
    path.write_text(text + "\n", encoding="utf-8")


def keep(figures: Mapping[str, Any]) -> None:
    """A run's JSON, and what is made of it: the pictures and the page's table."""
    write(figures)
    kept = read()
    for theme, path in PICTURES.items():
        path.write_text(drawn(kept, theme), encoding="utf-8")
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), kept), encoding="utf-8")


def table(figures: Mapping[str, Any]) -> str:
    """Markdown: what was measured where, a line for each workload, and what is to be said about it."""
    variants = [one for one in FIELDS if any(one in row["seconds"] for row in figures["workloads"])]
    lines = [
        _where(figures),
        "",
        _PICTURE,
        "",
        f"| a call of | {' | '.join(_HEAD.get(one, f'`{one}`') for one in variants)} |",
    ]
    lines.append(f"|---|{'---:|' * len(variants)}")
    lines += [_line(row, variants) for row in figures["workloads"]]
    return "\n".join([*lines, "", *sentences(figures)])


def with_table(page: str, figures: Mapping[str, Any]) -> str:
    """The page with this run's table between its markers.

    Raises:
        ValueError: It has no such markers.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page has no {BEGIN} … {END}, between which the table goes")
    return f"{before}{BEGIN}\n{table(figures)}\n{END}{after}"


def _where(figures: Mapping[str, Any]) -> str:
    machine, versions = figures["machine"], figures["versions"]
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    quick = " **A quick look at smaller sizes, not a measurement.**" if figures["quick"] else ""
    return (
        f"The time of one call: medians of interleaved rounds, on {machine['cores']} cores of "
        f"{machine['processor']}, {machine['memory']}, {machine['system']}, {machine['date']}; "
        f"Python {machine['python']}, {listed}.{quick}"
    )


def _line(row: Mapping[str, Any], variants: list[str]) -> str:
    measured = row["seconds"]
    fastest = min(one["median"] for one in measured.values())
    cells = []
    for variant in variants:
        if variant not in measured:
            cells.append("failed" if variant in row["failed"] else "–")
            continue
        shown = seconds(measured[variant]["median"])
        # an interval that overlaps the fastest counts as equally fast
        cells.append(f"**{shown}**" if measured[variant]["interval"][0] <= fastest else shown)
    return f"| {row['title']}, {row['size']} | {' | '.join(cells)} |"
