"""How few runs the search for the nodes at fault takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from padfix.proof.executors import OnnxRuntimeExecutor
from padfix.proof.on_runtime import prove_on
from padfix.runtimes import open_runtime
from padfix.runtimes.adapter import Runtime


class Counting:
    """ONNX Runtime that counts its runs, takes no Identity as a result, and computes Abs for Relu."""

    label = "counting 1.0"
    rounding = 1.0

    def __init__(self, runtime: Runtime) -> None:
        self.runs = 0
        self._runtime = runtime

    def close(self) -> None:
        """It has no process to end."""

    def run(self, model: bytes, feeds: Mapping[str, Any], shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray] | str:
        self.runs += 1
        parsed = onnx.load_from_string(model)
        results = {value.name for value in parsed.graph.output}
        for node in parsed.graph.node:
            if node.op_type == "Identity" and results.intersection(node.output):
                return "no network"
            if node.op_type == "Relu":
                node.op_type = "Abs"
        return self._runtime.run(parsed.SerializeToString(), feeds, shapes)


@pytest.fixture(scope="module")
def runtime() -> Any:
    found = open_runtime("onnxruntime")
    yield found
    found.close()


def chain(tmp_path: Path, wrong: Sequence[int]) -> Path:
    """Write a chain of 48 nodes, every third an Identity, with a Relu at some places."""
    lines = []
    for place in range(48):
        op_type = "Relu" if place in wrong else ("Sin", "Neg", "Identity")[place % 3]
        lines.append(f"t{place + 1} = {op_type} (t{place})")
    text = '<ir_version: 8, opset_import: ["" : 17]>\nchain (float[1,3,4] t0) => (float[1,3,4] t48) {\n'
    model = onnx.parser.parse_model(text + "\n".join(lines) + "\n}")
    model.graph.node[-1].op_type = "Cos"  # the result is no Identity
    onnx.save(model, tmp_path / "chain.onnx")
    return tmp_path / "chain.onnx"


def test_what_is_right_takes_a_run_for_many_nodes(runtime: Runtime, tmp_path: Path) -> None:
    counting = Counting(runtime)
    path = chain(tmp_path, [])
    executor = OnnxRuntimeExecutor(path, optimised=False)
    verdict, _ = prove_on(counting, executor, executor, path)
    assert verdict.agrees
    assert verdict.looked_at == 48
    assert counting.runs == 3 + 2  # the whole on three kinds of data, and the nodes in two halves


def test_what_is_wrong_is_found_by_halves(runtime: Runtime, tmp_path: Path) -> None:
    counting = Counting(runtime)
    path = chain(tmp_path, [30])
    executor = OnnxRuntimeExecutor(path, optimised=False)
    verdict, repros = prove_on(counting, executor, executor, path)
    assert [node.node for node in verdict.nodes] == ["#30"]
    assert [each.op_type for each in onnx.load_from_string(repros[0].model).graph.node] == ["Relu"]
    assert counting.runs < 3 + 2 + 2 * 5 + 6


class Overflowing(Counting):
    """ONNX Runtime whose Softplus is no number where its exponential is too large."""

    def close(self) -> None:
        """It has no process to end."""

    def run(self, model: bytes, feeds: Mapping[str, Any], shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray] | str:
        parsed = onnx.load_from_string(model)
        for place, node in enumerate(parsed.graph.node):
            if node.op_type == "Softplus":
                grown, above = onnx.helper.make_node("Exp", node.input, ["grown"]), "above"
                one = onnx.numpy_helper.from_array(np.float32(1), "one of it")
                parsed.graph.initializer.append(one)
                parsed.graph.node.insert(place, grown)
                parsed.graph.node.insert(place + 1, onnx.helper.make_node("Add", ["grown", one.name], [above]))
                node.op_type, node.input[0] = "Log", above
                break
        return self._runtime.run(parsed.SerializeToString(), feeds, shapes)


@pytest.mark.parametrize(("reader", "named"), [("Tanh", []), ("Neg", ["Softplus"])])
def test_what_bounded_functions_alone_read_is_judged_by_what_they_make_of_it(
    runtime: Runtime, tmp_path: Path, reader: str, named: list[str]
) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 17]> mish (float[4,4] X) => (float[4,4] Y) <float k = {{1000}}>
        {{ x = Mul (X, k) s = Softplus (x) t = {reader} (s) Y = Clip (t, , k) }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "mish.onnx")
    executor = OnnxRuntimeExecutor(tmp_path / "mish.onnx", optimised=False)
    verdict, _ = prove_on(Overflowing(runtime), executor, executor, tmp_path / "mish.onnx")
    assert [each.op_type for each in verdict.nodes] == named


class Reducing(Counting):
    """ONNX Runtime that reduces all axes, whichever are listed."""

    def close(self) -> None:
        """It has no process to end."""

    def run(self, model: bytes, feeds: Mapping[str, Any], shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray] | str:
        parsed = onnx.load_from_string(model)
        for node in parsed.graph.node:
            if node.op_type == "ReduceL1":
                del node.attribute[:]
        del parsed.graph.output[0].type.tensor_type.shape.dim[:]
        return self._runtime.run(parsed.SerializeToString(), feeds, shapes)


def test_what_gives_another_shape_is_named_and_not_what_is_refused_for_it(runtime: Runtime, tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 13]> sums (float[2,3,4] X) => (float[6] Y) <int64[1] s = {6}>
        { a = Sin (X) r = ReduceL1 <axes = [2]> (a) Y = Reshape (r, s) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "sums.onnx")
    executor = OnnxRuntimeExecutor(tmp_path / "sums.onnx", optimised=False)
    verdict, _ = prove_on(Reducing(runtime), executor, executor, tmp_path / "sums.onnx")
    assert verdict.refused
    assert [each.op_type for each in verdict.nodes] == ["ReduceL1"]
