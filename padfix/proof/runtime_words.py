"""What ONNX Runtime says of a failure, as one line."""

from __future__ import annotations

import re

from padfix.errors import without_scratch

_SOURCE_LINE = re.compile(r"\S+\.(?:cc|h|cpp):\d+ ")
_ORT_PREFIX = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : (Load model from .* failed: ?(?=\S))?")


def runtime_words(text: str) -> str:
    """Return the part of an ONNX Runtime message that says what is wrong, as one line."""
    lines = [line.strip() for line in without_scratch(text).splitlines() if line.strip()]
    line = _SOURCE_LINE.sub("", _ORT_PREFIX.sub("", lines[0])) if lines else "no message"
    ceiling = re.search(r"Current official support for domain \S+ is till opset (\d+)", line)
    if ceiling is not None:
        return f"it knows opsets up to {ceiling[1]}."
    node = re.match(
        r"Non-zero status code returned while running (\S+) node\. Name:'([^']*)' Status Message: (.*)", line
    )
    if node is not None:
        where = f"{node[1]} {node[2]!r}" if node[2] else node[1]
        line = f"{where}: {node[3]}"
    return line
