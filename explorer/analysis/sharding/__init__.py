"""How the values of a sharded program lie on its devices, and what of it nobody can have meant."""
