"""The sharp bits of JAX, found in a function as it is traced: one file per rule in `rules`."""
