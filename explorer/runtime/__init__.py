"""Parts that `compile()`, `jit()` and hot paths share: table of programs, structure guards, comparison of traces."""
