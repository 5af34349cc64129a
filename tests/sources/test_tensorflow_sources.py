"""TensorFlow sources come out as ONNX that gives TensorFlow's numbers, under the source's own names."""

from __future__ import annotations

import importlib.util
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from padfix.errors import MissingDependencyError, PadfixError, SourceError, UnsupportedError, UsageError
from padfix.proof.executors import ExecutionFailed
from padfix.sources import Source, SourceOptions, open_source

FIXTURES = Path(__file__).parents[2] / "fixtures" / "tf"

pytestmark = pytest.mark.tensorflow


def open_fixture(name: str, **options: Any) -> Source:
    return open_source(FIXTURES / name, SourceOptions(**options))


def names(source: Source) -> tuple[list[str], list[str]]:
    graph = source.model.proto.graph
    return [value.name for value in graph.input], [value.name for value in graph.output]


def input_shape(source: Source, index: int = 0) -> list[int | str]:
    dimensions = source.model.proto.graph.input[index].type.tensor_type.shape.dim
    return [dimension.dim_value or dimension.dim_param for dimension in dimensions]


def assert_same_numbers(source: Source, free: int = 2) -> None:
    """Run both sides on random data; free lengths become ``free``."""
    import onnxruntime

    assert source.executor is not None
    original = source.executor()
    assert original.name == "tensorflow"
    assert ([item.name for item in original.inputs], original.outputs) == names(source)
    random = np.random.default_rng(0)
    feeds = {}
    for item in original.inputs:
        shape = [length if isinstance(length, int) else free for length in item.shape or ()]
        feeds[item.name] = random.standard_normal(shape).astype(np.float32)
    session = onnxruntime.InferenceSession(source.model.proto.SerializeToString())
    wanted = original.run(feeds)
    for name, result in zip(original.outputs, session.run(None, feeds), strict=True):
        assert result.shape == wanted[name].shape
        np.testing.assert_allclose(result, wanted[name], rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("name", "options", "inputs", "outputs"),
    [
        ("leftovers.pb", {}, ["images"], ["scores"]),
        ("leftovers.pb", {"outputs": ["pool1:0", "relu1"]}, ["images"], ["pool1", "relu1"]),
        ("leftovers.pb", {"inputs": ["relu1:0"]}, ["relu1"], ["scores"]),
        ("leftovers.pb", {"inputs": ["pool1"], "outputs": ["relu2"]}, ["pool1"], ["relu2"]),
        ("leftovers.pb", {"shapes": {"images:0": (3, 32, 32, 3)}}, ["images"], ["scores"]),
        ("two_signatures", {"signature": "enlarge"}, ["picture"], ["features", "large"]),
        ("two_signatures/saved_model.pb", {"signature": "classify", "tag": "serve"}, ["picture"], ["scores"]),
        ("first_style", {}, ["audio"], ["features", "pooled"]),
        ("first_style", {"shapes": {"audio": (5, 64, 1)}}, ["audio"], ["features", "pooled"]),
        ("two_outputs.keras", {}, ["picture"], ["label", "mask"]),
        ("two_outputs.h5", {"shapes": {"picture": (3, 12, 12, 1)}}, ["picture"], ["label", "mask"]),
    ],
)
def test_numbers_and_names(name: str, options: dict[str, Any], inputs: list[str], outputs: list[str]) -> None:
    source = open_fixture(name, **options)
    assert names(source) == (inputs, outputs)
    for shape in options.get("shapes", {}).values():
        assert input_shape(source) == list(shape)
    assert_same_numbers(source)
    assert source.model.proto.opset_import[0].version == 18


def test_a_scalar_with_a_default_keeps_it() -> None:
    source = open_fixture("any_size.pbtxt")
    assert names(source) == (["images"], ["coarse", "smooth"])
    assert_same_numbers(source, free=7)
    assert_same_numbers(source, free=8)


def test_a_scalar_with_a_default_can_be_an_input() -> None:
    source = open_fixture("any_size.pbtxt", inputs=["images", "keep"])
    assert names(source)[0] == ["images", "keep"]
    assert_same_numbers(source, free=5)


def test_fixed_shapes_make_static_pads() -> None:
    source = open_fixture("any_size.pbtxt", shapes={"images": (1, 11, 8, 1)})
    attributes = [attribute for node in source.model.proto.graph.node for attribute in node.attribute]
    assert not [attribute for attribute in attributes if attribute.name == "auto_pad"]
    assert [attribute for attribute in attributes if attribute.name == "pads"]
    assert_same_numbers(source)


