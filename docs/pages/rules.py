"""A page for each rule: what it finds and why that matters, a bad and a good program, and how to silence it."""

from __future__ import annotations

from docs.pages.docstrings import markdown
from docs.pages.rule_examples import Example, Outcome, examples, outcomes
from explorer.pitfalls.rule import Rule, all_rules, silencing


def pages() -> dict[str, str]:
    """By its path without `.md`, each page's text."""
    by_name = {example.rule: example for example in examples()}
    written = {rule.code: _page(rule, by_name[rule.name], outcomes()[rule.name]) for rule in all_rules()}
    return {"index": _index(), **written}


def _index() -> str:
    rows = ["# Rules", "", "What `lint` looks for. `python -m explorer explain EX002` shows a rule in a terminal.", ""]
    rows += ["| rule | name | severity | what goes wrong |", "|---|---|---|---|"]
    rows += [
        f"| [{rule.code}]({rule.code}.md) | `{rule.name}` | {rule.severity} | {markdown(rule.summary)} |"
        for rule in all_rules()
    ]
    return "\n".join([*rows, "", "```{toctree}", ":hidden:", "", *(rule.code for rule in all_rules()), "```", ""])


def _page(rule: Rule, example: Example, outcome: Outcome) -> str:
    rows = [f"# {rule.code} `{rule.name}`", "", f"*{rule.severity}*: {markdown(rule.summary)}", ""]
    rows += [markdown(rule.about), "", f"[JAX's documentation of it]({rule.documentation})", ""]
    rows += ["## Bad", "", "```python", example.bad.rstrip(), "```", "", "```text", outcome.text, "```", ""]
    rows += ["## Good", "", "```python", example.good.rstrip(), "```", ""]
    rows += ["## Silence it", "", *(f"- {markdown(way)}" for way in silencing(rule)), ""]
    return "\n".join(rows)
