"""Where the time of compiled calls went, as plain data: moments of threads, operations, source lines, stacks."""
