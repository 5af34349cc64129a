"""Lookups in tables come out with TensorFlow's values, whatever types the table has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import padfix
from padfix.errors import UnsupportedError

pytestmark = pytest.mark.tensorflow

KEYS = {"int64": [7, 1, -5], "int32": [7, 1, -5], "string": ["b", "ä", ""]}
VALUES: dict[str, Any] = {
    "int64": [2**60 + 1, -1, 0],
    "int32": [5, 2, -9],
    "float32": [0.1, -2.5, 3.0],
    "float64": [0.1, -2.5, 1e300],
    "string": ["ö", "", "two words"],
    "bool": [True, False, True],
}
PAIRS = [(keys, each) for keys in ("int64", "string") for each in VALUES if (keys, each) != ("int64", "bool")] + [
    ("int32", "int32")
]


def lookup(tf: Any, folder: Path, keys: str, values: str, default: Any = None) -> str:
    """Save a module that looks up ``k``; where there is no default, it is the input ``d``."""
    module = tf.Module()
    filled = tf.lookup.KeyValueTensorInitializer(tf.constant(KEYS[keys], keys), tf.constant(VALUES[values], values))
    module.table = tf.lookup.StaticHashTable(filled, tf.constant(VALUES[values][1], values))
    handle = module.table.resource_handle

    def found(k: Any, d: Any) -> dict[str, Any]:
        return {"y": tf.raw_ops.LookupTableFindV2(table_handle=handle, keys=k, default_value=d)}

    asked = tf.TensorSpec([None, 2], keys, "k")
    if default is None:
        module.call = tf.function(found, input_signature=[asked, tf.TensorSpec([], values, "d")])
    else:
        module.call = tf.function(lambda k: found(k, tf.constant(default, values)), input_signature=[asked])
    tf.saved_model.save(module, str(folder), signatures={"serving_default": module.call})
    return str(folder)


def run(path: Path, feeds: dict[str, Any]) -> Any:
    import onnxruntime

    return onnxruntime.InferenceSession(path.read_bytes()).run(None, feeds)[0]


@pytest.mark.sweep(10)
@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize(("keys", "values"), PAIRS)
def test_every_pair_of_types(tf: Any, tmp_path: Path, keys: str, values: str, computed: bool) -> None:
    default = VALUES[values][2]
    source = lookup(tf, tmp_path / "m", keys, values, None if computed else default)
    assert padfix.convert(source, tmp_path / "m.onnx").verdict.equivalent
    kind, wanted = (object if each == "string" else each for each in (keys, values))
    asked = [[KEYS[keys][1], KEYS[keys][0]], [KEYS[keys][2], "none" if keys == "string" else 4]]
    feeds = {"k": np.array(asked, kind)} | ({"d": np.array(default, wanted)} if computed else {})
    result = run(tmp_path / "m.onnx", feeds)
    assert result.tolist() == np.array([[VALUES[values][1], VALUES[values][0]], [default, default]], wanted).tolist()
    assert run(tmp_path / "m.onnx", feeds | {"k": feeds["k"][:0]}).shape == (0, 2)


def test_a_lookup_inside_a_branch_is_refused_by_name(tf: Any, tmp_path: Path) -> None:
    module = tf.Module()
    filled = tf.lookup.KeyValueTensorInitializer(tf.constant([0, 1, 2], tf.int64), tf.constant([1, 2, 0], tf.int64))
    module.table = tf.lookup.StaticHashTable(filled, -1)

    def call(k: Any) -> dict[str, Any]:
        return {"y": tf.cond(tf.reduce_sum(k) > 2, lambda: module.table.lookup(k), lambda: k)}

    module.call = tf.function(call, input_signature=[tf.TensorSpec([3], tf.int64, "k")])
    tf.saved_model.save(module, str(tmp_path / "m"), signatures={"serving_default": module.call})
    with pytest.raises(UnsupportedError, match="asks a table from inside a loop or branch"):
        padfix.convert(str(tmp_path / "m"), tmp_path / "m.onnx")
