"""One file per kind of rewrite; each has its `REWRITES`, and `explorer.pitfalls.fixes.rewrite` finds them."""
