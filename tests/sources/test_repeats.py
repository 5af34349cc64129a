"""Repeated rows and columns are one Resize; what only looks like them stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.tf_conversion import assert_same_numbers, noise

pytestmark = pytest.mark.tensorflow

Repeat = Callable[[Any, Any], Any]
REPEATED: dict[str, Repeat] = {
    "rows": lambda tf, x: tf.repeat(x, 2, axis=1),
    "columns": lambda tf, x: tf.repeat(x, 3, axis=-2),
    "both": lambda tf, x: tf.repeat(tf.repeat(x, 2, axis=1), 3, axis=2),
    "both, one of them once": lambda tf, x: tf.repeat(tf.repeat(x, 2, axis=1), 1, axis=2),
    "rows, twice": lambda tf, x: tf.repeat(tf.repeat(x, 2, axis=1), 3, axis=1),
}
OTHERWISE: dict[str, Repeat] = {
    "channels": lambda tf, x: tf.repeat(x, 2, axis=3),
    "images": lambda tf, x: tf.repeat(x, 2, axis=0),
    "in turn": lambda tf, x: tf.tile(x, [1, 2, 1, 1]),
    "in an axis behind the next": lambda tf, x: tf.reshape(
        tf.tile(tf.expand_dims(x, 3), [1, 1, 1, 2, 1]), tf.concat([tf.shape(x)[:1], [-1], tf.shape(x)[2:]], 0)
    ),
    "turned": lambda tf, x: tf.reshape(
        tf.tile(tf.expand_dims(x, 2), [1, 1, 2, 1, 1]),
        tf.concat([tf.shape(x)[:1], 2 * tf.shape(x)[2:3], [tf.shape(x)[1], tf.shape(x)[3]]], 0),
    ),
}
IMAGES = [{"x": noise((2, 5, 4, 3), "float32")}]


@pytest.mark.parametrize("free", [False, True], ids=["fixed", "open"])
@pytest.mark.parametrize("case", REPEATED)
def test_repeated_rows_and_columns_are_one_resize(tf: Any, case: str, free: bool) -> None:
    feeds = IMAGES + ([{"x": noise((1, 3, 7, 3), "float32")}] if free else [])
    model = assert_same_numbers(tf, lambda x: {"y": REPEATED[case](tf, x)}, feeds, free)
    assert [node.op_type for node in model.graph.node] == ["Transpose", "Resize", "Transpose"]


@pytest.mark.parametrize("free", [False, True], ids=["fixed", "open"])
def test_a_repeated_line_is_a_resize(tf: Any, free: bool) -> None:
    model = assert_same_numbers(
        tf, lambda x: {"y": tf.repeat(x, 3, axis=1)}, [{"x": noise((2, 5, 3), "float32")}], free
    )
    assert [node.op_type for node in model.graph.node if node.op_type in ("Resize", "Tile", "Reshape")] == ["Resize"]


@pytest.mark.parametrize("free", [False, True], ids=["fixed", "open"])
def test_what_is_repeated_once_is_what_it_was(tf: Any, free: bool) -> None:
    model = assert_same_numbers(tf, lambda x: {"y": tf.nn.relu(tf.repeat(x, 1, axis=1))}, IMAGES, free)
    assert [node.op_type for node in model.graph.node] == ["Relu"]


@pytest.mark.parametrize("dtype", ["int64", "float16", "uint8"])
def test_other_types_are_repeated(tf: Any, dtype: str) -> None:
    assert_same_numbers(tf, lambda x: {"y": tf.repeat(x, 2, axis=1)}, [{"x": noise((2, 5, 4, 3), dtype)}], True)


def test_what_lies_between_is_kept_for_others(tf: Any) -> None:
    def both(x: Any) -> dict[str, Any]:
        rows = tf.repeat(x, 2, axis=1)
        return {"rows": rows + 1, "both": tf.repeat(rows, 2, axis=2)}

    assert_same_numbers(tf, both, IMAGES, True)


@pytest.mark.parametrize("free", [False, True], ids=["fixed", "open"])
@pytest.mark.parametrize("case", OTHERWISE)
def test_what_only_looks_like_it_stays(tf: Any, case: str, free: bool) -> None:
    model = assert_same_numbers(tf, lambda x: {"y": OTHERWISE[case](tf, x)}, IMAGES, free)
    assert "Resize" not in {node.op_type for node in model.graph.node}
