"""Pages that show an output as its hosts do: an editor's webview, a page with a strict policy."""

from __future__ import annotations

from pathlib import Path

from lab import Browser
from playwright.sync_api import Page

# What VS Code does with the HTML of an output: src/extensions/notebook-renderers, `domEval`.
EDITOR = """html => {
  const output = document.querySelector("#output");
  output.innerHTML = html;
  for (const node of Array.from(output.getElementsByTagName("script"))) {
    const script = document.createElement("script");
    script.text = node.innerText;
    if (node.type) script.setAttribute("type", node.type);
    output.appendChild(script).parentNode.removeChild(script);
  }
}"""
# And the policy of its webview, notebook.experimental.enableCsp: no blob: address can run.
EDITORS_POLICY = (
    "default-src 'none'; script-src 'self' https://*.vscode-cdn.net 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' https://*.vscode-cdn.net 'unsafe-inline'; img-src 'self' https: http: data:; "
    "connect-src https:; child-src https: data:"
)


def policy(content: str) -> str:
    """The element of a page that sets its Content Security Policy."""
    return f'<meta http-equiv="Content-Security-Policy" content="{content}">'


def page_of(browser: Browser, tmp_path: Path, head: str, body: str) -> Page:
    file = tmp_path / "page.html"
    file.write_text(f'<!doctype html><html lang="en"><head><meta charset="utf-8">{head}</head>{body}</html>')
    return browser.open_file(file)
