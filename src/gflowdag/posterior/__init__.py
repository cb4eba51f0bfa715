"""The answer of every method, its file format, and what can be computed from it."""
