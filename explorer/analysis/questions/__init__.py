"""Questions about a capture and their answers. An unknown fact is answered with "not known"."""
