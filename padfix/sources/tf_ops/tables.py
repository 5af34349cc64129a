"""Lookups in hash tables whose contents are known.

tf2onnx knows tables from text to int64 and back, with a default that is a constant, and none inside a loop or branch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from padfix.sources.tf_ops.tensor import FLOAT, INTEGER, TEXT, Array, Builder, Tensor, concatenated

OPERATORS = ("LookupTableFind", "LookupTableFindV2", "LookupTableSize", "LookupTableSizeV2")

Contents = Mapping[bytes, tuple[Array, Array]]
"""Keys and values by shared name."""

_HANDLES = ("HashTable", "HashTableV2")
_SAID = {INTEGER: "int64", FLOAT: "float", TEXT: "string"}
"""How LabelEncoder's attributes call the types that it takes."""


def convert(builder: Builder, node: Any, contents: Contents) -> Tensor:
    """Return the values at the keys, or how many keys there are.

    Raises:
        ValueError: What the table holds is not known.
    """
    keys, values = contents[_shared_name(builder, node, contents)]
    if node.type.startswith("LookupTableSize"):
        return builder.integers(len(keys))
    asked, default = (builder.read(name) for name in node.input[1:])
    if values.ndim == 1:  # TensorFlow does not say so of tables that it restores
        builder.ctx.set_shape(node.output[0], builder.ctx.get_shape(asked.name))
    if values.ndim == 1 and values.dtype in _SAID and default.array is not None:
        return _looked_up(asked, keys, values, default.array.reshape(-1)[0])
    # Any type and any default: the place of each key, and the one behind the last for what is no key.
    places = _looked_up(asked, keys, np.arange(len(keys)), len(keys))
    rows = [builder.constant(values, default.dtype), default.unsqueeze([0])]
    return concatenated(rows).take(places)


def _shared_name(builder: Builder, node: Any, contents: Contents) -> bytes:
    table = node.inputs[0]
    while table is not None and table.type == "Identity":
        table = table.inputs[0]
    name = table.get_attr_value("shared_name") if table is not None and table.type in _HANDLES else None
    if not isinstance(name, bytes) or name not in contents:
        raise ValueError(f"{node.name} asks a table from inside a loop or branch, where what it holds is not known")
    return name


def _looked_up(asked: Tensor, keys: Array, values: Array, default: Any) -> Tensor:
    through = TEXT if keys.dtype == TEXT else INTEGER
    to = _SAID[values.dtype]
    attributes = {
        f"keys_{_SAID[through]}s": keys.tolist(),
        f"values_{to}s": values.tolist(),
        f"default_{to}": np.asarray(default, values.dtype).item(),
    }
    return asked.builder.node("LabelEncoder", [asked.cast(through)], values.dtype, attributes, domain="ai.onnx.ml")
