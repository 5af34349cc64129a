"""Models in ONNX's text that are converted for a target, and proven on the way."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx
import onnx.parser

import padfix


def operators_for(text: str, target: str, folder: Path, opset: int, ir_version: int) -> Counter[str]:
    """Return how many operators of each type a model becomes, in which check then finds nothing."""
    model = onnx.parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["" : {opset}]> g {text}')
    onnx.save(model, folder / "before.onnx")
    report = padfix.convert(folder / "before.onnx", folder / "after.onnx", target=target)
    assert report.verdict is not None
    assert report.verdict.equivalent
    assert not padfix.check(folder / "after.onnx", target=target).findings
    return Counter(node.op_type for node in onnx.load(folder / "after.onnx").graph.node)
