"""Sparse weights of TensorFlow Lite files give the numbers that TensorFlow's interpreter makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.lite_files import changed, lite, made, prove, weights

pytestmark = pytest.mark.tensorflow


def thinned(*shape: int) -> Any:
    """Return weights of which three in four are zero, by blocks of four along the first axis."""
    values = weights(*shape)
    kept = np.random.default_rng(1).random((shape[0] // 4, *shape[1:])) < 0.25
    return values * np.repeat(kept, 4, axis=0)


def is_sparse(path: Path) -> bool:
    from tensorflow.lite.python import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(bytearray(path.read_bytes()), 0)
    return any(tensor.sparsity is not None for tensor in model.subgraphs[0].tensors)


@pytest.mark.parametrize("half", [False, True], ids=["float32", "float16"])
def test_blocks(tf: Any, half: bool, tmp_path: Path) -> None:
    sparse, small = tf.lite.Optimize.EXPERIMENTAL_SPARSITY, tf.lite.Optimize.DEFAULT
    settings: dict[str, Any] = {"optimizations": [sparse, small] if half else [sparse]}
    if half:
        settings["target_spec"] = tf.lite.TargetSpec(supported_types=[tf.float16])
    kernels, matrix = thinned(64, 32).T.reshape(1, 1, 32, 64), thinned(16, 64).T
    path = lite(
        *(tf, tmp_path / "m.tflite"),
        lambda x: tf.matmul(tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(x, kernels, 1, "SAME")), [1, 2]), matrix),
        tf.TensorSpec([1, 5, 6, 32], tf.float32, "x"),
        **settings,
    )
    assert is_sparse(path)
    prove(path, tmp_path)


def test_rows(tf: Any, tmp_path: Path) -> None:
    """Three dense axes and a compressed one, as in MediaPipe's files."""
    kernels = thinned(8, 3, 2, 5)
    path = lite(
        *(tf, tmp_path / "m.tflite"),
        lambda x: tf.nn.conv2d(x, kernels.transpose(1, 2, 3, 0), 2, "SAME"),
        tf.TensorSpec([1, 9, 8, 5], tf.float32, "x"),
    )

    def compress(schema: Any, model: Any) -> None:
        graph = model.subgraphs[0]
        index = next(number for number, tensor in enumerate(graph.tensors) if list(tensor.shape) == [8, 3, 2, 5])
        rows = kernels.reshape(-1, 5)
        segments = np.concatenate([[0], np.cumsum((rows != 0).sum(1))])
        axes = [made(schema.DimensionMetadataT, format=0, denseSize=size) for size in (8, 3, 2)]
        last = made(schema.DimensionMetadataT, format=1, arraySegmentsType=2, arrayIndicesType=3)
        last.arraySegments = made(schema.Uint16VectorT, values=segments.astype(np.uint16))
        last.arrayIndices = made(schema.Uint8VectorT, values=np.nonzero(rows)[1].astype(np.uint8))
        model.buffers.append(made(schema.BufferT, data=np.frombuffer(rows[rows != 0].tobytes(), np.uint8)))
        sparsity = made(schema.SparsityParametersT, traversalOrder=[0, 1, 2, 3], dimMetadata=[*axes, last])
        graph.tensors.append(
            made(
                *(schema.TensorT,),
                shape=[8, 3, 2, 5],
                type=0,
                name=b"thin",
                sparsity=sparsity,
                buffer=len(model.buffers) - 1,
            )
        )
        model.operatorCodes.append(made(schema.OperatorCodeT, deprecatedBuiltinCode=124, builtinCode=124, version=1))
        densify = made(schema.OperatorT, opcodeIndex=len(model.operatorCodes) - 1)
        densify.inputs, densify.outputs = [len(graph.tensors) - 1], [index]
        graph.tensors[index].buffer = 0
        graph.operators = [densify, *graph.operators]

    prove(changed(path, compress), tmp_path)
