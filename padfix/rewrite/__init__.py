"""The rewriting pipeline."""
