"""What two stretches of graphs say differently: operators, attributes and weights, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, NodeProto

from padfix.files.model import Model
from padfix.proof.constants import Constants
from padfix.proof.executors import Array


def differences(
    first: Model, second: Model, before: Sequence[NodeProto], after: Sequence[NodeProto]
) -> tuple[str, ...]:
    """Return a sentence for each thing that the nodes ``after`` of ``second`` say differently than ``before``.

    Nodes are paired by operator, in order. No sentence says whether a difference matters: ``auto_pad`` and the pads
    that it means are two spellings of one thing.
    """
    old, new = Counter(node.op_type for node in before), Counter(node.op_type for node in after)
    sentences = [f"{_listed(gone)} only in the original." for gone in [old - new] if gone]
    sentences += [f"{_listed(come)} only in the result." for come in [new - old] if come]
    weights = Constants(first), Constants(second)
    rest = list(after)
    for node in before:
        twin = next((other for other in rest if other.op_type == node.op_type), None)
        if twin is not None:
            rest.remove(twin)
            if node.output != twin.output and sorted(node.output) == sorted(twin.output):
                sentences.append(f"{node.op_type}: its outputs stand in another order.")
            sentences += _attributes(node, twin)
            sentences += _weights(node, twin, *weights)
    return tuple(sentences)


def _listed(counted: Mapping[str, int]) -> str:
    return ", ".join(name if count == 1 else f"{count} x {name}" for name, count in sorted(counted.items()))


def _attributes(node: NodeProto, twin: NodeProto) -> list[str]:
    old, new = _values(node), _values(twin)
    moved = [f"{node.op_type}: the padding lies on the other side."] if _other_side(old, new) else []
    return moved + [
        f"{node.op_type}: {name} is {_text(new.get(name))}, was {_text(old.get(name))}."
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    ]


def _other_side(old: Mapping[str, object], new: Mapping[str, object]) -> bool:
    """Whether the same pads lie on the other side of some axis, where ``old`` has them as ``auto_pad`` or ``pads``."""
    pads = new.get("pads")
    if not isinstance(pads, list) or not pads:
        return False
    half = len(pads) // 2
    begins, ends = pads[:half], pads[half:]
    before = old.get("pads")
    match old.get("auto_pad"):
        case b"SAME_UPPER":
            return any(begin > end for begin, end in zip(begins, ends, strict=True))
        case b"SAME_LOWER":
            return any(begin < end for begin, end in zip(begins, ends, strict=True))
    if not isinstance(before, list) or len(before) != len(pads) or before == pads:
        return False
    sums = [begin + end for begin, end in zip(begins, ends, strict=True)]
    return sums == [begin + end for begin, end in zip(before[:half], before[half:], strict=True)]


def _values(node: NodeProto) -> dict[str, object]:
    found: dict[str, object] = {}
    for attribute in node.attribute:
        if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
            found[attribute.name] = _Body(attribute.SerializeToString(deterministic=True))
        elif attribute.type in (AttributeProto.TENSOR, AttributeProto.SPARSE_TENSOR):
            found[attribute.name] = _Tensor(attribute.SerializeToString(deterministic=True))
        elif attribute.ref_attr_name:
            found[attribute.name] = f"that of {attribute.ref_attr_name}"
        else:
            value = onnx.helper.get_attribute_value(attribute)
            found[attribute.name] = (
                list(value) if isinstance(value, Sequence) and not isinstance(value, bytes) else value
            )
    return found


class _Opaque(bytes):
    """A value that can be compared and is too long to be shown."""

    words = ""


class _Body(_Opaque):
    words = "another graph"


class _Tensor(_Opaque):
    words = "another tensor"


def _text(value: object) -> str:
    if value is None:
        return "not given"
    if isinstance(value, _Opaque):
        return value.words
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return f"{value:g}" if isinstance(value, float) else str(value)


def _weights(node: NodeProto, twin: NodeProto, first: Constants, second: Constants) -> list[str]:
    sentences = []
    for position in range(max(len(node.input), len(twin.input))):
        old_name = node.input[position] if position < len(node.input) else ""
        new_name = twin.input[position] if position < len(twin.input) else ""
        old, new = first.find(old_name), second.find(new_name)
        if old is None or new is None:
            continue
        words = _weight(old, new)
        if words:
            sentences.append(f"{node.op_type}: input {position} ({old_name}) {words}.")
    return sentences


def _weight(old: Array, new: Array) -> str:
    if old.dtype != new.dtype:
        return f"is {new.dtype}, was {old.dtype}"
    if old.shape != new.shape:
        return f"has shape {list(new.shape)}, had {list(old.shape)}"
    different = old != new
    count = int(np.count_nonzero(different & ~((old != old) & (new != new))))
    if not count:
        return ""
    if old.size <= 16:
        return f"is {_numbers(new)}, was {_numbers(old)}"
    where = [int(index) for index in np.argwhere(different)[0]]
    if np.array_equal(new[different], -old[different]) and new.dtype.kind in "fi":
        return f"has the other sign at {count} of {old.size} values, the first at {where}"
    for axis in range(old.ndim - 1):
        if old.shape[axis] == old.shape[axis + 1] and np.array_equal(np.swapaxes(old, axis, axis + 1), new):
            return f"is transposed: axes {axis} and {axis + 1} are swapped"
    for axes in ((old.ndim - 1,), (old.ndim - 2,), (old.ndim - 2, old.ndim - 1)):
        if old.ndim > 2 and np.array_equal(np.flip(old, axes), new):
            return f"is reversed along axis {' and '.join(map(str, axes))}"
    return f"differs at {count} of {old.size} values, the first at {where}"


def _numbers(array: Array) -> Any:
    return array.tolist()
