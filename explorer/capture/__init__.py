"""From a compiler's own text to the model: one reader per stage."""
