"""Which nodes of different stages are the same operation, and which source line each belongs to."""
