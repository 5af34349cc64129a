"""Measures what ``padfix convert`` takes of a model with 1.5 GB of weights, proof included.

Run ``python tests/benchmarks/bench_convert_large.py [--bytes N] [--inline]``. It makes a stride-2 SAME convolution and
16 large matrices in a temporary folder, as external data or in the model's file, and prints the time of one conversion
and its peak memory as a multiple of the weights.

Goal: a peak under 1.6 times the weights.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MATRICES = 16


def network(total: int) -> onnx.ModelProto:
    """Return the model; its matrices keep the size of what goes through them."""
    random, width = np.random.default_rng(0), int((total / MATRICES / 4) ** 0.5)
    same = {"auto_pad": "SAME_UPPER", "strides": [2, 2], "kernel_shape": [3, 3]}
    nodes = [
        helper.make_node("Conv", ["x", "kernel"], ["c"], name="conv", **same),
        helper.make_node("GlobalAveragePool", ["c"], ["p"]),
        helper.make_node("Flatten", ["p"], ["m0"]),
    ]
    weights = [numpy_helper.from_array(random.standard_normal((width, 3, 3, 3), np.float32), "kernel")]
    for number in range(MATRICES):
        matrix = random.standard_normal((width, width), np.float32) * np.float32(width**-0.5)
        weights.append(numpy_helper.from_array(matrix, f"W{number}"))
        nodes.append(helper.make_node("MatMul", [f"m{number}", f"W{number}"], [f"m{number + 1}"]))
    graph = helper.make_graph(
        nodes,
        "large",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 32, 32])],
        [helper.make_tensor_value_info(f"m{MATRICES}", TensorProto.FLOAT, [1, width])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main() -> int:
    """Measure, print, and return 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=1_500_000_000)
    parser.add_argument("--inline", action="store_true", help="weights in the model's own file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        source, output = Path(name, "large.onnx"), Path(name, "out.onnx")
        maker = os.fork()  # what making it takes is not to be measured
        if maker == 0:
            onnx.save(network(arguments.bytes), source, save_as_external_data=not arguments.inline)
            os._exit(0)
        os.waitpid(maker, 0)
        command = [sys.executable, "-m", "padfix", "convert", str(source), "-o", str(output)]
        process = os.posix_spawn(sys.executable, command, os.environ)
        _, status, usage = os.wait4(process, 0)
    if os.waitstatus_to_exitcode(status):
        return 2
    share = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / arguments.bytes
    print(f"{usage.ru_utime + usage.ru_stime:.1f} s of processor time, peak {share:.2f} times the weights (goal: 1.6)")
    return 0 if share < 1.6 else 1


if __name__ == "__main__":
    sys.exit(main())
