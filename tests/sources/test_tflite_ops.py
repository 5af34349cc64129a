"""TensorFlow Lite operators that tf2onnx lacks, or takes for TensorFlow's, give the interpreter's numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import padfix
from padfix.errors import NotEquivalent, ProofUnavailableError, UnsupportedError
from padfix.sources import open_source, tflite_schema
from tests.support.lite_files import lite, made, prove, weights

pytestmark = [pytest.mark.tensorflow, pytest.mark.sweep(2)]

Tensors = list[tuple[str, list[int]]]

TABLE = ("FLOAT32", [4, 2])
ROWS = ("FLOAT32", [2, 4])
IMAGE = ("FLOAT32", [1, 8, 8, 3])

OPERATORS: dict[str, tuple[str, Tensors, Tensors, dict[int, Any], dict[str, Any]]] = {
    "a pool of squares": (
        *("L2_POOL_2D", [IMAGE], [("FLOAT32", [1, 4, 4, 3])], {}),
        {"": "Pool2DOptions", "strideW": 2, "strideH": 2, "filterWidth": 3, "filterHeight": 3, "padding": 0},
    ),
    "rows by number": (
        *("EMBEDDING_LOOKUP", [("INT32", [3]), TABLE], [("FLOAT32", [3, 2])], {1: weights(4, 2)}),
        {},
    ),
    "rows by key": (
        *("HASHTABLE_LOOKUP", [("INT32", [3]), ("INT32", [4]), TABLE], [("FLOAT32", [3, 2]), ("UINT8", [3])]),
        *({1: np.array([0, 1, 3, 9], np.int32), 2: weights(4, 2)}, {}),
    ),
    "shapes that broadcast": ("BROADCAST_ARGS", [("INT32", [2]), ("INT32", [3])], [("INT32", [3])], {}, {}),
    "a part in a whole": (
        *("DYNAMIC_UPDATE_SLICE", [("FLOAT32", [4, 5]), ("FLOAT32", [2, 3]), ("INT32", [2])]),
        *([("FLOAT32", [4, 5])], {}, {"": "DynamicUpdateSliceOptions"}),
    ),
    "steps": ("FAKE_QUANT", [ROWS], [ROWS], {}, {"": "FakeQuantOptions", "min": -1.0, "max": 1.0, "numBits": 8}),
    "buckets": (
        *("BUCKETIZE", [ROWS], [("INT32", [2, 4])], {}),
        {"": "BucketizeOptions", "boundaries": np.array([-0.5, 0, 0.7], np.float32)},
    ),
    "numbers between": (
        *("DILATE", [ROWS, ("INT32", [2]), ("FLOAT32", [])], [("FLOAT32", [3, 10])]),
        *({1: np.array([2, 3], np.int32), 2: np.array(0.5, np.float32)}, {}),
    ),
    "a sum of another project": ("STABLEHLO_ADD", [ROWS, ROWS], [ROWS], {}, {}),
}


def written(path: Path, name: str) -> Path:
    """Write a file with one operator in it; its options are called by the empty name."""
    kind, reads, gives, constants, fields = OPERATORS[name]
    options = fields.pop("", "") if (fields := dict(fields)) else ""
    schema = tflite_schema.schema()
    model = made(schema.ModelT, version=3, operatorCodes=[], buffers=[made(schema.BufferT)], description=b"")
    graph = made(schema.SubGraphT, tensors=[], operators=[], name=b"main")
    model.subgraphs = [graph]

    def add(stem: str, number: int, dtype: str, shape: list[int]) -> int:
        held = tflite_schema.add_buffer(model, constants[number]) if stem == "x" and number in constants else 0
        kind = getattr(schema.TensorType, dtype)
        lengths = np.asarray(shape, np.int32)
        return tflite_schema.add_tensor(graph, shape=lengths, type=kind, buffer=held, name=f"{stem}{number}".encode())

    inputs, outputs = (
        [add(stem, number, *each) for number, each in enumerate(side)] for stem, side in (("x", reads), ("y", gives))
    )
    graph.operators.append(tflite_schema.operator(model, kind, inputs, outputs[0], options, **fields))
    graph.operators[0].outputs = graph.outputs = outputs
    graph.inputs = [index for number, index in enumerate(inputs) if number not in constants]
    path.write_bytes(tflite_schema.packed(model))
    return path


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_that_the_converter_lacks(name: str, tf: Any, tmp_path: Path) -> None:
    prove(written(tmp_path / "m.tflite", name), tmp_path)


def test_an_operator_that_no_interpreter_has_is_no_damage(tf: Any, tmp_path: Path) -> None:
    path = written(tmp_path / "m.tflite", "a sum of another project")
    model = tflite_schema.read(path)
    model.operatorCodes[0].builtinCode = tflite_schema.schema().BuiltinOperator.STABLEHLO_SUBTRACT
    path.write_bytes(tflite_schema.packed(model))
    with pytest.raises(UnsupportedError, match="STABLEHLO_SUBTRACT"):
        open_source(path)


def test_a_range_of_floats_adds_its_steps(tf: Any, tmp_path: Path) -> None:
    bounds = [tf.TensorSpec([], tf.float32, name) for name in ("start", "limit", "step")]
    prove(lite(tf, tmp_path / "m.tflite", lambda start, limit, step: tf.range(start, limit, step), *bounds), tmp_path)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_transposed_convolutions_of_a_size_that_is_fed(padding: str, tf: Any, tmp_path: Path) -> None:
    """The interpreter's kernel takes any size, and reads beyond its data where that does not fit."""
    inputs = [tf.TensorSpec([1, 8, 8, 3], tf.float32, "x"), tf.TensorSpec([4], tf.int32, "size")]
    path = lite(
        *(tf, tmp_path / "m.tflite"),
        *(lambda x, size: tf.nn.conv2d_transpose(x, weights(3, 3, 4, 3), size, 2, padding), *inputs),
    )
    prove(path, tmp_path)


