"""Pitfalls in snippets, each marked on its line, and clean real code: what lint finds is scored against the marks."""
