"""Non-public or version-dependent parts of JAX, used nowhere else. Each use has a comment with the reason."""
