"""What the compiler's passes did to each instruction."""
