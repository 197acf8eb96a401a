"""How the tests of rules on the jaxpr ask one rule, and read what it points at."""

from explorer.capture.sources import read_source
from explorer.model.findings import Finding
from explorer.pitfalls.rule import rule_named
from explorer.pitfalls.tracing import gather


def findings(rule, function, *args, **kwargs) -> list[Finding]:
    """What one rule says of a function, and no more than its cheap evidence: as it is at each compile."""
    passive = rule_named(rule)
    assert passive.passive
    return list(passive.check(gather(function, args, kwargs, record=False)))


def only(rule, function, *args, **kwargs) -> Finding:
    found = findings(rule, function, *args, **kwargs)
    assert len(found) == 1, found
    return found[0]


def piece(finding) -> str:
    """The text that a finding points at, to the end of its first line."""
    line = read_source(finding.file).text.splitlines()[finding.line - 1]
    assert finding.text == line.strip()
    end = finding.end_column if finding.end_line == finding.line else len(line)
    return line[finding.column : end]