def test_mirrors_of_a_width_that_is_fed(tf: Any, tmp_path: Path) -> None:
    inputs = [tf.TensorSpec([3, 4, 5], tf.float32, "x"), tf.TensorSpec([3, 2], tf.int32, "pads")]
    prove(lite(tf, tmp_path / "m.tflite", lambda x, pads: tf.pad(x, pads, "SYMMETRIC"), *inputs), tmp_path)


@pytest.mark.parametrize("sparse", [False, True], ids=["a detour through 16 bits", "places"])
def test_what_is_lost_by_an_optimiser_or_does_not_load(sparse: bool, tf: Any, tmp_path: Path) -> None:
    def scattered(i: Any, u: Any) -> Any:
        return tf.compat.v1.sparse_to_dense(i, [8], u, -1.0)

    inputs = [tf.TensorSpec([3, 1], tf.int32, "i"), tf.TensorSpec([3], tf.float32, "u")]
    if sparse:
        prove(lite(tf, tmp_path / "m.tflite", scattered, *inputs), tmp_path)
        return
    path = lite(tf, tmp_path / "m.tflite", lambda u: tf.cast(tf.cast(u, tf.float16), tf.float32), inputs[1])
    assert "remove_back_to_back" in " ".join(prove(path, tmp_path).notes)


def test_boxes_that_are_made_have_areas_and_scores_of_their_own(tf: Any, tmp_path: Path) -> None:
    """Of equal scores the interpreter takes any, and of boxes without an area one for all."""
    inputs = [tf.TensorSpec([10, 4], tf.float32, "boxes"), tf.TensorSpec([10], tf.float32, "scores")]
    path = lite(
        *(tf, tmp_path / "m.tflite"),
        *(lambda boxes, scores: tf.image.non_max_suppression(boxes, scores, 5, 0.5), *inputs),
    )
    prove(path, tmp_path)


def test_a_table_is_the_saved_models(tf: Any, tmp_path: Path) -> None:
    def run(x: Any) -> Any:
        table = tf.raw_ops.HashTableV2(key_dtype=tf.int64, value_dtype=tf.string, shared_name="words")
        return x + tf.raw_ops.LookupTableSizeV2(table_handle=table)

    path = lite(tf, tmp_path / "m.tflite", run, tf.TensorSpec([2], tf.int64, "x"))
    with pytest.raises(UnsupportedError, match=r"looks up a table \(HASHTABLE, HASHTABLE_SIZE\)"):
        prove(path, tmp_path)


def test_a_transform_of_single_numbers_is_blamed_on_the_interpreter(tf: Any, tmp_path: Path) -> None:
    """Each number is its imaginary part as well there, so that the absolute value is 1.4 times as large."""
    x = tf.TensorSpec([2, 4], tf.float32, "x")
    path = lite(tf, tmp_path / "m.tflite", lambda x: tf.abs(tf.signal.rfft(x, [1])), x)
    with pytest.raises(NotEquivalent, match="contradicts TensorFlow's documentation at RFFT2D"):
        prove(path, tmp_path)


def test_choices_are_filled_up(tf: Any, tmp_path: Path) -> None:
    inputs = [tf.TensorSpec([6, 4], tf.float32, "boxes"), tf.TensorSpec([6], tf.float32, "scores")]
    path = lite(
        *(tf, tmp_path / "m.tflite"),
        *(lambda boxes, scores: tf.image.non_max_suppression_with_scores(boxes, scores, 5, 0.5, 0.1, 0.0), *inputs),
    )
    prove(path, tmp_path)


