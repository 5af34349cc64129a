"""Reports: pure functions from a result to text, one file a format."""
