"""Generated programs with operations that the compiler removes, and the pass that ended each, from XLA's own dumps."""
