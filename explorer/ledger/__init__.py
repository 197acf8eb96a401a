"""Records the programs that JAX traces, lowers and compiles in this process, with reasons."""
