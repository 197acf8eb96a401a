"""From a profiler's events to instructions, kernels, source lines and stacks."""
