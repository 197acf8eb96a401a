"""What a person asks of a capture, and the answers: only what is so, and *not known* where nobody says it."""
