"""tf2onnx's optimisers leave the shape of a model's outputs alone."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from padfix.proof.executors import OnnxRuntimeExecutor
from padfix.sources.graph_optimizers import optimizers

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("tf")]

MODEL = """
<ir_version: 8, opset_import: ["": 18]>
g (float[n,1,h,w] x) => (float[n,h,w,1] y)
<int64[4] order = {0, 2, 3, 1}>
{
    shape = Shape(x)
    moved = Gather<axis = 0>(shape, order)
    y = Reshape(x, moved)
}
"""


def test_a_reshape_that_is_an_output_keeps_its_rank() -> None:
    """As a Transpose of one channel becomes once the Identity before the output is gone."""
    from tf2onnx.graph import GraphUtil
    from tf2onnx.optimizer import IdentityOptimizer, optimize_graph

    graph = GraphUtil.create_graph_from_onnx_model(onnx.parser.parse_model(MODEL))
    graph = IdentityOptimizer().optimize(graph, 0)
    model = optimize_graph(graph, False, optimizers()).make_model("g")
    model.ir_version = 8
    data = np.arange(24, dtype=np.float32).reshape(2, 1, 3, 4)
    result = OnnxRuntimeExecutor(model.SerializeToString(), optimised=False).run({"x": data})
    assert np.asarray(result["y"]).tolist() == data.transpose(0, 2, 3, 1).tolist()
