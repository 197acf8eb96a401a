"""Why a call compiled again, what it cost, and how to avoid it."""
