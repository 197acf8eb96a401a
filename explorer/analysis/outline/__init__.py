"""The groups by which a person reads a graph: computations, call stacks, scopes, repeated layers, fusions."""
