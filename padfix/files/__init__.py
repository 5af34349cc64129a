"""Bytes on disk: reading and writing models with the weights left where they are."""
