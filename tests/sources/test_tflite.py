"""TensorFlow Lite files come out as ONNX that gives the numbers of TensorFlow's interpreter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import padfix
from padfix.errors import SourceError, UnsupportedError, UsageError
from padfix.proof.allowances import interpreter_rounding
from padfix.results import OutputDifference
from padfix.sources import Source, SourceOptions, open_source
from tests.support.lite_files import changed, lite, made, prove, weights

pytestmark = [pytest.mark.tensorflow, pytest.mark.sweep(2)]


def names(source: Source) -> tuple[list[str], list[str]]:
    graph = source.model.proto.graph
    return [value.name for value in graph.input], [value.name for value in graph.output]


WINDOWS: dict[str, tuple[Callable[[Any, Any], Any], list[int | None]]] = {
    "stride of two": (lambda tf, x: tf.nn.relu6(tf.nn.conv2d(x, weights(3, 3, 3, 4), 2, "SAME")), [1, 11, 8, 3]),
    "free sizes": (lambda tf, x: tf.nn.relu(tf.nn.conv2d(x, weights(3, 3, 3, 4), 2, "SAME")), [None, None, None, 3]),
    "stride beyond kernel": (lambda tf, x: tf.nn.conv2d(x, weights(1, 1, 3, 4), 2, "SAME"), [1, None, None, 3]),
    "dilated": (lambda tf, x: tf.nn.conv2d(x, weights(3, 3, 3, 4), 1, "SAME", dilations=2), [1, None, None, 3]),
    "depthwise": (lambda tf, x: tf.nn.depthwise_conv2d(x, weights(3, 3, 3, 2), [1, 2, 2, 1], "SAME"), [1, 8, 9, 3]),
    "pools": (lambda tf, x: tf.nn.avg_pool2d(tf.nn.max_pool2d(x, 1, 2, "SAME"), 3, 2, "SAME"), [1, None, None, 3]),
    "no room at a length of one": (lambda tf, x: tf.nn.max_pool2d(x, 3, 2, "VALID"), [None, None, None, 3]),
    "transposed, odd": (
        lambda tf, x: tf.nn.conv2d_transpose(x, weights(3, 3, 2, 3), [1, 15, 17, 2], 2, "SAME") + weights(2),
        [1, 8, 9, 3],
    ),
    "transposed, short kernel": (
        lambda tf, x: tf.nn.conv2d_transpose(x, weights(1, 1, 2, 3), [1, 24, 27, 2], 3, "SAME"),
        [1, 8, 9, 3],
    ),
    "in a loop": (
        lambda tf, x: tf.while_loop(
            lambda i, v: i < 3, lambda i, v: (i + 1, tf.nn.conv2d(v, weights(3, 3, 3, 3) / 9, 1, "SAME")), [0, x]
        )[1],
        [1, 6, 7, 3],
    ),
    "in a branch": (
        lambda tf, x: tf.cond(
            tf.reduce_sum(x) > 0, lambda: tf.nn.max_pool2d(x, 3, 2, "SAME"), lambda: tf.nn.avg_pool2d(x, 3, 2, "SAME")
        ),
        [1, 6, 7, 3],
    ),
    "exact gelu": (lambda tf, x: tf.nn.gelu(x), [None, 6]),
    "gelu with tanh": (lambda tf, x: tf.nn.gelu(x, approximate=True), [None, 6]),
    "clipped": (
        lambda tf, x: tf.minimum(tf.maximum(tf.nn.conv2d(x, weights(2, 2, 3, 4), 1, "SAME"), -1.0), 1.0),
        [1, 4, 5, 3],
    ),
}


@pytest.mark.sweep(4)
@pytest.mark.parametrize("case", WINDOWS)
def test_windows(tf: Any, case: str, tmp_path: Path) -> None:
    function, shape = WINDOWS[case]
    path = lite(tf, tmp_path / "m.bin", lambda x: function(tf, x), tf.TensorSpec(shape, tf.float32, "x"))
    prove(path, tmp_path)


@pytest.mark.sweep(9)
@pytest.mark.parametrize("method", ["bilinear", "nearest_neighbor"])
@pytest.mark.parametrize("grid", [{}, {"align_corners": True}, {"half_pixel_centers": True}])
@pytest.mark.parametrize("size", [(13, 31), (3, 2), (1, 7)])
def test_resizes(tf: Any, method: str, grid: dict[str, bool], size: tuple[int, int], tmp_path: Path) -> None:
    resize = getattr(tf.compat.v1.image, f"resize_{method}")
    path = lite(
        tf, tmp_path / "m.tflite", lambda x: resize(x, size, **grid), tf.TensorSpec([1, 7, 8, 2], tf.float32, "x")
    )
    prove(path, tmp_path)


def test_names_and_order_are_the_signature_s(tf: Any, tmp_path: Path) -> None:
    module = tf.Module()

    @tf.function(
        input_signature=[tf.TensorSpec([1, 6, 7, 3], tf.float32, "x"), tf.TensorSpec([None, 3], tf.float32, "y")]
    )
    def call(x: Any, y: Any) -> dict[str, Any]:
        return {"b": tf.nn.conv2d(x, weights(3, 3, 3, 4), 2, "SAME"), "a": y * 2, "same": y}

    tf.saved_model.save(module, str(tmp_path / "m"), signatures={"serving_default": call})
    (tmp_path / "m.tflite").write_bytes(tf.lite.TFLiteConverter.from_saved_model(str(tmp_path / "m")).convert())
    source = open_source(tmp_path / "m.tflite")
    assert sorted(names(source)[0]) == ["x", "y"]
    assert sorted(names(source)[1]) == ["a", "b", "same"]
    interpreter = tf.lite.Interpreter(model_path=str(tmp_path / "m.tflite"))
    signature = interpreter.get_signature_list()["serving_default"]
    assert set(signature["outputs"]) == set(names(source)[1])
    prove(tmp_path / "m.tflite", tmp_path)


def test_several_signatures(tf: Any, tmp_path: Path) -> None:
    class Both(tf.Module):  # type: ignore[misc, name-defined]
        @tf.function(input_signature=[tf.TensorSpec([None, 9, 9, 2], tf.float32, "picture")])
        def shrink(self, picture: Any) -> dict[str, Any]:
            return {"small": tf.nn.max_pool2d(picture, 3, 2, "SAME")}

        @tf.function(input_signature=[tf.TensorSpec([1, 9, 9, 2], tf.float32, "picture")])
        def grow(self, picture: Any) -> dict[str, Any]:
            return {"large": tf.nn.conv2d_transpose(picture, weights(3, 3, 4, 2), [1, 18, 18, 4], 2, "SAME")}

    both = Both()
    tf.saved_model.save(both, str(tmp_path / "m"), signatures={"shrink": both.shrink, "grow": both.grow})
    path = tmp_path / "m.tflite"
    converter = tf.lite.TFLiteConverter.from_saved_model(str(tmp_path / "m"), signature_keys=["shrink", "grow"])
    path.write_bytes(converter.convert())
    with pytest.raises(UsageError, match="grow, shrink"):
        open_source(path)
    with pytest.raises(UsageError, match="grow, shrink"):
        open_source(path, SourceOptions(signature="turn"))
    prove(path, tmp_path, signature="shrink")
    assert names(open_source(path, SourceOptions(signature="shrink"))) == (["picture"], ["small"])
    prove(path, tmp_path, signature="grow")
    assert names(open_source(path, SourceOptions(signature="grow"))) == (["picture"], ["large"])


def test_tensors_without_signature_or_names_of_their_own(tf: Any, tmp_path: Path) -> None:
    path = lite(
        tf,
        tmp_path / "m.tflite",
        lambda x: tf.nn.max_pool2d(tf.nn.conv2d(x, weights(3, 3, 3, 4), 2, "SAME"), 2, 2, "SAME"),
        tf.TensorSpec([1, 11, 8, 3], tf.float32, "x"),
    )

    def same_names(schema: Any, model: Any) -> None:
        model.signatureDefs = None
        for tensor in model.subgraphs[0].tensors:
            tensor.name = b"t:0"

    report = prove(changed(path, same_names), tmp_path)
    assert report.source_kind == "tflite"
    assert names(open_source(path)) == (["t"], ["t_output"])


def test_fixed_shapes(tf: Any, tmp_path: Path) -> None:
    path = lite(
        tf,
        tmp_path / "m.tflite",
        lambda x: tf.nn.conv2d(x, weights(3, 3, 3, 4), 2, "SAME"),
        tf.TensorSpec([None, None, 8, 3], tf.float32, "x"),
    )
    report = prove(path, tmp_path, shapes={"x": (2, 11, 8, 3)})
    assert {item.finding.rule for item in report.rewrites} <= {"PF101"}
    with pytest.raises(UsageError, match=r"\?,\?,8,3"):
        open_source(path, SourceOptions(shapes={"x": (2, 11, 9, 3)}))
    with pytest.raises(UsageError, match="The inputs are: x"):
        open_source(path, SourceOptions(shapes={"y": (2, 11, 8, 3)}))


def test_the_slope_of_a_softmax(tf: Any, tmp_path: Path) -> None:
    path = lite(tf, tmp_path / "m.tflite", lambda x: tf.nn.softmax(x), tf.TensorSpec([None, 5], tf.float32, "x"))

    def steeper(schema: Any, model: Any) -> None:
        (operator,) = model.subgraphs[0].operators
        operator.builtinOptions.beta = 2.5

    prove(changed(path, steeper), tmp_path)


def test_the_bias_of_a_transposed_convolution(tf: Any, tmp_path: Path) -> None:
    path = lite(
        tf,
        tmp_path / "m.tflite",
        lambda x: tf.nn.conv2d_transpose(x, weights(3, 3, 2, 3), [1, 16, 18, 2], 2, "SAME"),
        tf.TensorSpec([1, 8, 9, 3], tf.float32, "x"),
    )

    def biased(schema: Any, model: Any) -> None:
        graph = model.subgraphs[0]
        model.buffers.append(made(schema.BufferT, data=np.frombuffer(np.float32([3, -4]).tobytes(), np.uint8)))
        graph.tensors.append(made(schema.TensorT, shape=[2], type=0, buffer=len(model.buffers) - 1, name=b"bias"))
        (operator,) = [item for item in graph.operators if len(item.inputs) == 3]
        operator.inputs = [*operator.inputs, len(graph.tensors) - 1]
        model.operatorCodes[operator.opcodeIndex].version = 3

    prove(changed(path, biased), tmp_path)


def test_the_bias_of_rows_that_a_layer_lays_out_itself(tf: Any, tmp_path: Path) -> None:
    def dense(x: Any) -> Any:
        return tf.nn.relu(tf.matmul(tf.reshape(x, [-1, 6]), weights(6, 4)) + np.float32([1, -2, 3, 4]))

    prove(lite(tf, tmp_path / "m.tflite", dense, tf.TensorSpec([2, 1, 6], tf.float32, "x")), tmp_path)


@pytest.mark.parametrize("activation", [1, 2, 3], ids=["RELU", "RELU_N1_TO_1", "RELU6"])
def test_fused_activations(tf: Any, activation: int, tmp_path: Path) -> None:
    path = lite(
        tf,
        tmp_path / "m.tflite",
        lambda x: tf.nn.avg_pool2d(x * 4.0, 3, 2, "SAME"),
        tf.TensorSpec([1, 8, 9, 3], tf.float32, "x"),
    )

    def fused(schema: Any, model: Any) -> None:
        for operator in model.subgraphs[0].operators:
            operator.builtinOptions.fusedActivationFunction = activation

    prove(changed(path, fused), tmp_path)


def quantised(tf: Any, path: Path, *, whole: bool = True) -> Path:
    def calls() -> Any:
        random = np.random.default_rng(0)
        for _ in range(8):
            yield [random.standard_normal((1, 9, 8, 3)).astype(np.float32)]

    kinds = tf.lite.OpsSet
    settings: dict[str, Any] = {"optimizations": [tf.lite.Optimize.DEFAULT]}
    if whole:
        settings["representative_dataset"] = calls

    def function(x: Any) -> Any:
        y = tf.nn.relu(tf.nn.conv2d(x, weights(3, 3, 3, 64), 2, "SAME"))
        y = tf.nn.depthwise_conv2d(y, weights(3, 3, 64, 1), [1, 1, 1, 1], "SAME") + y
        return tf.reduce_mean(tf.nn.max_pool2d(y, 3, 2, "SAME"), [1, 2])

    if whole:
        settings |= {"inference_input_type": tf.int8, "inference_output_type": tf.int8}
        settings["target_spec"] = tf.lite.TargetSpec(supported_ops=[kinds.TFLITE_BUILTINS_INT8])
    return lite(tf, path, function, tf.TensorSpec([1, 9, 8, 3], tf.float32, "x"), **settings)


def test_quantised_to_eight_bits(tf: Any, tmp_path: Path) -> None:
    report = prove(quantised(tf, tmp_path / "m.tflite"), tmp_path)
    assert report.verdict is not None
    assert max(output.max_abs_diff for run in report.verdict.runs for output in run.outputs) <= 2


def test_the_leeway_of_a_quantised_model_is_small(tf: Any, tmp_path: Path) -> None:
    source = open_source(quantised(tf, tmp_path / "m.tflite"))
    assert source.executor is not None
    executor = source.executor()
    feeds = {"x": np.random.default_rng(1).integers(-128, 128, (1, 9, 8, 3)).astype(np.int8)}
    results = executor.run(feeds)
    leeway = executor.leeway(feeds, results)  # type: ignore[attr-defined]
    (output,) = results
    assert 2 <= leeway[output] <= 0.1 * np.ptp(results[output].astype(float)) or leeway[output] == 2
    near = OutputDifference(output, leeway[output], 0.1, 0.0, False, "values differ")
    far = OutputDifference(output, leeway[output] + 1, 0.1, 0.0, False, "values differ")
    assert [item.equivalent for item in interpreter_rounding(leeway, (near, far), [])] == [True, False]


def test_kernels_that_contradict_each_other_are_named(tf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_source(quantised(tf, tmp_path / "m.tflite"))
    assert source.executor is not None
    executor: Any = source.executor()
    feeds = {"x": np.random.default_rng(1).integers(-128, 128, (1, 9, 8, 3)).astype(np.int8)}
    results = executor.run(feeds)
    executor.leeway(feeds, results)
    assert executor.remarks() == []
    monkeypatch.setattr(executor, "_run", lambda *_: {name: array // 2 - 40 for name, array in results.items()})
    executor.leeway(feeds, results)
    assert "contradict each other" in executor.remarks()[0]


def test_what_is_not_quantised_has_no_leeway(tf: Any, tmp_path: Path) -> None:
    source = open_source(lite(tf, tmp_path / "m.tflite", lambda x: x * 2.0, tf.TensorSpec([1, 3], tf.float32, "x")))
    assert source.executor is not None
    executor = source.executor()
    feeds = {"x": np.ones((1, 3), np.float32)}
    assert executor.leeway(feeds, executor.run(feeds)) == {}  # type: ignore[attr-defined]


def test_random_numbers_are_declined(tf: Any, tmp_path: Path) -> None:
    path = lite(
        tf, tmp_path / "m.tflite", lambda x: x + tf.random.uniform([3]), tf.TensorSpec([None, 3], tf.float32, "x")
    )
    with pytest.raises(UnsupportedError, match="RANDOM_UNIFORM"):
        open_source(path)


def test_state_is_declined(tf: Any, tmp_path: Path) -> None:
    path = lite(tf, tmp_path / "m.tflite", lambda x: x * 2.0, tf.TensorSpec([1, 3], tf.float32, "x"))

    def stateful(schema: Any, model: Any) -> None:
        model.subgraphs[0].tensors.append(made(schema.TensorT, shape=[3], type=0, buffer=0, name=b"v", isVariable=True))

    with pytest.raises(UnsupportedError, match="keeps state"):
        open_source(changed(path, stateful))


@pytest.mark.parametrize("keep", [0.2, 0.6, 0.98])
def test_truncated_files(tf: Any, keep: float, tmp_path: Path) -> None:
    path = lite(
        tf,
        tmp_path / "m.tflite",
        lambda x: tf.nn.conv2d(x, weights(3, 3, 3, 4), 2, "SAME"),
        tf.TensorSpec([1, 9, 8, 3], tf.float32, "x"),
    )
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])
    with pytest.raises((SourceError, UnsupportedError)):
        open_source(path)


@pytest.mark.parametrize("option", ["inputs", "outputs", "tag"])
def test_options_of_other_kinds(tf: Any, option: str, tmp_path: Path) -> None:
    path = lite(tf, tmp_path / "m.tflite", lambda x: x * 2.0, tf.TensorSpec([1, 3], tf.float32, "x"))
    with pytest.raises(UsageError, match="not for TensorFlow Lite"):
        open_source(path, SourceOptions(**{option: "x" if option == "tag" else ["x"]}))


def test_inspect(tf: Any, tmp_path: Path) -> None:
    path = lite(
        tf,
        tmp_path / "m.tflite",
        lambda x: tf.image.resize(
            tf.nn.max_pool2d(tf.nn.conv2d(x, weights(3, 5, 3, 4), 2, "SAME"), 2, 2, "VALID"), [9, 9]
        ),
        tf.TensorSpec([1, 9, 8, 3], tf.float32, "x"),
    )
    convolution, pool, resize = padfix.inspect(path)
    assert (convolution.op, convolution.kernel, convolution.pads) == ("CONV_2D", (3, 5), (1, 1, 1, 2))
    assert (pool.op, pool.strides, pool.padding, pool.pads) == ("MAX_POOL_2D", (2, 2), "VALID", (0, 0, 0, 0))
    assert resize.op == "RESIZE_BILINEAR"
