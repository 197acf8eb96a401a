"""A capture as HTML that upgrades itself.

A static picture and a table stand there for readers without scripts (code hosts, untrusted notebooks, mail). Where a
script runs, it replaces them with the viewer: bundle and capture lie beside it, packed, so that a page needs no
network, no kernel and no other file.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
from functools import cache
from pathlib import Path

from explorer.model.capture import Capture
from explorer.view.picture import picture, summary

__all__ = ["bundle", "fragment", "page"]

_LOADER = """
const id = %(id)s;
for (const host of document.querySelectorAll(`[data-explorer="${id}"]:not([data-started])`)) {
  host.dataset.started = "";
  const fallback = host.querySelector(".explorer-static");
  const bytes = (name) => {
    const text = atob(host.querySelector(`[data-part="${name}"]`).textContent);
    const values = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) values[i] = text.charCodeAt(i);
    return values;
  };
  const place = document.createElement("div");
  try {
    const viewers = (window.explorerViewers ??= new Map());
    if (!viewers.has(%(version)s)) {
      const code = new Blob([bytes("viewer")]).stream().pipeThrough(new DecompressionStream("gzip"));
      const script = new Blob([await new Response(code).arrayBuffer()], { type: "text/javascript" });
      viewers.set(%(version)s, import(URL.createObjectURL(script)));
    }
    const { mount } = await viewers.get(%(version)s);
    host.append(place);
    await mount(place, bytes("capture"), { id });
    fallback.hidden = true;
  } catch (error) {
    place.remove();
    fallback.append(`The interactive view could not start: ${error.message ?? error}`);
  }
}
"""


@cache
def bundle() -> str:
    """The viewer's JavaScript, a module."""
    return (Path(__file__).parent / "static" / "viewer.js").read_text(encoding="utf-8")


@cache
def _packed_bundle() -> str:
    return base64.b64encode(gzip.compress(bundle().encode(), 9, mtime=0)).decode()


@cache
def _version() -> str:
    """Tells bundles apart when a page holds outputs of several versions."""
    from hashlib import blake2b

    return blake2b(bundle().encode(), digest_size=6).hexdigest()


def fragment(capture: Capture) -> str:
    """The HTML of one notebook output."""
    static = _static(capture)
    if not capture.stages:
        return static
    wire = base64.b64encode(capture.wire).decode()
    loader = _LOADER % {"id": json.dumps(capture.id), "version": json.dumps(_version())}
    return (
        f'<div class="explorer-output" data-explorer="{capture.id}">{static}'
        f'<script type="text/plain" data-part="capture">{wire}</script>'
        f'<script type="text/plain" data-part="viewer">{_packed_bundle()}</script></div>'
        f'<script type="module">{loader}</script>'
    )


def page(capture: Capture) -> str:
    """One self-contained page: the viewer at the height of the window."""
    title = html.escape(f"{capture.function} – Explorer")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        "<style>body{margin:12px;font-family:system-ui,sans-serif}img{max-width:100%}"
        ".explorer .panes{height:calc(100vh - 130px)!important}</style></head>"
        f"<body>{fragment(capture)}</body></html>\n"
    )


def _static(capture: Capture) -> str:
    """An image with its description, and a table: what every sanitiser leaves standing."""
    image = base64.b64encode(picture(capture).encode()).decode()
    shown = f'<img alt="{html.escape(_description(capture))}" src="data:image/svg+xml;base64,{image}">' + (
        _table(capture) if capture.stages else ""
    )
    return f'<div class="explorer-static">{shown}</div>'


def _table(capture: Capture) -> str:
    head, *rows = summary(capture)
    cells = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f"<details><summary>{html.escape(capture.function)}: stages and kernels as a table</summary>"
        f"<table><thead><tr>{''.join(f'<th>{html.escape(cell)}</th>' for cell in head)}</tr></thead>"
        f"<tbody>{cells}</tbody></table></details>"
    )


def _description(capture: Capture) -> str:
    stages = ", ".join(f"{stage.name} of {len(stage.graph):,} nodes" for stage in capture.stages)
    failure = f". {capture.failure}" if capture.failure else ""
    return f"{capture.function}{capture.signature}: {stages or 'no stage'}{failure}"
