"""What a TensorFlow Lite file says of its inputs and outputs is said by the ONNX file too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from padfix.sources import open_source
from tests.support.lite_files import changed, lite, made

pytestmark = pytest.mark.tensorflow


def written() -> bytes:
    """Return the metadata of a model with an image and a score, as metadata_schema.fbs has them."""
    import flatbuffers

    builder = flatbuffers.Builder(0)

    def table(size: int, offsets: Mapping[int, int], kinds: Mapping[int, int] | None = None) -> int:
        builder.StartObject(size)
        for slot, kind in (kinds or {}).items():
            builder.PrependUint8Slot(slot, kind, 0)
        for slot, offset in offsets.items():
            builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
        return int(builder.EndObject())

    def vector(offsets: list[int]) -> int:
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        return int(builder.EndVector())

    def floats(*numbers: float) -> int:
        return int(builder.CreateNumpyVector(np.float32(numbers)))

    text = builder.CreateString
    normalisation = table(2, {0: floats(127.5), 1: floats(127.5)})
    unit = table(2, {1: normalisation}, {0: 1})
    content = table(3, {1: table(2, {}, {0: 1})}, {0: 2})
    stats = table(2, {0: floats(1), 1: floats(-1)})
    units = vector([unit])
    image = table(7, {0: text("image"), 1: text("What is seen."), 3: content, 4: units, 5: stats})
    labels = table(4, {0: text("labels.txt")})
    score = table(7, {0: text("score"), 6: vector([labels])})
    graph = table(10, {2: vector([image]), 3: vector([score])})
    root = table(8, {0: text("Seer"), 1: text("Sees things"), 3: vector([graph])})
    builder.Finish(root, b"M001")
    return bytes(builder.Output())


def described(tf: Any, path: Path, content: bytes) -> Any:
    """Return the converted graph of a file with this metadata."""
    lite(tf, path, lambda x: {"y": tf.reduce_mean(x, [1, 2])}, tf.TensorSpec([1, 4, 5, 3], tf.float32, "x"))

    def describe(schema: Any, model: Any) -> None:
        model.buffers.append(made(schema.BufferT, data=np.frombuffer(content, np.uint8)))
        model.metadata = [made(schema.MetadataT, name=b"TFLITE_METADATA", buffer=len(model.buffers) - 1)]

    return open_source(changed(path, describe)).model.proto


def test_words_and_numbers_are_handed_on(tf: Any, tmp_path: Path) -> None:
    proto = described(tf, tmp_path / "m.tflite", written())
    entries = {entry.key: entry.value for entry in proto.metadata_props}
    assert entries["tflite.name"] == "Seer"
    assert entries["tflite.description"] == "Sees things"
    (x,), (y,) = proto.graph.input, proto.graph.output
    assert json.loads(entries[f"tflite.input.{x.name}"]) == {
        "name": "image",
        "description": "What is seen.",
        "content": "image",
        "colours": "RGB",
        "mean": [127.5],
        "std": [127.5],
        "max": [1.0],
        "min": [-1.0],
    }
    assert json.loads(entries[f"tflite.output.{y.name}"]) == {"name": "score", "files": ["labels.txt"]}
    assert x.doc_string == "image: What is seen; RGB image; normalised as (x - 127.5) / 127.5; from -1 to 1."
    assert y.doc_string == "score."


@pytest.mark.parametrize("keep", [0, 7, 60, 200])
def test_damaged_words_cost_nothing(tf: Any, keep: int, tmp_path: Path) -> None:
    content = written()
    proto = described(tf, tmp_path / "m.tflite", content[:keep] + b"\xff" * (len(content) - keep))
    assert proto.graph.node
