"""Golden files: recorded facts about a function's compiled program, and their comparison."""
