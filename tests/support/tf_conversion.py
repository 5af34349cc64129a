"""Converts a TensorFlow function and holds the ONNX model against it, output by output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import ModelProto

from padfix.proof.executors import OnnxRuntimeExecutor
from padfix.sources import Source, SourceOptions

TOLERANCE = 1e-5
"""Of the output's range: a tenth of what the proof allows."""


def noise(shape: Any, dtype: str, seed: int = 0) -> np.ndarray[Any, Any]:
    values = np.random.default_rng(seed).standard_normal(shape)
    if np.dtype(dtype).kind in "iu":
        values = np.clip(values * 60, np.iinfo(dtype).min, np.iinfo(dtype).max)
    return values.astype(dtype)


def assert_same_numbers(
    tf: Any, function: Callable[..., Any], feeds: list[dict[str, Any]], free: bool, tolerance: float = TOLERANCE
) -> ModelProto:
    """Convert ``function`` and compare it with TensorFlow at both optimisation levels; return the model.

    Args:
        tf: TensorFlow.
        function: Takes tensors by the names in ``feeds`` and returns a dict of results.
        feeds: Inputs of one run each; the first gives types and shapes.
        free: Leave every axis but the channels of inputs with channels open.
        tolerance: Largest difference of floats, as a part of the output's range.
    """
    source = convert(tf, function, feeds[0], free)
    assert source.executor is not None
    original = source.executor()
    for optimised in (False, True):
        candidate = OnnxRuntimeExecutor(source.model.proto.SerializeToString(), optimised=optimised)
        for feed in feeds:
            wanted, found = original.run(feed), candidate.run(feed)
            assert list(found) == list(wanted)
            for name in wanted:
                _assert_same(np.asarray(found[name]), wanted[name], tolerance)
    return source.model.proto


def convert(tf: Any, function: Callable[..., Any], feed: dict[str, Any], free: bool) -> Source:
    """Return ``function`` of inputs like ``feed`` as an opened source."""
    from padfix.sources.saved_model import finish, freeze_function

    specs = {
        name: tf.TensorSpec(
            [None] * (value.ndim - 1) + [value.shape[-1]] if free and value.ndim >= 3 else value.shape,
            value.dtype,
            name,
        )
        for name, value in feed.items()
    }
    concrete = tf.function(function, autograph=False).get_concrete_function(**specs)
    return finish(tf, "saved_model", freeze_function(tf, lambda: (None, concrete)), SourceOptions(), "m", [])


def _assert_same(found: Any, wanted: Any, tolerance: float) -> None:
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    if not wanted.size:
        return
    if wanted.dtype.kind == "O":
        assert [str(text) for text in found.ravel()] == [text.decode() for text in wanted.ravel()]
    elif wanted.dtype.kind in "iubV":  # bfloat16 is a V, and what is tested in it has one exact result
        np.testing.assert_array_equal(found, wanted)
    else:
        spread = float(wanted.max() - wanted.min()) or float(np.abs(wanted).max()) or 1.0
        np.testing.assert_allclose(found / spread, wanted / spread, rtol=0, atol=tolerance)
