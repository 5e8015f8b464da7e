"""Performance, measured where it can be believed: A and B in turn, in one run."""
