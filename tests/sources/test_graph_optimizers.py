"""tf2onnx's optimisers leave the shape of a model's outputs alone, and none of them fails."""

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


SWISH = """
<ir_version: 8, opset_import: ["": 18]>
g (float[n,h,w,2] x) => (float[n,h,w,3] y)
<float three = {3}>
{
    moved = Transpose<perm = [0, 3, 1, 2]>(x)
    weights = Constant<value = float[3,2,1,1] {1, 2, 3, 4, 5, 6}>()
    felt = Conv(moved, weights)
    back = Transpose<perm = [0, 2, 3, 1]>(felt)
    more = Add(back, three)
    y = Relu(more)
}
"""


def test_a_scalar_behind_a_convolution_is_no_bias_and_no_failure() -> None:
    """A pass that fails costs the whole conversion twice: hard swishes are such terms."""
    from tf2onnx.graph import GraphUtil
    from tf2onnx.optimizer import optimize_graph

    graph = GraphUtil.create_graph_from_onnx_model(onnx.parser.parse_model(SWISH))
    model = optimize_graph(graph, False, optimizers()).make_model("g")
    model.ir_version = 8
    data = np.arange(24, dtype=np.float32).reshape(2, 2, 3, 2)
    result = OnnxRuntimeExecutor(model.SerializeToString(), optimised=False).run({"x": data})
    weights = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    assert np.asarray(result["y"]).tolist() == (data @ weights.T + 3).tolist()


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
