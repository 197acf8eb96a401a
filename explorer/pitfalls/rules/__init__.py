"""One file per rule; each has its `RULE`, and `explorer.pitfalls.rule.all_rules` finds it."""