@pytest.mark.parametrize("opset", [11, 13, 17, 30])
def test_opset(opset: int) -> None:
    source = open_fixture("two_signatures", signature="enlarge", opset=opset)
    assert source.model.proto.opset_import[0].version == min(opset, 18)
    assert_same_numbers(source)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("two_signatures", {}, "The signatures are: classify, enlarge."),
        ("two_signatures", {"signature": "predict"}, "The signatures are: classify, enlarge."),
        ("two_signatures", {"tag": "train", "signature": "classify"}, "The tags are: serve."),
        ("two_signatures", {"signature": "classify", "outputs": ["x"]}, "--signature"),
        ("first_style", {"shapes": {"sound": (1, 2)}}, "The inputs are: audio."),
        ("first_style", {"shapes": {"audio": (1, 64, 2)}}, "?,64,1"),
        ("leftovers.pb", {"shapes": {"images": (1, 32, 32)}}, "?,32,32,3"),
        ("leftovers.pb", {"outputs": ["logit"]}, "Close: logits"),
        ("leftovers.pb", {"inputs": ["pool1"], "outputs": ["conv1"]}, "the placeholder images"),
        ("leftovers.pb", {"signature": "serve"}, "SavedModels"),
        ("two_outputs.keras", {"tag": "serve"}, "SavedModels"),
        ("two_outputs.keras", {"shapes": {"photo": (1,)}}, "The inputs are: picture."),
    ],
)
def test_options_that_do_not_fit(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_fixture(name, **options)
    assert words in str(caught.value)


def test_the_graph_loader_reads_what_the_object_loader_refuses(tf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ValueError("slot variable of an unknown optimizer")

    monkeypatch.setattr(tf.saved_model, "load", refuse)
    source = open_fixture("two_signatures", signature="enlarge")
    assert "slot variable" in source.notes[0]
    assert names(source) == (["picture"], ["features", "large"])
    assert_same_numbers(source)


@pytest.mark.parametrize("name", ["leftovers.pb", "any_size.pbtxt", "two_outputs.keras", "two_outputs.h5"])
@pytest.mark.parametrize("keep", [0.3, 0.7, 0.999])
def test_truncated_files(name: str, keep: float, tmp_path: Path) -> None:
    whole = (FIXTURES / name).read_bytes()
    path = tmp_path / name
    path.write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises((SourceError, UnsupportedError)):
        open_source(path)


def test_incomplete_saved_models(tmp_path: Path) -> None:
    for number, broken in enumerate(("variables", "saved_model.pb")):
        folder = tmp_path / str(number)
        shutil.copytree(FIXTURES / "two_signatures", folder)
        if broken == "variables":
            shutil.rmtree(folder / broken)
        else:
            (folder / broken).write_bytes((folder / broken).read_bytes()[:9000])
        with pytest.raises(SourceError):
            open_source(folder, SourceOptions(signature="classify"))


def test_keras_files_under_another_name(tmp_path: Path) -> None:
    for name in ("two_outputs.keras", "two_outputs.h5"):
        path = tmp_path / "model.bin"
        shutil.copy(FIXTURES / name, path)
        assert names(open_source(path)) == (["picture"], ["label", "mask"])


def test_weights_alone_are_no_model(tmp_path: Path) -> None:
    import h5py

    path = tmp_path / "weights.h5"
    with h5py.File(path, "w") as file:
        file["kernel"] = np.ones(3)
    with pytest.raises(SourceError, match="only weights"):
        open_source(path)


def test_stored_code_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "lambda.keras"
    with zipfile.ZipFile(FIXTURES / "two_outputs.keras") as source, zipfile.ZipFile(path, "w") as target:
        for item in source.namelist():
            data = source.read(item)
            if item == "config.json":
                data = data.replace(b'"class_name": "Dense"', b'"class_name": "__lambda__"', 1)
            target.writestr(item, data)
    with pytest.raises(UnsupportedError, match="stored Python code"):
        open_source(path)


def save_function(tf: Any, folder: Path, function: Any, *specifications: Any) -> Path:
    module = tf.Module()
    module.call = tf.function(function, input_signature=specifications)
    tf.saved_model.save(module, str(folder), signatures={"serving_default": module.call})
    return folder


def test_operators_without_an_onnx_form_are_named(tf: Any, tmp_path: Path) -> None:
    def function(x: Any) -> dict[str, Any]:
        return {"y": tf.math.igamma(tf.abs(x) + 1.0, x * x)}

    save_function(tf, tmp_path / "m", function, tf.TensorSpec([1, 4, 4, 1], tf.float32, "x"))
    with pytest.raises(UnsupportedError, match="Igamma"):
        open_source(tmp_path / "m")


def test_compiled_calls_and_erfc(tf: Any, tmp_path: Path) -> None:
    @tf.function(jit_compile=True)
    def grouped(x: Any) -> Any:
        return tf.nn.conv2d(x, tf.ones([3, 3, 1, 4]), 2, "SAME")

    def function(x: Any) -> dict[str, Any]:
        return {"y": tf.math.erfc(grouped(x))}

    folder = save_function(tf, tmp_path / "m", function, tf.TensorSpec([None, 7, 8, 2], tf.float32, "x"))
    assert_same_numbers(open_source(folder))


def test_integer_pools_are_exact(tf: Any, tmp_path: Path) -> None:
    import onnxruntime

    def function(x: Any) -> dict[str, Any]:
        return {"y": tf.nn.max_pool2d(x, 3, 2, "SAME")}

    folder = save_function(tf, tmp_path / "m", function, tf.TensorSpec([1, 7, 8, 2], tf.int32, "x"))
    source = open_source(folder)
    assert source.executor is not None
    feeds = {"x": np.random.default_rng(0).integers(-(2**31), 2**31, (1, 7, 8, 2), np.int32)}
    session = onnxruntime.InferenceSession(source.model.proto.SerializeToString())
    assert (session.run(None, feeds)[0] == source.executor().run(feeds)["y"]).all()


def test_an_optimiser_that_fails_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from tf2onnx.optimizer import merge_duplicated_nodes_optimizer

    def fail(*_: object) -> None:
        raise AttributeError("np.product")

    monkeypatch.setattr(merge_duplicated_nodes_optimizer.MergeDuplicatedNodesOptimizer, "_optimize", fail)
    assert_same_numbers(open_fixture("leftovers.pb"))


def test_one_tensor_under_several_names(tf: Any, tmp_path: Path) -> None:
    def function(x: Any, unused: Any) -> dict[str, Any]:
        y = x * 2.0
        return {"x": x, "first": y, "second": y}

    specification = [tf.TensorSpec([None, 3], tf.float32, name) for name in ("x", "unused")]
    source = open_source(save_function(tf, tmp_path / "m", function, *specification))
    assert names(source) == (["unused", "x"], ["first", "second", "x_output"])
    assert_same_numbers(source)


def test_tables_of_strings_keep_their_contents(tf: Any, tmp_path: Path) -> None:
    module = tf.Module()
    initializer = tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64))
    module.table = tf.lookup.StaticHashTable(initializer, -1)

    def function(word: Any) -> dict[str, Any]:
        return {"number": module.table.lookup(word)}

    module.call = tf.function(function, input_signature=[tf.TensorSpec([None], tf.string, "word")])
    tf.saved_model.save(module, str(tmp_path / "m"), signatures={"serving_default": module.call})
    import onnxruntime

    source = open_source(tmp_path / "m")
    assert source.executor is not None
    feeds = {"word": np.array(["b", "c", "a"], object)}
    session = onnxruntime.InferenceSession(source.model.proto.SerializeToString())
    assert session.run(None, feeds)[0].tolist() == source.executor().run(feeds)["number"].tolist() == [2, -1, 1]


