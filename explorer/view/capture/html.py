"""A capture as HTML that upgrades itself: a picture and a table stand there where no script runs."""

from __future__ import annotations

from explorer.model.capture import Capture
from explorer.view.capture.picture import picture, summary
from explorer.view.chart import Table, static_html
from explorer.view.page import interactive

__all__ = ["fragment"]


def fragment(capture: Capture, includes_bundle: bool = True) -> str:
    """The HTML of one output; `includes_bundle`: the viewer's code is in it, or is found in another output."""
    static = _static(capture)
    return interactive(capture.id, capture.wire, static, includes_bundle) if capture.stages else static


def _static(capture: Capture) -> str:
    head, *rows = summary(capture)
    tables = [Table(f"{capture.function}: stages and kernels as a table", head, rows)] if capture.stages else []
    shown = static_html(picture(capture, invites=True), _description(capture), tables)
    return f'<div class="explorer-static">{shown}</div>'


def _description(capture: Capture) -> str:
    stages = ", ".join(f"{stage.name} of {len(stage.graph):,} nodes" for stage in capture.stages)
    failure = f". {capture.failure}" if capture.failure else ""
    return f"{capture.function}{capture.signature}: {stages or 'no stage'}{failure}"
