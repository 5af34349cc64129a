"""MNN holds lines as images, and gives them with an axis of one element more where they are a result."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

from padfix.runtimes.verify_on import verify_on


def test_a_convolution_of_lines_within_a_network_is_not_blamed(tmp_path: Path) -> None:
    pytest.importorskip("MNN")
    weights = ", ".join(str(0.01 * (each % 7 - 3)) for each in range(24 * 8))
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 13]>
        g (float[1,8,99] X) => (float[1,24,99] Y, float[1,1,1] Z)
        <float[24,8,1] w = {{{weights}}}, float l = {{100}}> {{
            a = Div (X, l) b = Conv <kernel_shape = [1]> (a, w) c = Relu (b) d = Mul (c, c)
            s = ReduceSum <keepdims = 1> (d) Y = Div (c, s) m = Softplus (s) n = Add (m, l) Z = Softplus (n) }}""")
    onnx.save(model, tmp_path / "model.onnx")
    verdict = verify_on(tmp_path / "model.onnx", "mnn")
    assert "Conv" not in [each.op_type for each in verdict.nodes]
    assert "Softplus" in [each.op_type for each in verdict.nodes]  # which MNN gets wrong from about 87 on
