"""Views of findings as text, page and notebook output, without JAX."""

from __future__ import annotations

from explorer.model.findings import Finding, Findings
from explorer.view.display import render
from explorer.view.findings.html import connect, fragment
from explorer.view.interface import View
from explorer.view.registry import terminal_drawing_of

__all__ = ["FindingView", "FindingsView"]


class FindingsView(View[Findings]):
    """View of findings with their fixes. A script adds the buttons that write fixes into cells."""

    def title(self, value: Findings) -> str:
        return f"pitfalls of {value.function or 'a function'}"

    def html(self, value: Findings) -> str:
        return fragment(value)

    def output(self, value: Findings) -> dict[str, str]:
        text = render(terminal_drawing_of(Findings)(value), 100)
        return {"text/html": fragment(value, connect(value)), "text/plain": text}


class FindingView(View[Finding]):
    def title(self, value: Finding) -> str:
        return value.rule

    def html(self, value: Finding) -> str:
        return fragment(Findings((value,)))

    def output(self, value: Finding) -> dict[str, str]:
        return FindingsView().output(Findings((value,)))
