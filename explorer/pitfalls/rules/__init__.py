"""Rules, one file per rule or family. `explorer.pitfalls.rule.all_rules` finds each `Rule` in them."""
