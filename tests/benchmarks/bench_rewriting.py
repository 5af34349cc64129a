"""Measures what rewriting costs by the number of nodes: a chain of dynamic SAME windows, three nodes each.

Run ``python tests/benchmarks/bench_rewriting.py [--windows N ...] [--no-prove]``. What counts is the processor time of
the rewriting alone, local proofs included, which are kept by content.

Goals: 1,000 windows in 5 s, and ten times the nodes in about ten times the time.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from padfix.files.model import Model
from padfix.rewrite.engine import rewrite_model


def chain(windows: int) -> ModelProto:
    """Return a model of ``windows`` strided convolutions on lengths that are only known at run time."""
    nodes, value = [], "X"
    for number in range(windows):
        for op_type, output in (("Conv", "c"), ("Relu", "r"), ("Sigmoid", "s")):
            inputs = [value, "W"] if op_type == "Conv" else [value]
            value = f"{output}{number}"
            nodes.append(helper.make_node(op_type, inputs, [value], name=f"{op_type}{number}"))
        same = {"auto_pad": "SAME_UPPER", "kernel_shape": [3, 3], "strides": [2, 2]}
        nodes[-3].attribute.extend(helper.make_attribute(*each) for each in same.items())
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", 1, "h", "w"])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.ones((1, 1, 3, 3), np.float32), "W")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main() -> None:
    """Print the processor time of each number of windows, and how it grows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--windows", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--no-prove", action="store_true")
    arguments = parser.parse_args()
    rewrite_model(Model(chain(1)), prove=not arguments.no_prove)  # imports, and the one local proof
    first: tuple[int, float] | None = None
    for windows in arguments.windows:
        model = Model(chain(windows))
        start = time.process_time()
        result = rewrite_model(model, prove=not arguments.no_prove)
        seconds = time.process_time() - start
        assert len(result.rewrites) == windows
        first = first or (windows, seconds)
        growth = f", {seconds / first[1]:.1f} times that of {first[0]}" if windows != first[0] else ""
        print(f"{windows:6} windows, {3 * windows:6} nodes: {seconds:6.2f} s{growth}")


if __name__ == "__main__":
    main()
