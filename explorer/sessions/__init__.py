"""One page for a session: `ex.session()` and `%explorer` read what the other rooms know, and record nothing."""