def test_variables_in_a_frozen_graph(tf: Any, tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [1], name="x")
        tf.identity(x * tf.compat.v1.get_variable("scale", [1]), name="y")
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    with pytest.raises(UnsupportedError, match="not frozen: it holds the variables scale"):
        open_source(path)


def test_a_failing_run_says_so() -> None:
    source = open_fixture("leftovers.pb")
    assert source.executor is not None
    with pytest.raises(ExecutionFailed, match="Cannot feed value"):
        source.executor().run({"images": np.zeros((1, 32, 32, 4), np.float32)})


def test_without_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "tf2onnx" else find(name))
    for name in ("leftovers.pb", "two_signatures", "two_outputs.h5"):
        with pytest.raises(MissingDependencyError) as caught:
            open_fixture(name)
        assert caught.value.hint == "Install them with: pip install 'padfix[tf]'"


def test_nothing_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    open_fixture("first_style")
    open_fixture("two_outputs.keras")
    with pytest.raises(PadfixError):
        open_fixture("leftovers.pb", inputs=["nothing"])
    assert capfd.readouterr() == ("", "")


def test_a_frozen_graph_without_its_table_says_where_that_is(tf: Any, tmp_path: Path) -> None:
    graph = tf.Graph()
    with graph.as_default():
        keys = tf.compat.v1.placeholder(tf.string, [None], name="keys")
        filled = tf.lookup.KeyValueTensorInitializer(tf.constant(["a"]), tf.constant([1], tf.int64))
        tf.identity(tf.lookup.StaticHashTable(filled, -1).lookup(keys), name="found")
    whole = graph.as_graph_def()
    bare = tf.compat.v1.graph_util.extract_sub_graph(whole, ["found"])
    (tmp_path / "graph.pb").write_bytes(bare.SerializeToString())
    with pytest.raises(UnsupportedError, match=r"does not hold the contents of the table .*\. Convert the SavedModel"):
        open_source(tmp_path / "graph.pb")
