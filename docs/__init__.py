"""The documentation; `pages` has the programs that write what comes from code."""
