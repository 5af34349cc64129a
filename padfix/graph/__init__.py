"""Scopes, types, constants and splicing: everything that knows how an ONNX graph hangs together."""
