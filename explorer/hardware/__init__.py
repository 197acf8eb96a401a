"""Hardware that isn't here: its figures, its compiler, and the process that compiles for it."""
