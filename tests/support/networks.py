"""Networks of realistic shape with random weights, for measurements: a U-Net, a residual network, and their kin.

Activations keep their size from layer to layer, so that outputs say something.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

Shape = Sequence[int | str]


class Builder:
    """A graph under construction; weights are drawn from one seed."""

    def __init__(self, dtype: type[np.generic] = np.float32, seed: int = 0) -> None:
        self.dtype = np.dtype(dtype)
        self.random = np.random.default_rng(seed)
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []

    def weight(self, values: np.ndarray, *, exact: bool = False) -> str:
        """Add a constant and return its name."""
        name = f"weight_{len(self.weights)}"
        array = values if exact else values.astype(self.dtype)
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and return its first output."""
        name = f"{op_type.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [f"{name}/out"], name=name, **attributes))
        return f"{name}/out"

    def conv(self, source: str, before: int, after: int, size: int = 3, **attributes: Any) -> str:
        """Add a convolution with bias; SAME_UPPER unless told otherwise."""
        group = attributes.get("group", 1)
        scale = (2 / (before // group * size * size)) ** 0.5
        kernel = self.weight(self.random.standard_normal((after, before // group, size, size)) * scale)
        bias = self.weight(self.random.standard_normal(after) * 0.1)
        return self.add("Conv", source, kernel, bias, **{"auto_pad": "SAME_UPPER", **attributes})

    def model(self, output: str, shape: Shape, opset: int) -> ModelProto:
        """Return the model; its input is ``image``, its output ``result``."""
        elem_type = helper.np_dtype_to_tensor_dtype(self.dtype)
        nodes = [*self.nodes, helper.make_node("Identity", [output], ["result"], name="result")]
        graph = helper.make_graph(
            nodes,
            "network",
            [helper.make_tensor_value_info("image", elem_type, shape)],
            [helper.make_tensor_value_info("result", elem_type, None)],
            self.weights,
        )
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)])


def u_net(shape: Shape = (1, 3, 36, 44), dtype: type[np.generic] = np.float32, width: int = 8) -> ModelProto:
    """Return a U-Net in opset 10: SAME everywhere, a transposed convolution, and legacy resizes up and down."""
    b = Builder(dtype)
    top = b.add("Relu", b.conv("image", 3, width))
    middle = b.add("MaxPool", top, kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER")
    middle = b.add("LeakyRelu", b.conv(middle, width, 2 * width), alpha=0.1)
    low = b.add("AveragePool", middle, kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_LOWER")
    low = b.add("Relu", b.conv(low, 2 * width, 2 * width, 5, auto_pad="SAME_LOWER"))
    scales = b.weight(np.array([1, 1, 2, 2], np.float32), exact=True)
    up = b.add("Resize", low, scales, mode="nearest")
    up = b.add("Concat", up, middle, axis=1)
    up = b.add("Relu", b.conv(up, 4 * width, 2 * width))
    kernel = b.weight(b.random.standard_normal((2 * width, width, 3, 3)) * (2 / (9 * width)) ** 0.5)
    up = b.add("ConvTranspose", up, kernel, auto_pad="SAME_UPPER", strides=[2, 2])
    up = b.add("Add", up, top)
    up = b.add("Resize", up, scales, mode="linear")
    up = b.add("Pad", up, mode="constant", pads=[0, 0, 1, 0, 0, 0, 2, 1], value=0.5)
    return b.model(b.conv(up, width, 4, auto_pad="VALID"), shape, 10)


def residual(
    shape: Shape = (1, 3, 40, 40), dtype: type[np.generic] = np.float32, *, blocks: int = 6, width: int = 16
) -> ModelProto:
    """Return a residual network with normalisation, strides and grouped convolutions; deep with many blocks."""
    b = Builder(dtype)

    def normalised(source: str, channels: int) -> str:
        draw = b.random.standard_normal
        parts = [1 + 0.1 * draw(channels), 0.1 * draw(channels), 0.1 * draw(channels), 1 + 0.1 * np.abs(draw(channels))]
        return b.add("BatchNormalization", source, *(b.weight(part) for part in parts))

    last = b.add("Relu", normalised(b.conv("image", 3, width, 7, strides=[2, 2]), width))
    last = b.add("MaxPool", last, kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    for number in range(blocks):
        inner = b.add("Relu", normalised(b.conv(last, width, width, 3, group=4 if number % 2 else 1), width))
        inner = normalised(b.conv(inner, width, width, 3), width)
        inner = b.add("Mul", inner, b.weight(np.array(0.3)))
        last = b.add("Relu", b.add("Add", last, inner))
    last = b.conv(last, width, 2 * width, 3, strides=[2, 2], auto_pad="SAME_LOWER")
    last = b.add("Flatten", b.add("GlobalAveragePool", last))
    scale = (2 * width) ** -0.5
    last = b.add("Gemm", last, b.weight(b.random.standard_normal((2 * width, 10)) * scale), b.weight(np.zeros(10)))
    return b.model(b.add("Softmax", last, axis=1), shape, 13)


def quantized(source: Path, output: Path, *, operators: bool = False) -> None:
    """Quantize a model of one image input as ONNX Runtime's tool does: with QDQ pairs, or as quantized operators.

    Weights have 7 bits: with 8, ONNX Runtime's integer kernels saturate on processors without VNNI (its documentation
    says so), and the fused form of a network then gives other numbers than the one that it was fused from.
    """
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    value = onnx.load(source).graph.input[0]
    shape = [dim.dim_value or 32 for dim in value.type.tensor_type.shape.dim]
    random = np.random.default_rng(0)

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.data = iter([{value.name: random.standard_normal(shape).astype(np.float32)} for _ in range(4)])

        def get_next(self) -> Any:
            return next(self.data, None)

    quantize_static(
        source,
        output,
        Reader(),
        quant_format=QuantFormat.QOperator if operators else QuantFormat.QDQ,
        weight_type=QuantType.QInt8,
        reduce_range=True,
        activation_type=QuantType.QUInt8 if operators else QuantType.QInt8,
    )


def optimised(source: Path, output: Path, *, everything: bool = False) -> None:
    """Save what ONNX Runtime's optimiser makes of a model."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_EXTENDED if everything else levels.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(output)
    options.log_severity_level = 4
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
