"""Effects of the compiler's passes on each instruction."""
