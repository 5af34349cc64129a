"""Where tf2onnx's optimisers break a graph that is right, the conversion goes on without the pass that does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import padfix
from padfix.errors import NotEquivalent
from padfix.proof.executors import OnnxRuntimeExecutor
from padfix.sources import graph_optimizers

pytestmark = pytest.mark.tensorflow

SIDE, WIDTH = 4, 8


def attention() -> Any:
    """Return SegFormer's attention with one head, keys and values from fewer positions, for an open batch."""
    keras = pytest.importorskip("keras")
    ops, layers = keras.ops, keras.layers

    class Attention(layers.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value = (layers.Dense(WIDTH) for _ in range(3))
            self.project = layers.Dense(WIDTH)
            self.reduce, self.norm = layers.Conv2D(WIDTH, 2, 2), layers.LayerNormalization()

        def heads(self, x: Any, batch: Any) -> Any:
            return ops.transpose(ops.reshape(x, [batch, -1, 1, WIDTH]), [0, 2, 1, 3])

        def call(self, x: Any) -> Any:
            batch, count, width = ops.shape(x)
            query = self.heads(self.query(x), batch)
            image = ops.reshape(ops.transpose(x, [0, 2, 1]), (batch, SIDE, SIDE, width))
            fewer = ops.reshape(self.reduce(image), [batch, width, -1])
            fewer = self.norm(ops.transpose(fewer, [0, 2, 1]))
            key, value = self.heads(self.key(fewer), batch), self.heads(self.value(fewer), batch)
            weights = ops.nn.softmax(query @ ops.transpose(key, [0, 1, 3, 2]) * 0.3, axis=-1)
            return self.project(ops.reshape(ops.transpose(weights @ value, [0, 2, 1, 3]), [batch, count, width]))

    keras.utils.set_random_seed(1)
    inputs = keras.Input((SIDE * SIDE, WIDTH))
    return keras.Model(inputs, Attention()(layers.LayerNormalization()(inputs)))


def test_segformers_attention_with_an_open_batch(tf: Any, tmp_path: Path) -> None:
    model = attention()
    model.export(str(tmp_path / "m"), verbose=False)
    report = padfix.convert(tmp_path / "m", tmp_path / "m.onnx")
    assert report.verdict is not None and report.verdict.equivalent
    result = OnnxRuntimeExecutor((tmp_path / "m.onnx").read_bytes(), optimised=True)
    for batch in (1, 3):
        data = np.random.default_rng(batch).standard_normal((batch, SIDE * SIDE, WIDTH)).astype("f")
        (found,) = result.run({result.inputs[0].name: data}).values()
        np.testing.assert_allclose(found, model(data).numpy(), rtol=1e-4, atol=1e-5)


def broken(passes: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the passes, ``name`` made to turn every Relu into an Abs."""
    if name not in passes:
        return passes

    class Breaking(passes[name]):  # type: ignore[misc, name-defined]
        def optimize(self, graph: Any, iteration: int) -> Any:
            for node in graph.get_nodes():
                node.type = {"Relu": "Abs"}.get(node.type, node.type)
            return super().optimize(graph, iteration)

    return {**passes, name: Breaking}


def saved(tf: Any, folder: Path) -> Path:
    module = tf.Module()
    module.f = tf.function(lambda x: {"y": tf.nn.relu(x)}, autograph=False)
    tf.saved_model.save(module, str(folder), signatures=module.f.get_concrete_function(tf.TensorSpec([3], name="x")))
    return folder


def test_the_note_names_whichever_pass_it_is(tf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = graph_optimizers.optimizers
    monkeypatch.setattr(graph_optimizers, "optimizers", lambda without=(): broken(whole(without), "einsum_optimizer"))
    report = padfix.convert(saved(tf, tmp_path / "m"), tmp_path / "m.onnx")
    assert [note for note in report.notes if "einsum_optimizer was left out" in note]
    assert report.verdict is not None
    assert report.verdict.equivalent


def test_what_is_wrong_without_any_pass_is_refused(tf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from padfix.sources.tf_ops import arithmetic

    monkeypatch.setitem(arithmetic._UNARY, "Log1p", lambda x: x)
    module = tf.Module()
    module.f = tf.function(lambda x: {"y": tf.math.log1p(tf.abs(x))}, autograph=False)
    concrete = module.f.get_concrete_function(tf.TensorSpec([3], name="x"))
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=concrete)
    with pytest.raises(NotEquivalent) as caught:
        padfix.convert(tmp_path / "m", tmp_path / "m.onnx")
    assert not any("left out" in note for note in caught.value.report.notes)  # type: ignore[attr-defined]
    assert not (tmp_path / "m.onnx").exists()
