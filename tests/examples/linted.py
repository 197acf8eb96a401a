"""What lint says of a function, next to the lines that its author marked."""

import inspect

from explorer.pitfalls.lint import lint


def found(rule, function, *args, **kwargs):
    """The findings of one rule; no rule may have failed."""
    findings = lint(function, *args, **kwargs)
    assert findings.faults == (), findings.faults
    return findings.of(rule)


def marked(function, mark="HIT"):
    """The lines of a function, or of a module, that end in `# HIT`."""
    lines, first = inspect.getsourcelines(inspect.unwrap(function))
    return [first + i for i, line in enumerate(lines) if line.rstrip().endswith(f"# {mark}")]


def hits(rule, function, *args, mark="HIT", **kwargs):
    """The findings of a rule, which are in the marked lines, one in each."""
    findings = found(rule, function, *args, **kwargs)
    assert sorted(one.line for one in findings) == marked(function, mark), list(findings)
    return list(findings)


def piece(finding):
    """The text that a finding points at."""
    with open(finding.file) as file:
        lines = file.read().encode().splitlines()
    if finding.line == finding.end_line:
        return lines[finding.line - 1][finding.column : finding.end_column].decode()
    several = [lines[finding.line - 1][finding.column :], *lines[finding.line : finding.end_line - 1]]
    return b"\n".join([*several, lines[finding.end_line - 1][: finding.end_column]]).decode()
