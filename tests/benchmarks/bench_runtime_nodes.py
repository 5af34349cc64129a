"""How often ``padfix verify --on`` names exactly the node that a runtime gets wrong: networks with one such node each.

    python -m tests.benchmarks.bench_runtime_nodes [RUNTIME...] [--networks 30]

A network is a chain, a residual or a branching one, of one to three spatial axes and 6 to 60 nodes, at times with an
open batch or several outputs, of operators that every runtime gets right. Into it goes one operator that the runtime is
known to get wrong without a word; only where the runtime is right about the network without it, and wrong with it, it
counts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from padfix.errors import PadfixError
from padfix.proof.executors import ExecutionFailed, OnnxRuntimeExecutor
from padfix.proof.on_runtime import prove_on
from padfix.proof.runtime_runs import DeploymentRuntime
from padfix.runtimes import open_runtime

Attributes = dict[str, Any]

FAULTS: dict[str, Sequence[tuple[str, int, Attributes]]] = {
    "opencv": (
        ("Conv", 2, {"auto_pad": "SAME_LOWER", "kernel_shape": [4, 4]}),
        ("MaxPool", 2, {"auto_pad": "SAME_LOWER", "kernel_shape": [2, 2]}),
        ("AveragePool", 2, {"auto_pad": "SAME_LOWER", "kernel_shape": [2, 2]}),
        ("AveragePool", 2, {"count_include_pad": 1, "kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
        ("ConvTranspose", 2, {"auto_pad": "SAME_UPPER", "kernel_shape": [3, 3], "strides": [2, 2]}),
        ("Conv", 1, {"pads": [0, 2], "kernel_shape": [3]}),
        ("Resize", 2, {"mode": "nearest", "coordinate_transformation_mode": "half_pixel", "nearest_mode": "floor"}),
        ("Resize", 2, {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "ceil"}),
    ),
    "mnn": (
        ("Conv", 2, {"auto_pad": "SAME_LOWER", "kernel_shape": [4, 4]}),
        ("MaxPool", 2, {"auto_pad": "SAME_LOWER", "kernel_shape": [2, 2]}),
        ("AveragePool", 2, {"auto_pad": "SAME_LOWER", "kernel_shape": [2, 2]}),
        ("AveragePool", 2, {"auto_pad": "SAME_UPPER", "kernel_shape": [3, 3], "count_include_pad": 1}),
        ("Resize", 2, {"mode": "nearest", "coordinate_transformation_mode": "half_pixel", "nearest_mode": "ceil"}),
        ("Resize", 2, {"mode": "cubic", "coordinate_transformation_mode": "half_pixel"}),
        ("Conv", 1, {"pads": [0, 2], "kernel_shape": [3]}),
        ("Conv", 3, {"auto_pad": "SAME_UPPER", "kernel_shape": [2, 2, 2]}),
    ),
    "ncnn": (
        ("MaxPool", 2, {"pads": [0, 0, 1, 1], "kernel_shape": [3, 3], "strides": [2, 2]}),
        ("AveragePool", 2, {"auto_pad": "SAME_UPPER", "kernel_shape": [3, 3]}),
        ("Resize", 2, {"mode": "linear", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
        ("Resize", 2, {"mode": "nearest", "coordinate_transformation_mode": "half_pixel", "nearest_mode": "floor"}),
        ("Resize", 2, {"mode": "cubic", "cubic_coeff_a": -0.5, "nearest_mode": "floor"}),
        (
            "Resize",
            2,
            {"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric", "nearest_mode": "floor"},
        ),
    ),
    "openvino": (
        ("Resize", 2, {"mode": "linear", "antialias": 1, "factor": 0.5}),
        ("Resize", 2, {"mode": "cubic", "exclude_outside": 1}),
        ("AveragePool", 2, {"ceil_mode": 1, "kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ("MaxPool", 2, {"ceil_mode": 1, "kernel_shape": [2, 2], "strides": [3, 3], "pads": [1, 1, 1, 1]}),
        ("ConvTranspose", 2, {"auto_pad": "SAME_UPPER", "kernel_shape": [3, 3], "strides": [2, 2], "output_shape": 2}),
    ),
}


class Network:
    """A network as it grows; ``tensor`` is the last one, with its shape without the batch."""

    def __init__(self, random: np.random.Generator, axes: int, *, opset: int = 19) -> None:
        self.random, self.axes, self.opset = random, axes, opset
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.outputs: list[str] = []
        self.shape = [int(random.integers(2, 5)), *(int(each) for each in random.integers(9, 15, axes))]
        self.first = list(self.shape)
        self.tensor = "X"
        self.fault = ""

    def add(self, op_type: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Append a node; return its output."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], name=f"{op_type}_{len(self.nodes)}", **attributes))
        return name

    def weight(self, array: np.ndarray) -> str:
        """Return the name of a new constant."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def filters(self, given: int, made: int, kernel: Sequence[int], *, transposed: bool = False) -> str:
        """Return the filters of a convolution, whose results stay of the size of its data."""
        scale = 1 / np.sqrt(given * np.prod(kernel))
        lead = (given, made) if transposed else (made, given)
        return self.weight((scale * self.random.standard_normal((*lead, *kernel))).astype(np.float32))

    def convolve(self, made: int, kernel: int = 3) -> None:
        """Append a convolution that keeps the size."""
        pads = [kernel // 2] * 2 * self.axes
        names = [self.tensor, self.filters(self.shape[0], made, [kernel] * self.axes)]
        self.tensor = self.add("Conv", names, kernel_shape=[kernel] * self.axes, pads=pads)
        self.shape[0] = made

    def grow(self) -> None:
        """Append a few nodes that every runtime gets right."""
        choice = int(self.random.integers(0, 8))
        if choice == 0:
            self.tensor = self.add("Relu", [self.tensor])
        elif choice == 1:
            self.tensor = self.add("Sigmoid", [self.tensor])
        elif choice == 2:
            self.tensor = self.add("LeakyRelu", [self.tensor], alpha=0.2)
        elif choice == 3:
            self.convolve(int(self.random.integers(2, 6)), int(self.random.choice([1, 3])))
        elif choice == 4 and min(self.shape[1:]) >= 8 and self.axes == 2:
            self.tensor = self.add("MaxPool", [self.tensor], kernel_shape=[2, 2], strides=[2, 2])
            self.shape[1:] = [length // 2 for length in self.shape[1:]]
        elif choice == 5:
            before, channels = self.tensor, self.shape[0]
            self.convolve(channels)
            self.tensor = self.add("Relu", [self.tensor])
            self.convolve(channels)
            self.tensor = self.add("Add", [self.tensor, before])
        elif choice == 6:
            before, channels = self.tensor, self.shape[0]
            self.convolve(2, 1)
            one, self.tensor, self.shape[0] = self.tensor, before, channels
            self.convolve(3)
            self.tensor, self.shape[0] = self.add("Concat", [one, self.tensor], axis=1), 5
        else:
            size = self.shape[0]
            rows = [np.abs(self.random.standard_normal(size)) + 0.5, *self.random.standard_normal((2, size))]
            rows.append(np.abs(self.random.standard_normal(size)) + 0.5)
            names = [self.weight(row.astype(np.float32)) for row in rows]
            self.tensor = self.add("BatchNormalization", [self.tensor, *names])

    def go_wrong(self, op_type: str, attributes: Attributes) -> None:
        """Append the operator that a runtime gets wrong."""
        attributes = dict(attributes)
        names = [self.tensor]
        if op_type == "Resize":
            factor = attributes.pop("factor", None)
            sizes = [int(n * factor) if factor else n + 1 + n // 2 for n in self.shape[1:]]
            names += ["", "", self.weight(np.array([1, self.shape[0], *sizes], np.int64))]
            self.shape[1:] = sizes
        if op_type in ("Conv", "ConvTranspose"):
            names.append(self.filters(self.shape[0], 3, attributes["kernel_shape"], transposed=op_type != "Conv"))
            self.shape[0] = 3
        if attributes.get("output_shape"):
            attributes["output_shape"] = [2 * n for n in self.shape[1:]]
        self.tensor = self.add(op_type, names, **attributes)
        self.fault = self.nodes[-1].name
        if op_type != "Resize":
            value = next(each for each in self.inferred().graph.value_info if each.name == self.tensor)
            self.shape[1:] = [each.dim_value for each in value.type.tensor_type.shape.dim[2:]]

    def inferred(self) -> onnx.ModelProto:
        """Return the model so far, with the shapes of all tensors."""
        return onnx.shape_inference.infer_shapes(self.model([], batch=1))

    def model(self, outputs: Sequence[str], batch: int | str) -> onnx.ModelProto:
        """Return the model."""
        data = helper.make_tensor_value_info("X", TensorProto.FLOAT, [batch, *self.first])
        declared = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "network", [data], declared, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)


def network(seed: int, fault: tuple[str, int, Attributes] | None, axes: int) -> tuple[onnx.ModelProto, str]:
    """Return a network and the name of its node that goes wrong, the same network without it where there is none."""
    random = np.random.default_rng(seed)
    made = Network(random, axes)
    length = int(random.integers(6, 56))
    place = int(random.integers(0, length))
    made.convolve(4)
    outputs = []
    while len(made.nodes) < length:
        made.grow()
        if fault is not None and not made.fault and len(made.nodes) > place:
            made.go_wrong(fault[0], fault[2])
        if seed % 5 == 0 and not outputs and len(made.nodes) > length // 2:
            outputs.append(made.tensor)
    if fault is not None and not made.fault:
        made.go_wrong(fault[0], fault[2])
    made.tensor = made.add("Sigmoid", [made.tensor])  # OpenCV 5 gives no number for Tanh of large ones
    # An open batch, but where sizes of all axes are told.
    batch = "N" if seed % 3 == 0 and (fault is None or fault[0] != "Resize") else 1
    model = made.model([*outputs, made.tensor] if outputs != [made.tensor] else [made.tensor], batch)
    shaped = onnx.shape_inference.infer_shapes(model)
    known = {value.name: value for value in (*shaped.graph.value_info, *shaped.graph.output)}
    for value in model.graph.output:
        value.CopyFrom(known[value.name])
    return model, made.fault


def judge(runtime: DeploymentRuntime, model: onnx.ModelProto) -> Any:
    """Return what the runtime makes of a model."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, "network.onnx")
        onnx.save(model, file)
        executor = OnnxRuntimeExecutor(file, optimised=False)
        return prove_on(runtime, executor, executor, file)[0]


def main() -> int:
    """Measure, and print a line for each network."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runtimes", nargs="*", default=list(FAULTS))
    parser.add_argument("--networks", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    exact = counted = tried = 0
    opened = {name: open_runtime(name) for name in told.runtimes}
    while counted < told.networks and tried < 4 * told.networks:
        name = told.runtimes[tried % len(opened)]
        fault = FAULTS[name][(tried // len(opened)) % len(FAULTS[name])]
        seed, tried = told.seed + tried, tried + 1
        begun = time.monotonic()
        try:
            model, node = network(seed, fault, fault[1])
            plain = judge(opened[name], network(seed, None, fault[1])[0])
            verdict = judge(opened[name], model)
        except (PadfixError, ExecutionFailed, StopIteration, ValueError) as error:
            print(f"     {name} {fault[0]} seed {seed}: no network: {error}"[:200])
            continue
        where = f"{name} {fault[0]} {fault[2]} seed {seed}, {len(model.graph.node)} nodes"
        if not plain.agrees or verdict.agrees:
            reason = f"without it {plain.nodes[:1] or plain.outputs[:1]}" if not plain.agrees else "it is right"
            print(f"     {where}: does not count, {reason}"[:400])
            continue
        counted += 1
        named = [each.node for each in verdict.nodes]
        exact += named == [node]
        mark = "yes" if named == [node] else "NO "
        print(f"{mark}  {where}: {node}; named {named} in {time.monotonic() - begun:.0f} s", flush=True)
    print(f"{exact} of {counted} named exactly ({tried} tried)")
    return 0 if exact == counted else 1


if __name__ == "__main__":
    sys.exit(main())
