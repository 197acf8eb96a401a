"""Two captures compared: matched graphs, and what the compiler did differently."""
