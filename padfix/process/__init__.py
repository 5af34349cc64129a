"""The process that does the work, and what it may use."""
