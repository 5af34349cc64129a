"""A Det of two or three rows, as products and differences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import padfix
from padfix.errors import PadfixError


def saved(folder: Path, shape: str, result: str, kind: str = "float") -> Path:
    text = (
        f"""<ir_version: 8, opset_import: ["" : 14]> g ({kind}[{shape}] X) => ({kind}[{result}] Y) {{ Y = Det (X) }}"""
    )
    onnx.save(onnx.parser.parse_model(text), folder / "before.onnx")
    return folder / "before.onnx"


@pytest.mark.parametrize("target", ["openvino", "mnn", "tract"])
@pytest.mark.parametrize(
    ("shape", "result", "products"), [("N,2,2", "N", 2), ("N,3,3", "N", 9), ("2,4,3,3", "2,4", 9), ("3,3", "", 9)]
)
def test_it_is_developed_along_the_first_row(
    shape: str, result: str, products: int, target: str, tmp_path: Path
) -> None:
    source = saved(tmp_path, shape, result)
    padfix.convert(source, tmp_path / "after.onnx", target=target)
    assert not padfix.check(tmp_path / "after.onnx", target=target).findings
    nodes = [each.op_type for each in onnx.load(tmp_path / "after.onnx").graph.node]
    assert nodes.count("Mul") == products
    data = np.random.default_rng(0).standard_normal([5 if each == "N" else int(each) for each in shape.split(",")])
    feeds = {"X": data.astype(np.float32)}
    wanted, found = (
        onnxruntime.InferenceSession(each).run(None, feeds)[0] for each in (source, tmp_path / "after.onnx")
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("shape", ["N,4,4", "N,M,M"])
def test_larger_matrices_are_declined(shape: str, tmp_path: Path) -> None:
    with pytest.raises(PadfixError, match="two or 3 rows"):
        padfix.convert(saved(tmp_path, shape, "N"), tmp_path / "after.onnx", target="openvino")
