"""The skeleton reader and the writer: nothing is lost, nothing large is read, nothing broken gets through."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper

from padfix.errors import SourceError, UnsupportedError
from padfix.files import skeleton, wire_format, writer
from padfix.files.model import Model
from padfix.files.payloads import MARK, has_mark, load_payload
from padfix.files.sink import stage
from padfix.files.skeleton import read_model
from padfix.files.tensors import iterate_tensors
from padfix.sources.onnx_file import open_onnx

LOSSLESS = Path(__file__).parents[1].parent / "fixtures" / "lossless" / "before.onnx"
LIGHT = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("*.onnx"))


def model_of(*initializers: TensorProto, nodes: list[onnx.NodeProto] | None = None) -> ModelProto:
    """A model that outputs its first initializer."""
    first = initializers[0]
    nodes = nodes or [helper.make_node("Identity", [first.name], ["out"])]
    output = helper.make_tensor_value_info("out", first.data_type, list(first.dims))
    graph = helper.make_graph(nodes, "graph", [], [output], list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def write(model: ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def expanded(model: Model, folder: Path) -> bytes:
    """The model's bytes by the expanding writer, never by copying the file as a whole."""
    plan = writer._Expander(model, model.proto.SerializeToString(), None).plan()
    path = folder / "expanded.onnx"
    with path.open("wb") as file:
        writer.write_pieces(file, plan.model)
    data = path.read_bytes()
    assert len(data) == plan.length
    return data


def with_graph(graph: bytes, size: int | None = None) -> bytes:
    """A model around the bytes of a graph, whose length is said to be ``size``."""
    head = model_of(large())
    head.ClearField("graph")
    return head.SerializeToString() + wire_format.length_header(7, size or len(graph)) + graph


def written(model: Model, folder: Path) -> Path:
    """Write ``model`` to a file of ``folder`` and return its path."""
    with stage(model, folder / "copy.onnx") as staged:
        staged.commit(None, verified=False)
    return folder / "copy.onnx"


def large(name: str = "w", count: int = 4096, dtype: type = np.float32) -> TensorProto:
    return numpy_helper.from_array(np.arange(count).astype(dtype), name)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("path", [LOSSLESS, *LIGHT], ids=lambda path: path.stem)
