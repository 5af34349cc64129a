"""Fields that a newer ONNX added are kept byte for byte, wherever they stand; they make no file less of a model."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import padfix
from padfix.errors import SourceError
from padfix.files import detection
from padfix.files.stores import access
from padfix.files.wire_format import FileBytes, length_header, varint

NUMBER = 1000


def unknown(text: bytes) -> bytes:
    """Return fields that no ONNX has yet, of each wire type."""
    return length_header(NUMBER, len(text)) + text + varint((NUMBER + 1) << 3) + varint(7)


def newer_model() -> tuple[ModelProto, list[bytes]]:
    """Return a model with something to rewrite and unknown fields in every kind of message, and those fields."""
    weight = numpy_helper.from_array(np.linspace(-1, 1, 3 * 8 * 5 * 5, dtype=np.float32).reshape(8, 3, 5, 5), "w")
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], name="conv", auto_pad="SAME_UPPER", strides=[2, 2]),
            helper.make_node("LeakyRelu", ["c"], ["y"], name="relu", alpha=0.25),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 8, 8])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    messages = {
        b"of the model": model,
        b"of the operator set": model.opset_import[0],
        b"of the graph": model.graph,
        b"of the input": model.graph.input[0],
        b"of the weight": model.graph.initializer[0],
        b"of the node that is replaced": model.graph.node[0],
        b"of the node that stays": model.graph.node[1],
        b"of the attribute": model.graph.node[1].attribute[0],
    }
    fields = []
    for text, message in messages.items():
        message.MergeFromString(unknown(text))
        fields.append(unknown(text))
    return model, fields


def test_unknown_fields_survive_a_conversion(tmp_path: Path) -> None:
    model, fields = newer_model()
    source = tmp_path / "newer.onnx"
    source.write_bytes(model.SerializeToString())
    assert detection.detect(source) == "onnx"
    assert {finding.rule for finding in padfix.check(source).findings} == {"PF101"}
    report = padfix.convert(source, tmp_path / "out.onnx")
    assert report.verdict is not None and report.verdict.equivalent
    written = (tmp_path / "out.onnx").read_bytes()
    assert [field for field in fields if written.count(field) != 1] == []
    after = onnx.load(tmp_path / "out.onnx")
    # What is not rewritten is the same to the byte, in the same message.
    assert after.graph.node[-1].SerializeToString() == model.graph.node[1].SerializeToString()
    assert after.graph.initializer[0].SerializeToString() == model.graph.initializer[0].SerializeToString()


def test_a_newer_model_without_anything_to_do_is_the_same_file(tmp_path: Path) -> None:
    model, _ = newer_model()
    del model.graph.node[0].attribute[:]
    source = tmp_path / "newer.onnx"
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    source.write_bytes(model.SerializeToString())
    padfix.convert(source, tmp_path / "out.onnx")
    assert (tmp_path / "out.onnx").read_bytes() == source.read_bytes()


def test_a_file_that_shrinks_while_it_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Shrinking(FileBytes):
        def __init__(self, descriptor: int) -> None:
            super().__init__(descriptor)
            os.truncate(source, 40)

    model, _ = newer_model()
    source = tmp_path / "model.onnx"
    source.write_bytes(model.SerializeToString())
    monkeypatch.setattr(access, "FileBytes", Shrinking)
    with pytest.raises(SourceError):
        detection.detect(source)
