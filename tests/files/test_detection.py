"""The kind of a source is told from its content, without TensorFlow; other formats are refused with a hint."""

from __future__ import annotations

import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from padfix.errors import PadfixError, SourceError, UnsupportedError
from padfix.files.detection import detect

TENSORFLOW = Path(__file__).parents[2] / "fixtures" / "tf"


def onnx_bytes() -> bytes:
    value = helper.make_tensor_value_info("X", TensorProto.FLOAT, [1])
    result = helper.make_tensor_value_info("Y", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Relu", ["X"], ["Y"])], "g", [value], [result])
    return helper.make_model(graph, producer_name="someone").SerializeToString()


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("leftovers.pb", "frozen_graph"),
        ("any_size.pbtxt", "frozen_graph"),
        ("two_signatures", "saved_model"),
        ("two_signatures/saved_model.pb", "saved_model"),
        ("first_style", "saved_model"),
        ("two_outputs.keras", "keras"),
        ("two_outputs.h5", "keras_h5"),
    ],
)
def test_kind_of_tensorflow_sources(source: str, kind: str) -> None:
    assert detect(TENSORFLOW / source) == kind


@pytest.mark.parametrize("source", ["leftovers.pb", "any_size.pbtxt", "two_outputs.keras", "two_outputs.h5"])
def test_the_name_does_not_matter(source: str, tmp_path: Path) -> None:
    renamed = tmp_path / "model.onnx"
    renamed.write_bytes((TENSORFLOW / source).read_bytes())
    assert detect(renamed) == detect(TENSORFLOW / source)


def test_onnx_under_any_name(tmp_path: Path) -> None:
    for name in ("model.onnx", "saved_model.pb", "model.h5"):
        path = tmp_path / name
        path.write_bytes(onnx_bytes())
        assert detect(path) == "onnx"


def test_saved_model_as_text(tmp_path: Path) -> None:
    path = tmp_path / "graph.pbtxt"
    path.write_text("# written by hand\n\nsaved_model_schema_version: 1\nmeta_graphs {\n}\n")
    assert detect(path) == "saved_model"


def zipped(*names: str):
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, b"x")

    return write


def content(data: bytes):
    return lambda path: path.write_bytes(data)


def test_a_lite_file_is_known_by_its_signature(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(b"\x1c\x00\x00\x00TFL3" + bytes(40))
    assert detect(path) == "tflite"


FOREIGN = {
    "empty": (content(b""), SourceError, "empty"),
    "random": (content(np.random.default_rng(7).bytes(4096)), SourceError, "none of the known formats"),
    "zeros": (content(bytes(4096)), SourceError, "none of the known formats"),
    "page": (content(b"\n<!DOCTYPE html><html></html>"), SourceError, "HTML page"),
    "pointer": (content(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), SourceError, "git lfs pull"),
    "prose": (content(b"Dear diary,\nno model today.\n"), SourceError, "text file"),
    "json": (content(b'{"format": "graph-model"}'), SourceError, "JSON"),
    "xml": (content(b'<?xml version="1.0"?><net/>'), SourceError, "XML"),
    "pytorch zip": (zipped("archive/data.pkl", "archive/version"), UnsupportedError, "torch.onnx.export"),
    "pickle": (content(pickle.dumps({"weights": [1.0]})), UnsupportedError, "torch.onnx.export"),
    "zip": (zipped("readme.txt"), SourceError, "zip archive"),
    "arrays": (zipped("a.npy"), SourceError, "NumPy archive"),
    "zipped SavedModel": (zipped("m/saved_model.pb"), SourceError, "Unpack it"),
    "cut zip": (content(b"PK\x03\x04" + bytes(40)), SourceError, "truncated"),
    "gzip": (content(b"\x1f\x8b\x08" + bytes(40)), SourceError, "Unpack"),
    "array": (content(b"\x93NUMPY\x01\x00" + bytes(40)), SourceError, "NumPy array"),
    "ort": (content(b"\x1c\x00\x00\x00ORTM" + bytes(40)), SourceError, ".ort"),
    "safetensors": (content((20).to_bytes(8, "little") + b'{"a": 1}' + bytes(40)), UnsupportedError, "safetensors"),
    "onnx text": (content(b"ir_version: 8\ngraph {\n}\n"), UnsupportedError, "binary .onnx"),
    "tensor": (
        content(numpy_helper.from_array(np.ones(3, np.float32)).SerializeToString()),
        SourceError,
        "not a model",
    ),
    "cut onnx": (content(onnx_bytes()[:-20]), SourceError, "truncated"),
    "cut graph": (
        content((TENSORFLOW / "leftovers.pb").read_bytes()[:3000]),
        SourceError,
        "starts like a TensorFlow graph",
    ),
    "cut text in the middle of a character": (content("é".encode() * 400), SourceError, "text file"),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_files_of_other_formats_are_refused_with_a_sentence(case: str, tmp_path: Path) -> None:
    write, error, words = FOREIGN[case]
    path = tmp_path / "model.onnx"
    write(path)
    with pytest.raises(error) as caught:
        detect(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="does not exist"):
        detect(tmp_path / "nowhere")
    with pytest.raises(SourceError, match="empty folder"):
        detect(tmp_path)
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"x")
    with pytest.raises(SourceError, match="Its folders do: 1"):
        detect(tmp_path)
    (tmp_path / "checkpoint").write_text("model_checkpoint_path: 'a'")
    with pytest.raises(UnsupportedError, match="checkpoint"):
        detect(tmp_path)


@pytest.mark.parametrize("length", [*range(1, 40), 100, 1000, 5000])
def test_no_prefix_of_a_graph_raises_anything_else(length: int, tmp_path: Path) -> None:
    path = tmp_path / "cut.pb"
    path.write_bytes((TENSORFLOW / "leftovers.pb").read_bytes()[:length])
    try:
        assert detect(path) == "frozen_graph"
    except PadfixError as error:
        assert error.exit_code == 2


def test_a_large_file_is_only_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "large.onnx"
    graph = onnx.load_from_string(onnx_bytes())
    graph.ClearField("opset_import")
    head = graph.SerializeToString()
    with path.open("wb") as file:
        file.write(head[: head.index(graph.graph.SerializeToString()) - 2])
        size = 2**33
        file.write(b"\x3a" + _varint(size))  # the graph, field 7
        position = file.tell() + size
        file.seek(position)
        file.write(b"\x42\x02\x10\x11")  # opset_import, field 8
    assert detect(path) == "onnx"


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def test_detecting_imports_no_tensorflow() -> None:
    program = (
        "import sys; from pathlib import Path; from padfix.files.detection import detect; "
        f"detect(Path({str(TENSORFLOW / 'two_outputs.h5')!r})); "
        "print([name for name in ('tensorflow', 'tf2onnx', 'keras', 'h5py', 'onnxruntime') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