@pytest.mark.parametrize("threshold", [0, 40, skeleton.LARGE])
def test_round_trip_is_byte_identical(path: Path, threshold: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(skeleton, "LARGE", threshold)
    model = read_model(path)
    assert expanded(model, tmp_path) == path.read_bytes()
    assert written(model, tmp_path).read_bytes() == path.read_bytes()
    if threshold == 0:
        assert any(has_mark(tensor) for tensor in iterate_tensors(model.proto))


def test_every_tensor_of_the_lossless_model_can_stay_in_the_file(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(skeleton, "LARGE", 0)
    model = read_model(LOSSLESS)
    whole = list(iterate_tensors(onnx.load(LOSSLESS)))
    tensors = list(iterate_tensors(model.proto))
    assert len(tensors) == len(whole) == 10
    for tensor, expected in zip(tensors, whole, strict=True):
        assert has_mark(tensor)
        assert load_payload(model, tensor) == numpy_helper.to_array(expected).tobytes()


def test_an_edit_changes_only_what_it_touches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(skeleton, "LARGE", 0)
    model = read_model(LOSSLESS)
    expected = onnx.load(LOSSLESS)
    for proto in (model.proto, expected):
        del proto.graph.node[0].attribute[0]
        proto.graph.node[0].attribute.append(helper.make_attribute("pads", [1, 1, 1, 1]))
        proto.functions[0].node[1].name = "another, longer name"
        del proto.graph.node[2].attribute[0].g.initializer[1]
    assert written(model, tmp_path).read_bytes() == expected.SerializeToString()


TYPED = {
    "float_data": helper.make_tensor("w", TensorProto.FLOAT, [1000], np.linspace(-1, 1, 1000).tolist()),
    "double_data": helper.make_tensor("w", TensorProto.DOUBLE, [1000], np.linspace(-1, 1, 1000).tolist()),
    "int32_data": helper.make_tensor("w", TensorProto.INT32, [1000], list(range(-500, 500))),
    "int32_data of int8": helper.make_tensor("w", TensorProto.INT8, [3000], [i % 256 - 128 for i in range(3000)]),
    "int32_data of float16": helper.make_tensor("w", TensorProto.FLOAT16, [2000], np.linspace(0, 1, 2000).tolist()),
    "int64_data": helper.make_tensor("w", TensorProto.INT64, [1000], list(range(-500, 500))),
    "uint64_data": helper.make_tensor("w", TensorProto.UINT64, [1000], list(range(2**40, 2**40 + 1000))),
    "raw_data": large(),
    "complex": helper.make_tensor("w", TensorProto.COMPLEX64, [600], [complex(i, -i) for i in range(600)]),
}


@pytest.mark.parametrize("tensor", TYPED.values(), ids=TYPED.keys())
@pytest.mark.parametrize("location", [None, TensorProto.DEFAULT], ids=["", "explicit location"])
def test_typed_payloads_stay_in_the_file_and_come_back(tensor: TensorProto, location: int | None, tmp_path: Path):
    whole = model_of(tensor)
    if location is not None:
        whole.graph.initializer[0].data_location = location
    path = write(whole, tmp_path)
    model = read_model(path)
    kept = model.proto.graph.initializer[0]
    assert has_mark(kept)
    assert model.proto.ByteSize() < 600
    assert load_payload(model, kept) == numpy_helper.to_array(tensor).tobytes()
    assert expanded(model, tmp_path) == path.read_bytes()


def test_strings_are_kept_and_have_no_raw_form(tmp_path: Path):
    whole = model_of(helper.make_tensor("w", TensorProto.STRING, [500], [f"word {i}".encode() for i in range(500)]))
    model = read_model(write(whole, tmp_path))
    assert model.proto == whole
    with pytest.raises(UnsupportedError):
        load_payload(model, model.proto.graph.initializer[0])


def test_unpacked_and_split_elements_are_kept_as_they_are(tmp_path: Path):
    floats = np.arange(1000, dtype="<f4")
    unpacked = b"".join(b"\x25" + value.tobytes() for value in floats)
    split = b"".join(
        wire_format.length_header(wire_format.FLOAT_DATA, 2000) + floats[start : start + 500].tobytes()
        for start in (0, 500)
    )
    for payload in (unpacked, split):
        tensor = TensorProto(name="w", dims=[1000], data_type=TensorProto.FLOAT).SerializeToString() + payload
        path = tmp_path / "model.onnx"
        path.write_bytes(with_graph(wire_format.length_header(wire_format.INITIALIZER, len(tensor)) + tensor))
        model = read_model(path)
        np.testing.assert_array_equal(numpy_helper.to_array(model.proto.graph.initializer[0]), floats)
        assert written(model, tmp_path).read_bytes() == path.read_bytes()
        (tmp_path / "copy.onnx").unlink()


def test_the_skeleton_loads_in_onnx_runtime(tmp_path: Path):
    import onnxruntime

    model = read_model(write(model_of(large()), tmp_path))
    assert has_mark(model.proto.graph.initializer[0])
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(tmp_path))
    session = onnxruntime.InferenceSession(model.proto.SerializeToString(), options)
    np.testing.assert_array_equal(session.run(None, {})[0], np.arange(4096, dtype=np.float32))


def test_a_changed_source_is_noticed(tmp_path: Path):
    path = write(model_of(large()), tmp_path)
    model = read_model(path)
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(SourceError, match="changed while"):
        written(model, tmp_path)
    with pytest.raises(SourceError, match="changed while"):
        load_payload(model, model.proto.graph.initializer[0])


def external(folder: Path, location: str = "weights.bin", **entries: str) -> ModelProto:
    whole = model_of(large())
    tensor = whole.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    return whole


def test_external_data_is_kept_in_the_skeleton_and_need_not_be_there(tmp_path: Path):
    whole = external(tmp_path, offset="0", length="16384")
    model = read_model(write(whole, tmp_path))
    assert model.proto == whole
    with pytest.raises(SourceError, match="No such file"):
        load_payload(model, model.proto.graph.initializer[0])


@pytest.mark.parametrize("entries", [{}, {"offset": "0"}, {"offset": "5", "length": "16384", "checksum": "x"}], ids=str)
def test_external_data_is_read_and_embedded(entries: dict[str, str], tmp_path: Path):
    path = write(external(tmp_path, **entries), tmp_path)
    payload = np.arange(4096, dtype=np.float32).tobytes()
    (tmp_path / "weights.bin").write_bytes(bytes(int(entries.get("offset", "0"))) + payload + b"rest")
    model = read_model(path)
    assert load_payload(model, model.proto.graph.initializer[0]) == payload
    target = tmp_path / "elsewhere"
    target.mkdir()
    assert written(model, target).read_bytes() == model_of(large()).SerializeToString()


@pytest.mark.parametrize(
    "location",
    ["/etc/passwd", "../weights.bin", "a/../../weights.bin", "", "C:\\weights.bin", "..\\weights.bin", "a\0b"],
)
def test_unsafe_locations_are_refused_at_once(location: str, tmp_path: Path):
    with pytest.raises(SourceError, match="not inside the model's folder"):
        read_model(write(external(tmp_path, location), tmp_path))


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"offset": "10"}, "lies outside"),
        ({"offset": "99999999999"}, "lies outside"),
        ({"offset": "-1"}, "not a number"),
        ({"length": "0x10"}, "not a number"),
        ({"length": "16"}, "its shape and type need 16384"),
    ],
)
def test_spans_outside_the_file_are_refused(entries: dict[str, str], says: str, tmp_path: Path):
    model = read_model(write(external(tmp_path, **entries), tmp_path))
    (tmp_path / "weights.bin").write_bytes(bytes(16384))
    with pytest.raises(SourceError, match=says):
        load_payload(model, model.proto.graph.initializer[0])


