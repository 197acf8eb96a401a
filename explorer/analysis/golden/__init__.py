"""What a golden file holds of a program, and what is different between two of them, with the line that did it."""
