"""One reader per compiler stage: from the compiler's own text to a graph."""
