"""The process that does the work, what it may use, and several of them for many models."""
