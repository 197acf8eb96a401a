"""Which rules run: those that are named, without the ignored and those that a project has off."""

import pytest

from explorer.errors import OptionError
from explorer.pitfalls.rule import select_rules, severities

EVERY = [rule.code for rule in select_rules()]


def selected(*arguments):
    return [rule.code for rule in select_rules(*arguments)]


@pytest.mark.parametrize(
    ("rules", "ignore", "config", "runs"),
    [
        (None, (), {"EX001": "off"}, [code for code in EVERY if code != "EX001"]),
        (None, (), {"EX001": "error"}, EVERY),
        (None, "EX001, impure-time", None, [code for code in EVERY if code not in ("EX001", "EX002")]),
        ("EX001", (), {"EX001": "off"}, ["EX001"]),  # it is asked for
        ("EX002 ex001", (), None, ["EX001", "EX002"]),  # in their order
        (["impure-print"], (), None, ["EX001"]),
        ("EX001", "EX001", None, []),
        ((), (), None, []),
    ],
)
def test_the_rules_that_run(rules, ignore, config, runs):
    assert selected(rules, ignore, config) == runs


@pytest.mark.parametrize(("rules", "ignore", "name"), [("EX999", (), "rules"), (None, "nothing", "ignore")])
def test_a_rule_that_is_not_there_is_refused(rules, ignore, name):
    with pytest.raises(OptionError, match=rf"there is no rule '\w+' \({name}\)\.\n  There are: EX001 impure-print, "):
        select_rules(rules, ignore)


def test_a_file_has_the_levels_of_the_project_above_it(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.explorer.lint]\nimpure-print = "off"\nEX002 = "note"\n')
    inner = tmp_path / "src" / "package"
    inner.mkdir(parents=True)
    file = inner / "train.py"
    file.write_text("")
    assert severities(str(file)) == {"EX001": "off", "EX002": "note"}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[tool.explorer]\nlint = 3\n", "is no table"),
        (
            '[tool.explorer.lint]\nEX001 = "loud"\n',
            "EX001 = 'loud' in .*: allowed are 'error', .*, 'off'",
        ),
        ('[tool.explorer.lint]\nEX999 = "off"\n', "there is no rule 'EX999'"),
    ],
)
def test_a_level_that_is_none_is_refused(tmp_path, table, message):
    (tmp_path / "pyproject.toml").write_text(table)
    file = tmp_path / "train.py"
    file.write_text("")
    with pytest.raises(OptionError, match=message):
        severities(str(file))
