"""Hot paths: eager functions that are called often run compiled."""
