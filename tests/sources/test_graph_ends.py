"""Which tensors of a frozen graph are fed and which are results, input pipelines and computed defaults included."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import padfix
from padfix.errors import UnsupportedError, UsageError
from tests.support.warm_commands import WarmCommands

pytestmark = pytest.mark.tensorflow

Build = Callable[[Any], None]


def weights(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def convert(tf: Any, tmp_path: Path, build: Build, **options: Any) -> tuple[padfix.ConvertReport, list[str], list[str]]:
    """Convert a graph of TensorFlow 1; return the report and the names of inputs and outputs."""
    with tf.Graph().as_default() as graph:
        build(tf.compat.v1)
    (tmp_path / "m.pb").write_bytes(graph.as_graph_def().SerializeToString())
    report = padfix.convert(tmp_path / "m.pb", tmp_path / "out.onnx", **options)
    assert report.verdict is not None
    assert report.verdict.equivalent
    converted = onnx.load(tmp_path / "out.onnx").graph
    return report, [value.name for value in converted.input], [value.name for value in converted.output]


def image_network(tf: Any, image: Any) -> Any:
    """Return features of an image, [batch, 6]."""
    features = tf.nn.conv2d(image, weights(3, 3, 3, 6), 2, "SAME", name="conv")
    return tf.reduce_mean(features, [1, 2], name="features")


def retrained(tf: Any) -> Build:
    """A bottleneck placeholder that the network itself fills, as retraining scripts write it."""

    def build(v1: Any) -> None:
        image = v1.placeholder(tf.float32, [1, 9, 9, 3], name="input")
        bottleneck = v1.placeholder_with_default(image_network(tf, image), [None, 6], name="bottleneck")
        tf.nn.softmax(tf.matmul(bottleneck, weights(6, 2)), name="result")

    return build


def test_a_computed_default_passes(tf: Any, tmp_path: Path) -> None:
    report, inputs, outputs = convert(tf, tmp_path, retrained(tf))
    assert (inputs, outputs) == (["input"], ["result"])
    assert report.notes == ["bottleneck is no input: it hands on its default, which the graph computes."]
    assert "Conv" in {node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node}


def test_a_computed_default_is_an_input_when_named(tf: Any, tmp_path: Path) -> None:
    _, inputs, outputs = convert(tf, tmp_path, retrained(tf), inputs=["bottleneck"])
    assert (inputs, outputs) == (["bottleneck"], ["result"])


def test_the_command_line_takes_it_as_well(tf: Any, warm: WarmCommands, tmp_path: Path) -> None:
    convert(tf, tmp_path, retrained(tf))
    command = ["convert", str(tmp_path / "m.pb"), "-o", str(tmp_path / "again.onnx"), "--input", "bottleneck"]
    warm.run(["-m", "padfix", *command], tmp_path).check_returncode()
    assert [value.name for value in onnx.load(tmp_path / "again.onnx").graph.input] == ["bottleneck"]


def iterated(tf: Any, v1: Any) -> Any:
    """Return image, label and size from an iterator over a dataset that is made elsewhere."""
    handle = v1.placeholder(tf.string, [], name="handle")
    types = (tf.float32, tf.int64, tf.int32)
    shapes = (tf.TensorShape([None, 9, 9, 3]), tf.TensorShape([None]), tf.TensorShape([None, 2]))
    return v1.data.Iterator.from_string_handle(handle, types, shapes).get_next()


def test_a_default_from_an_iterator_is_an_input(tf: Any, tmp_path: Path) -> None:
    def build(v1: Any) -> None:
        image, _, size = iterated(tf, v1)
        image = v1.placeholder_with_default(image, [None, 9, 9, 3], name="img")
        v1.placeholder_with_default(size, [None, 2], name="dim")
        tf.identity(v1.placeholder_with_default(size, [None, 2], name="other"), name="handed_on")
        tf.nn.sigmoid(image_network(tf, image), name="prob")

    report, inputs, outputs = convert(tf, tmp_path, build)
    assert (inputs, outputs) == (["img"], ["prob"])
    expected = "The input pipeline that ends at IteratorGetNext (IteratorGetNext) was cut off; img is an input instead."
    assert report.notes == [expected]


def test_what_an_iterator_hands_over_is_an_input(tf: Any, tmp_path: Path) -> None:
    def build(v1: Any) -> None:
        image, label, _ = iterated(tf, v1)
        wanted = tf.cast(tf.reshape(label, [-1, 1]), tf.float32)
        tf.subtract(image_network(tf, image), wanted, name="error")

    report, inputs, outputs = convert(tf, tmp_path, build)
    assert (inputs, outputs) == (["IteratorGetNext", "IteratorGetNext:1"], ["error"])
    assert "IteratorGetNext, IteratorGetNext:1 are inputs instead." in report.notes[0]


def test_what_reads_files_is_cut_off(tf: Any, tmp_path: Path) -> None:
    def image(v1: Any) -> None:
        picture = tf.io.decode_jpeg(v1.placeholder(tf.string, [], name="contents"), channels=3)
        image_network(tf, tf.cast(picture[None], tf.float32))

    def record(v1: Any) -> None:
        _, value = v1.TFRecordReader().read(v1.train.string_input_producer(["a.tfrecord"]))
        parsed = v1.parse_single_example(value, {"x": v1.FixedLenFeature([9 * 9 * 3], tf.float32)})
        image_network(tf, tf.reshape(parsed["x"], [1, 9, 9, 3]))

    report, inputs, outputs = convert(tf, tmp_path, image)
    assert (inputs, outputs) == (["DecodeJpeg"], ["features"])
    assert report.notes[0].startswith("The input pipeline that ends at DecodeJpeg (DecodeJpeg) was cut off")
    _, inputs, _ = convert(tf, tmp_path, record)
    assert inputs == ["ParseSingleExample/ParseExample/ParseExampleV2"]


def test_what_assertions_leave_is_no_output(tf: Any, tmp_path: Path) -> None:
    def build(v1: Any) -> None:
        image = v1.placeholder(tf.float32, [None, 9, 9, 3], name="image")
        tf.shape(image_network(tf, image), name="left_by_an_assertion")
        tf.nn.softmax(v1.get_default_graph().get_tensor_by_name("features:0"), name="prob")

    _, _, outputs = convert(tf, tmp_path, build)
    assert outputs == ["prob"]


def test_lengths_that_a_loop_loses_are_not_swept(tf: Any, tmp_path: Path) -> None:
    """The graph no longer knows that the image is 9 wide; the model takes no other, so none may be tried."""

    def build(v1: Any) -> None:
        image = v1.placeholder(tf.float32, [None, 9, 9, 3], name="image")

        def step(count: Any, state: Any) -> tuple[Any, Any]:
            return count + 1, tf.nn.conv2d(state, 0.2 * weights(3, 3, 3, 3), 1, "SAME")

        v1.disable_control_flow_v2()  # its loops are one node, which keeps the lengths
        try:
            _, image = v1.while_loop(lambda count, state: count < 3, step, [0, image])
        finally:
            v1.enable_control_flow_v2()
        features = tf.nn.relu(tf.nn.conv2d(image, weights(3, 3, 3, 4), 2, "SAME"))
        tf.reduce_mean(tf.nn.max_pool2d(features, 3, 2, "SAME"), [1, 2], name="features")

    _, _, outputs = convert(tf, tmp_path, build)
    assert outputs == ["features"]


def test_an_input_of_unknown_rank_can_be_fixed(tf: Any, tmp_path: Path) -> None:
    def build(v1: Any) -> None:
        image_network(tf, tf.reshape(v1.placeholder(tf.float32, None, name="image"), [-1, 9, 9, 3]))

    with pytest.raises(UnsupportedError) as caught:
        convert(tf, tmp_path, build)
    assert "--shape image=" in caught.value.hint
    _, inputs, _ = convert(tf, tmp_path, build, shapes={"image": (2, 9, 27)})
    assert inputs == ["image"]


def test_a_scalar_from_an_iterator_is_an_input(tf: Any, tmp_path: Path) -> None:
    def build(v1: Any) -> None:
        image = v1.placeholder(tf.float32, [None, 9, 9, 3], name="image")
        _, label, _ = iterated(tf, v1)
        factor = v1.placeholder_with_default(tf.cast(label[0], tf.float32), [], name="factor")
        tf.multiply(image_network(tf, image), factor, name="scaled")

    _, inputs, outputs = convert(tf, tmp_path, build)
    assert (sorted(inputs), outputs) == (["factor", "image"], ["scaled"])


@pytest.mark.parametrize("dequeue", ["one", "many", "up_to"])
def test_queues_are_cut_off(tf: Any, tmp_path: Path, dequeue: str) -> None:
    def build(v1: Any) -> None:
        queue = v1.FIFOQueue(8, [tf.float32, tf.int64], [[9, 9, 3], []], name="queue")
        queue.enqueue([v1.placeholder(tf.float32, [9, 9, 3], name="fed"), v1.placeholder(tf.int64, [], name="label")])
        queue.size(name="waiting")
        if dequeue == "one":
            image = queue.dequeue(name="next")[0][None]
        else:
            image = (queue.dequeue_many if dequeue == "many" else queue.dequeue_up_to)(4, name="next")[0]
        tf.nn.relu(image_network(tf, image), name="result")

    report, inputs, outputs = convert(tf, tmp_path, build)
    assert (inputs, outputs) == (["next"], ["result"])
    assert "The input pipeline that ends at next (QueueDequeue" in report.notes[0]


def test_files_are_not_read_behind_a_cut(tf: Any, tmp_path: Path) -> None:
    def build(v1: Any) -> None:
        names = v1.FIFOQueue(8, [tf.string], [[]], name="names")
        _, content = v1.WholeFileReader().read(names)
        decoded = tf.cast(tf.io.decode_raw(content, tf.uint8), tf.float32)
        image = v1.placeholder_with_default(tf.reshape(decoded, [1, 9, 9, 3]), [1, 9, 9, 3], name="image")
        tf.nn.relu(image_network(tf, image), name="result")

    report, inputs, outputs = convert(tf, tmp_path, build)
    assert (inputs, outputs) == (["image"], ["result"])
    assert "(DecodeRaw) was cut off; image is an input instead." in report.notes[0]


def test_a_pipeline_beside_named_inputs_is_told(tf: Any, tmp_path: Path) -> None:
    def build(v1: Any) -> None:
        image, label, _ = iterated(tf, v1)
        tf.subtract(image_network(tf, image), tf.cast(tf.reshape(label, [-1, 1]), tf.float32), name="error")

    with pytest.raises(UsageError, match="also need the input pipeline IteratorGetNext"):
        convert(tf, tmp_path, build, inputs=["features"])


def test_variables_beside_the_outputs_do_not_matter(tf: Any, tmp_path: Path) -> None:
    def build(v1: Any) -> None:
        v1.get_variable("step", [], use_resource=False)
        tf.nn.relu(v1.placeholder(tf.float32, [2], name="x"), name="y")

    _, inputs, outputs = convert(tf, tmp_path, build)
    assert (inputs, outputs) == (["x"], ["y"])


def test_an_output_without_an_input_is_told(tf: Any, tmp_path: Path) -> None:
    def build(v1: Any) -> None:
        tf.nn.relu(v1.placeholder(tf.float32, [2], name="x"), name="y")
        v1.placeholder(tf.float32, [2], name="z")
        tf.constant([1.0, 2.0], name="fixed")

    report, _, _ = convert(tf, tmp_path, build, inputs=["x", "z"], outputs=["y", "fixed"])
    assert "No output depends on the input z." in report.notes
    assert "The output fixed depends on none of the inputs." in report.notes


def test_a_graph_of_constants_has_them_as_outputs(tf: Any, tmp_path: Path) -> None:
    """TensorFlow's optimiser leaves no more of what depends on no input; only what is read is no result."""

    def build(v1: Any) -> None:
        tf.constant([1.0, 2.0], name="y")
        tf.raw_ops.Assert(condition=tf.constant(True, name="condition"), data=[tf.constant(3, name="told")])

    _, inputs, outputs = convert(tf, tmp_path, build)
    assert (inputs, outputs) == ([], ["y"])


def test_what_marks_a_turn_of_a_loop_is_no_result(tf: Any, tmp_path: Path) -> None:
    """Constants of a loop's body wait for a node that nothing reads."""
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    function = tf.function(
        lambda x: tf.while_loop(
            lambda i, a: i < 2, lambda i, a: (i + 1, tf.nn.max_pool2d(a, 3, 1, "SAME") + a), [0, x]
        )[1],
        input_signature=[tf.TensorSpec([1, 6, 7, 3], tf.float32, "x")],
    )
    frozen = convert_variables_to_constants_v2(function.get_concrete_function()).graph.as_graph_def()
    decides = next(node for node in frozen.node if node.op == "Switch")
    pivot = frozen.node.add(name="pivot", op="Identity", input=[f"{decides.name}:1"])
    pivot.attr["T"].type = decides.attr["T"].type
    frozen.node.add(name="waits", op="NoOp", input=["^pivot"])
    (tmp_path / "m.pb").write_bytes(frozen.SerializeToString())
    report = padfix.convert(tmp_path / "m.pb", tmp_path / "out.onnx")
    assert report.verdict is not None and report.verdict.equivalent
    assert len(onnx.load(tmp_path / "out.onnx").graph.output) == 1
