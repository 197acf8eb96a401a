"""Programs of public libraries that Explorer was not written against, and figures of it on each."""
