"""How far a deployment runtime may be off: by its numbers' types, by what the model amplifies, where there are some."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser

import padfix
from padfix.proof.executors import OnnxRuntimeExecutor
from padfix.proof.on_runtime import prove_on
from padfix.proof.quantized_pairs import Pairs
from padfix.runtimes import open_runtime

Array = np.ndarray[Any, Any]


class Changed:
    """ONNX Runtime, with results that are changed a little."""

    label = "changed 1.0"
    rounding = 1.0

    def __init__(self, change: Callable[[Array], Array]) -> None:
        self._change, self._runtime = change, open_runtime("onnxruntime")

    def close(self) -> None:
        """It has no process to end."""

    def run(self, model: bytes, feeds: Mapping[str, Any], shapes: Sequence[tuple[int, ...]]) -> list[Array] | str:
        found = self._runtime.run(model, feeds, shapes)
        return found if isinstance(found, str) else [self._change(array) for array in found]


def proven(tmp_path: Path, text: str, change: Callable[[Array], Array], opset: int = 17) -> padfix.RuntimeVerdict:
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> main {text}'), path)
    executor = OnnxRuntimeExecutor(path, optimised=False)
    return prove_on(Changed(change), executor, executor, path)[0]


def of_half(text: str) -> str:
    return text.replace("float[", "float16[")


ABSOLUTE = "(float[2,3] X) => (float[2,3] Y) { Y = Abs (X) }"


def test_numbers_of_sixteen_bits_may_be_off_by_more(tmp_path: Path) -> None:
    def off(array: Array) -> Array:
        return (array * 1.002).astype(array.dtype)

    assert not proven(tmp_path, ABSOLUTE, off).agrees
    assert proven(tmp_path, of_half(ABSOLUTE), off).agrees
    cast = "(float[2,3] X) => (float[2,3] Y) { h = Cast <to = 10> (X) a = Abs (h) Y = Cast <to = 1> (a) }"
    assert all(each.agrees for each in proven(tmp_path, cast, off).outputs)
    assert not proven(tmp_path, of_half(ABSOLUTE), lambda array: (array * 1.2).astype(array.dtype)).agrees


def test_what_sixteen_bits_hold_no_more_is_near_their_largest(tmp_path: Path) -> None:
    def held(array: Array) -> Array:
        return np.clip(array, -65504, 65504).astype(array.dtype)

    huge = "(float[2,3] X) => (float[2,3] Y) <float[1] k = {60000}> { Y = Mul (X, k) }"
    assert proven(tmp_path, of_half(huge), held).agrees
    assert not proven(tmp_path, of_half(huge), lambda array: held(array) / 2).agrees


def test_nothing_is_compared_where_the_model_gives_no_number(tmp_path: Path) -> None:
    root = "(float[2,3] X) => (float[2,3] Y) { a = Abs (X) n = Neg (a) Y = Sqrt (n) }"
    verdict = proven(tmp_path, root, lambda array: np.nan_to_num(array, nan=3))
    assert all(each.agrees for each in verdict.outputs)
    assert "On normal data output 'Y' is not a number in 6 of 6 places, which were not compared." in verdict.notes
    assert not proven(tmp_path, ABSOLUTE, lambda array: array * np.nan).agrees


def test_the_formula_of_a_bounded_function_is_off_by_the_same_everywhere(tmp_path: Path) -> None:
    def off(array: Array) -> Array:
        return array + np.float32(3e-8) * ((array > 0) & (array < 1e-3))

    low = "(float[2,3] X) => (float[2,3] Y) <float[1] k = {-14}> { t = Tanh (X) s = Add (t, k) e = %s (s) Y = Neg (e) }"
    assert [each.op_type for each in proven(tmp_path, low % "Exp", off).nodes] == ["Exp"]
    assert not proven(tmp_path, low % "Sigmoid", off).nodes


def test_what_gates_is_off_by_the_formula_of_its_gate(tmp_path: Path) -> None:
    def off(array: Array) -> Array:
        return array + np.float32(1e-5) * ((array > -1e-6) & (array < 1e-6))

    shut = """(float[2,3] X) => (float[2,3] Y) <float[1] far = {-60}, float[1] one = {1}>
        { t = Tanh (X) s = Add (t, far) m = %s (s) Y = Add (m, one) }"""
    assert not proven(tmp_path, shut % "Mish", off, 18).nodes
    assert [each.op_type for each in proven(tmp_path, shut % "Exp", off, 18).nodes] == ["Exp"]


def test_what_the_model_amplifies_is_told(tmp_path: Path) -> None:
    sine = "(float[2,3] X) => (float[2,3] Y) <float[1] k = {%s}> { m = Mul (X, k) Y = Sin (m) }"

    def off(array: Array) -> Array:
        return array + np.float32(3e-3)

    assert not proven(tmp_path, sine % 1, off).agrees
    verdict = proven(tmp_path, sine % 10000, off)
    assert all(each.agrees for each in verdict.outputs)
    assert any(note.startswith("Inputs moved in their last bits") for note in verdict.notes)
    assert not all(
        each.agrees for each in proven(tmp_path, sine % 10000, lambda array: array + np.float32(0.05)).outputs
    )


ROUNDED = (
    "(float[4,64] X) => (float[4,64] Y) <float s = {0.25}, uint8 z = {100}, float h = {0.125}> { t = %s (X, h)"
    " q = QuantizeLinear (t, s, z) d = DequantizeLinear (q, s, z) Y = Neg (d) }"
)


class Held(Changed):
    """A runtime that holds bytes in its own way, and takes the upper of two steps at a tie."""

    def __init__(self, *, by_step: float = 0.0) -> None:
        super().__init__(lambda array: array)
        self._by = by_step

    def close(self) -> None:
        """It has no process to end."""

    def run(self, model: bytes, feeds: Mapping[str, Any], shapes: Sequence[tuple[int, ...]]) -> list[Array] | str:
        found = super().run(model, feeds, shapes)
        operators = [node.op_type for node in onnx.load_from_string(model).graph.node]
        if isinstance(found, str) or "QuantizeLinear" not in operators:
            return found
        if operators[-1] == "QuantizeLinear":
            return [array + np.uint8(128) for array in found]
        return [array + np.float32(self._by) * (array > 0) for array in found]


def held(tmp_path: Path, text: str, runtime: Held) -> padfix.RuntimeVerdict:
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> main {text}'), path)
    executor = OnnxRuntimeExecutor(path, optimised=False)
    return prove_on(runtime, executor, executor, path)[0]


def test_how_bytes_are_held_is_the_runtimes_own_affair(tmp_path: Path) -> None:
    assert held(tmp_path, ROUNDED % "Add", Held()).agrees


def test_numbers_that_are_off_by_many_steps_are_wrong_where_they_are_rounded(tmp_path: Path) -> None:
    verdict = held(tmp_path, ROUNDED % "Add", Held(by_step=1.0))
    assert not verdict.agrees
    assert verdict.nodes[0].op_type in ("DequantizeLinear", "Neg")


def test_a_tie_may_go_either_way_and_nothing_else() -> None:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> main {ROUNDED % "Add"}')
    pairs = Pairs(model)
    data = np.array([[0.125, 0.13, 0.375, 0.0, 0.3751]], "f")
    ties = pairs.ties(model.graph.node[2], {"t": data})["d"]
    np.testing.assert_allclose(ties, [[0.25, 0, 0.25, 0, 0.25]], rtol=2e-3)
    assert pairs.read_through(["q", "X"]) == ("t", "X")
    assert not pairs.ties(model.graph.node[3], {"t": data})
