"""What a rule says of itself, for a person who wants to know more than a finding has room for."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from explorer.pitfalls.rule import Rule, all_rules


def what_it_finds(rule: Rule) -> str:
    """The rule in its own words: the docstring of its file."""
    return (sys.modules[rule.check.__module__].__doc__ or "").strip()


def silencing(rule: Rule) -> tuple[str, ...]:
    """The ways to have the rule say nothing, from one line to a whole project."""
    return (
        f"on a line, in a statement or in a whole function: `# explorer: ignore[{rule.code}]`",
        f'in one call: `explorer.lint(f, x, ignore="{rule.name}")`, `%lint --ignore {rule.code} f(x)`',
        f'in a project, in pyproject.toml: `[tool.explorer.lint]` with `{rule.code} = "off"`',
    )


def rule_named(name: str) -> Rule | None:
    """The rule of a number or a name; None if there is none."""
    return next((rule for rule in all_rules() if name.lower() in (rule.code.lower(), rule.name)), None)


def rule_names() -> Iterable[str]:
    """The numbers and names of all rules."""
    return (name for rule in all_rules() for name in (rule.code, rule.name))


def explain_rule(rule: Rule) -> str:
    """The rule as text: what goes wrong, how grave that is, where JAX explains it, and how to silence it."""
    lines = [f"{rule.code} {rule.name} ({rule.severity})", "", rule.summary, "", what_it_finds(rule), ""]
    lines += [f"JAX's documentation: {rule.documentation}", "", "Silence it"]
    lines += [f"  {way}".replace("`", "") for way in silencing(rule)]
    return "\n".join(lines)
