"""What the shell's verbs say, for programs: JSON with the name and version of its schema."""