def test_links_out_of_the_folder_are_refused_and_those_of_a_linked_model_followed(tmp_path: Path):
    blobs, names = tmp_path / "blobs", tmp_path / "names"
    blobs.mkdir()
    names.mkdir()
    (blobs / "1").write_bytes(np.arange(4096, dtype=np.float32).tobytes())
    (names / "weights.bin").symlink_to("../blobs/1")
    model = read_model(write(external(tmp_path), names))
    with pytest.raises(SourceError, match="link out of the model's folder"):
        load_payload(model, model.proto.graph.initializer[0])
    (names / "model.onnx").rename(blobs / "2")
    (names / "model.onnx").symlink_to("../blobs/2")
    model = read_model(names / "model.onnx")
    assert len(load_payload(model, model.proto.graph.initializer[0])) == 16384
    (names / "weights.bin").unlink()
    (names / "weights.bin").symlink_to(names / "weights.bin")
    with pytest.raises(SourceError):
        load_payload(model, model.proto.graph.initializer[0])
    (names / "weights.bin").unlink()
    (names / "weights.bin").mkdir()
    with pytest.raises(SourceError, match="not a regular file"):
        load_payload(model, model.proto.graph.initializer[0])


def graph_def() -> bytes:
    # node { name: "x" op: "Placeholder" } of a TensorFlow GraphDef, and versions.
    node = b"\x0a\x01x\x12\x0bPlaceholder"
    return b"\x0a" + bytes([len(node)]) + node + b"\x22\x03\x08\x86\x0f"


FOREIGN = {
    "empty": (b"", "is empty"),
    "text": (b"hello, this is not a model\n", "text file"),
    "html": (b"\n<!DOCTYPE html><html><body>404</body></html>", "HTML page"),
    "zip": (b"PK\x03\x04\x14\x00\x00\x00", "zip archive"),
    "git-lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "Git LFS pointer"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(64), "HDF5"),
    "gzip": (b"\x1f\x8b\x08\x00" + bytes(20), "gzip"),
    "tflite": (b"\x1c\x00\x00\x00TFL3" + bytes(40), "TensorFlow Lite"),
    "graph_def": (graph_def(), "GraphDef"),
    "saved_model": (b"\x08\x01\x12\x85\x01\x0a\x80\x01" + bytes(128), "SavedModel"),
    "zeros": (bytes(1000), "not a whole ONNX model"),
    "forged length": (b"\x08\x09\x3a\xff\xff\xff\xff\x7f" + bytes(100), "not a whole ONNX model"),
    "huge varint": (b"\x08" + b"\xff" * 30, "not a whole ONNX model"),
    "no graph": (b"\x08\x09\x12\x03abc", "holds no graph"),
    "empty graph": (b"\x08\x09\x3a\x00\x42\x02\x10\x12", "graph is empty"),
}


@pytest.mark.parametrize(("content", "says"), FOREIGN.values(), ids=FOREIGN.keys())
def test_files_of_other_formats_are_refused_by_name(content: bytes, says: str, tmp_path: Path):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=says) as caught:
        open_onnx(path)
    assert caught.value.hint


def test_things_that_are_no_files_are_refused(tmp_path: Path):
    with pytest.raises(SourceError, match="does not exist"):
        read_model(tmp_path / "missing.onnx")
    with pytest.raises(SourceError, match="is a folder"):
        read_model(tmp_path)
    with pytest.raises(SourceError):
        read_model(LOSSLESS / "inside a file")
    with pytest.raises(SourceError):
        read_model(tmp_path / ("long" * 100))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceError, match="not a regular file"):
        read_model(tmp_path / "pipe")


