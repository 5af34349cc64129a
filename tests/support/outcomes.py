"""What is written of a model for a target, run before and after."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
from onnx import helper

import padfix


def operators_written(text: str, target: str, folder: Path, opset: int, least: float) -> list[str]:
    """Return the operators of what is written for ``target`` of a graph as text, without constants that nothing reads.

    The result computes the same on data from ``least`` to 3, of unsigned bytes from 0 at the least, and nothing is
    found in it. It stays in ``folder`` as result.onnx.
    """
    source, result = folder / "model.onnx", folder / "result.onnx"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}')
    read = {name for node in model.graph.node for name in node.input}
    kept = [each for each in model.graph.initializer if each.name in read]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    onnx.save(model, source)
    padfix.convert(source, result, target=target)
    assert not padfix.check(result, target=target).findings
    random = np.random.default_rng(1)
    feeds = {}
    for value in model.graph.input:
        lengths = [each.dim_value or 2 for each in value.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        feeds[value.name] = random.uniform(max(0, least) if dtype == np.uint8 else least, 3, lengths).astype(dtype)
    before, after = (onnxruntime.InferenceSession(each).run(None, feeds)[0] for each in (source, result))
    np.testing.assert_allclose(before, after, rtol=1e-4, atol=1e-5)
    return [node.op_type for node in onnx.load(result).graph.node]