def test_a_loop_that_ends_before_its_list_does(tf: Any, tmp_path: Path) -> None:
    """What the loop does not write stays as the list began; tf2onnx would stack what it writes alone."""

    def run(x: Any, count: Any) -> Any:
        def turn(place: Any, whole: Any) -> tuple[Any, Any]:
            return place + 1, tf.tensor_scatter_nd_update(whole, [[place]], x[place : place + 1] * 2.0)

        return tf.while_loop(lambda place, whole: place < tf.reduce_max(count), turn, [0, tf.zeros_like(x)])[1]

    inputs = [tf.TensorSpec([5, 3], tf.float32, "x"), tf.TensorSpec([2], tf.int32, "count")]
    prove(lite(tf, tmp_path / "m.tflite", run, *inputs), tmp_path)


def test_a_loop_until_a_list_has_grown(tf: Any, tmp_path: Path) -> None:
    """tf2onnx declares the list as long as it is at first in every turn, so that the loop would have no end."""

    def run(x: Any) -> Any:
        return tf.while_loop(
            lambda whole: tf.shape(whole)[0] < 6,
            lambda whole: [tf.concat([whole, whole[-1:] * 2], 0)],
            [x],
            shape_invariants=[tf.TensorShape([None])],
        )[0]

    prove(lite(tf, tmp_path / "m.tflite", run, tf.TensorSpec([1], tf.float32, "x")), tmp_path)


def test_a_run_that_joins_what_does_not_fit_is_none(tf: Any, tmp_path: Path) -> None:
    """The interpreter looks at no shapes that it computes, and joins numbers that nobody wrote."""
    specifications = tf.TensorSpec([2, 3], name="x"), tf.TensorSpec([2], tf.int32, name="size")
    file = lite(
        tf, tmp_path / "m.tflite", lambda x, size: tf.concat([tf.slice(x, [0, 0], size), x], -1), *specifications
    )
    report = prove(file, tmp_path)
    assert report.verdict is not None
    assert any("joins along axis -1 what does not fit" in note for note in report.verdict.notes)


@pytest.mark.parametrize("is_like", [False, True])
def test_a_transposed_convolution_of_data_that_fits_its_size(tf: Any, tmp_path: Path, is_like: bool) -> None:
    """The interpreter takes data of any size, and TensorFlow only what a convolution makes of the result."""

    def compute(x: Any, like: Any) -> Any:
        size = tf.shape(like) if is_like else tf.stack([tf.shape(x)[0], 8, 10, 4])
        return tf.nn.conv2d_transpose(x, weights(3, 2, 4, 2), size, [2, 3], "SAME") + 0 * tf.reduce_sum(like)

    open_sizes = tf.TensorSpec([None, None, None, 2], name="x"), tf.TensorSpec([None, None, None, 4], name="like")
    prove(lite(tf, tmp_path / "m.tflite", compute, *open_sizes), tmp_path)


def test_groups_of_a_transposed_convolution_are_told(tf: Any, tmp_path: Path) -> None:
    def compute(x: Any) -> Any:
        return tf.nn.conv2d_transpose(x, weights(3, 3, 2, 4), [1, 8, 8, 4], 2, "SAME")

    file = lite(tf, tmp_path / "m.tflite", compute, tf.TensorSpec([1, 4, 4, 4], name="x"))
    with pytest.raises(ProofUnavailableError, match="TensorFlow Lite knows no groups there"):
        padfix.convert(file, tmp_path / "out.onnx")


def test_a_transposed_convolution_of_volumes_that_the_interpreter_gets_wrong(tf: Any, tmp_path: Path) -> None:
    """The padding along the depth is more than the others'; the interpreter's reference kernel is right."""

    def compute(x: Any) -> Any:
        return tf.nn.conv3d_transpose(x, weights(3, 1, 1, 2, 2), [1, 3, 4, 2, 2], 1, "SAME")

    file = lite(tf, tmp_path / "m.tflite", compute, tf.TensorSpec([1, 3, 4, 2, 2], name="x"))
    with pytest.raises(NotEquivalent, match="contradicts TensorFlow's documentation at CONV_3D_TRANSPOSE"):
        padfix.convert(file, tmp_path / "out.onnx")
    padfix.convert(file, tmp_path / "out.onnx", reference="spec")
    x = np.random.default_rng(0).standard_normal((1, 3, 4, 2, 2)).astype("f")
    (found,) = onnxruntime.InferenceSession(tmp_path / "out.onnx").run(None, {"x": x})
    np.testing.assert_allclose(found, compute(x).numpy(), atol=1e-5)