def test_what_a_model_must_have(tmp_path: Path):
    whole = model_of(large())
    del whole.opset_import[:]
    with pytest.raises(SourceError, match="opset_import"):
        read_model(write(whole, tmp_path))
    whole = model_of(large())
    whole.ClearField("ir_version")
    with pytest.raises(SourceError, match="ir_version"):
        read_model(write(whole, tmp_path))
    whole = model_of(large())
    whole.graph.initializer[0].metadata_props.add(key=MARK, value="9 0 100000 -1 0 0")
    with pytest.raises(SourceError, match="keeps for itself"):
        read_model(write(whole, tmp_path))
    path = write(model_of(large()), tmp_path)
    path.write_bytes(path.read_bytes().replace(b"Identity", b"\xff\xfeentity"))
    with pytest.raises(SourceError, match="UTF-8"):
        read_model(path)


def test_deep_nesting_is_refused(tmp_path: Path):
    # Large at every level, so that the walk itself goes down: an If in an If in an If...
    padding = helper.make_node("Identity", ["x"], ["y"], doc_string="x" * 3000).SerializeToString()
    graph = b""
    for _ in range(300):
        graph = wire_format.length_header(1, len(padding)) + padding + graph
        attribute = wire_format.length_header(6, len(graph)) + graph
        node = wire_format.length_header(5, len(attribute)) + attribute
        graph = wire_format.length_header(1, len(node)) + node
    path = tmp_path / "model.onnx"
    path.write_bytes(with_graph(graph))
    with pytest.raises(SourceError, match="nested"):
        read_model(path)


def small_model() -> bytes:
    nodes = [
        helper.make_node("MaxPool", ["x"], ["y"], name="pool", kernel_shape=[3, 3], auto_pad="SAME_UPPER"),
        helper.make_node("Mul", ["y", "w"], ["z"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "graph",
        [value("x", TensorProto.FLOAT, [1, 1, 5, 5])],
        [value("z", TensorProto.FLOAT, [1, 1, 5, 5])],
        [numpy_helper.from_array(np.float32(2), "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()


@pytest.mark.parametrize("threshold", [0, skeleton.LARGE])
def test_truncation_at_every_length_is_refused(threshold: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(skeleton, "LARGE", threshold)
    whole = small_model()
    path = tmp_path / "model.onnx"
    path.write_bytes(whole)
    read_model(path)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(SourceError):
            read_model(path)


def reads_or_refuses(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    try:
        model = read_model(path)
    except SourceError:
        return
    assert model.proto.HasField("graph")


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=300))
def test_random_bytes_never_crash(content: bytes, tmp_path_factory: pytest.TempPathFactory):
    reads_or_refuses(content, tmp_path_factory.getbasetemp() / "random.onnx")


@settings(max_examples=200, deadline=None)
@given(data=st.data(), threshold=st.sampled_from([0, 30, skeleton.LARGE]))
def test_damaged_models_never_crash(data: st.DataObject, threshold: int, tmp_path_factory: pytest.TempPathFactory):
    content = bytearray(LOSSLESS.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(content) - 1))
        content[position] = data.draw(st.integers(0, 255))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(skeleton, "LARGE", threshold)
        reads_or_refuses(bytes(content), tmp_path_factory.getbasetemp() / "damaged.onnx")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak from /proc")
def test_reading_costs_nothing_for_weights(tmp_path: Path):
    """A model with 1 GB of weights (holes in a sparse file) is read within 120 MiB, in a process of its own."""
    size = 1 << 30
    inner = TensorProto(name="w", dims=[size // 4], data_type=TensorProto.FLOAT).SerializeToString()
    tail = wire_format.length_header(wire_format.RAW_DATA, size)
    initializer = wire_format.length_header(wire_format.INITIALIZER, len(inner) + len(tail) + size) + inner + tail
    node = helper.make_node("Identity", ["w"], ["out"]).SerializeToString()
    nodes = wire_format.length_header(1, len(node)) + node
    path = tmp_path / "model.onnx"
    graph = nodes + initializer
    with path.open("wb") as file:
        file.write(with_graph(graph, len(graph) + size))
        file.truncate(file.tell() + size)
    code = (
        "import sys, pathlib; from padfix.files.skeleton import read_model; "
        "model = read_model(pathlib.Path(sys.argv[1])); assert model.proto.ByteSize() < 1000; "
        "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    )
    result = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert int(result.stdout) < 120 * 1024


def test_every_field_that_can_hold_a_tensor_is_walked():
    assert wire_format.CHILDREN["ModelProto"] == {7: "GraphProto", 20: "TrainingInfoProto", 25: "FunctionProto"}
    assert wire_format.CHILDREN["GraphProto"] == {1: "NodeProto", 5: "TensorProto", 15: "SparseTensorProto"}
    assert set(wire_format.CHILDREN["AttributeProto"]) == {5, 6, 10, 11, 22, 23}
    assert wire_format.CHILDREN["FunctionProto"] == {7: "NodeProto", 11: "AttributeProto"}
