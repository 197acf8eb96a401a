"""What became of each equation in the optimised program."""
