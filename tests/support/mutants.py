"""Small damages done to converted models, each at a known node, as a careless converter would do them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

WINDOWED = ("Conv", "ConvTranspose", "QLinearConv", "MaxPool", "AveragePool", "LpPool")
WEIGHTED = ("Conv", "ConvTranspose", "QLinearConv", "MatMul", "Gemm", "QLinearMatMul")


@dataclass(frozen=True)
class Mutant:
    """A damaged model.

    Attributes:
        kind: What was done.
        nodes: The nodes that a report may rightly name: the damaged one, and those that were put in or lost theirs.
        model: The damaged model.
    """

    kind: str
    nodes: frozenset[str]
    model: ModelProto


def mutants(model: ModelProto) -> Iterator[Mutant]:
    """Yield every damage of every kind that can be done to a node of the main graph; nodes must have names."""
    for index in range(len(model.graph.node)):
        for kind, damage in DAMAGES.items():
            copy = ModelProto()
            copy.CopyFrom(model)
            nodes = damage(copy, copy.graph.node[index])
            if nodes:
                yield Mutant(kind, frozenset(nodes), copy)


def named(model: ModelProto) -> ModelProto:
    """Return the model with a name for every node."""
    for index, node in enumerate(model.graph.node):
        node.name = node.name or f"node_{index}"
    return model


def pad_moved(model: ModelProto, node: NodeProto) -> list[str]:
    """The padding, or one element of it, moves to the other side."""
    pads = _pads(node)
    if node.op_type == "Pad":
        constant = _constant(model, node, 1)
        if constant is None or not constant.any():
            return []
        half = len(constant) // 2
        moved = np.concatenate([constant[half:], constant[:half]])
        if np.array_equal(moved, constant):
            end = half + int(np.flatnonzero(constant[half:])[0])
            moved[end - half] += 1
            moved[end] -= 1
        _replace(model, node, 1, moved)
        return [node.name]
    if node.op_type not in WINDOWED or pads is None or not any(pads):
        return []
    half = len(pads) // 2
    moved_pads = [*pads[half:], *pads[:half]]
    if moved_pads == list(pads):
        axis = next(axis for axis in range(half) if pads[axis] > 0)
        moved_pads[axis] -= 1
        moved_pads[axis + half] += 1
    _set_pads(node, moved_pads)
    return [node.name]


def nearest_mode_changed(model: ModelProto, node: NodeProto) -> list[str]:
    """The rounding of a nearest resize changes."""
    values = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    if node.op_type != "Resize" or values.get("mode", b"nearest") != b"nearest":
        return []
    other = "floor" if values.get("nearest_mode") == b"ceil" else "ceil"
    for attribute in list(node.attribute):
        if attribute.name == "nearest_mode":
            node.attribute.remove(attribute)
    node.attribute.append(helper.make_attribute("nearest_mode", other))
    return [node.name]


def coordinates_changed(model: ModelProto, node: NodeProto) -> list[str]:
    """A resize takes its positions from other corners."""
    values = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    if node.op_type != "Resize" or _opset(model) < 11:
        return []
    old = values.get("coordinate_transformation_mode", b"half_pixel")
    if old == b"tf_crop_and_resize":
        return []
    for attribute in list(node.attribute):
        if attribute.name == "coordinate_transformation_mode":
            node.attribute.remove(attribute)
    other = "half_pixel" if old == b"asymmetric" else "asymmetric"
    node.attribute.append(helper.make_attribute("coordinate_transformation_mode", other))
    return [node.name]


def weight_sign(model: ModelProto, node: NodeProto) -> list[str]:
    """The largest weight has the other sign."""
    return _sign(model, node, lambda size: int(size.argmax()))


def small_weight_sign(model: ModelProto, node: NodeProto) -> list[str]:
    """The smallest weight that is not lost in the rounding of a sum with the largest has the other sign."""
    return _sign(model, node, lambda size: int(np.where(size > size.max() * 2**-16, size, np.inf).argmin()))


def _sign(model: ModelProto, node: NodeProto, choose: Callable[[np.ndarray], int]) -> list[str]:
    place = _weight_place(model, node) if node.op_type in WEIGHTED else None
    weight = _constant(model, *place) if place is not None else None
    if place is None or weight is None or weight.ndim < 2 or not weight.any():
        return []
    index = choose(np.abs(weight.astype(np.float64)).reshape(-1))
    weight.reshape(-1)[index] *= -1
    _replace(model, *place, weight)
    return [node.name, place[0].name]


def transposed_kernel(model: ModelProto, node: NodeProto) -> list[str]:
    """Rows and columns of the kernel are swapped."""
    place = _weight_place(model, node) if node.op_type in WEIGHTED[:3] else None
    weight = _constant(model, *place) if place is not None else None
    if place is None or weight is None or weight.ndim != 4 or weight.shape[2] != weight.shape[3]:
        return []
    other = weight.transpose(0, 1, 3, 2)
    if np.allclose(other, weight):
        return []
    _replace(model, *place, other)
    return [node.name, place[0].name]


def wrong_fill(model: ModelProto, node: NodeProto) -> list[str]:
    """A Pad fills with another value."""
    amounts = _constant(model, node, 1) if node.op_type == "Pad" else None
    mode = next((attribute.s for attribute in node.attribute if attribute.name == "mode"), b"constant")
    if amounts is None or not amounts.any() or mode != b"constant":
        return []
    value = _constant(model, node, 2) if len(node.input) > 2 and node.input[2] else np.zeros((), np.float32)
    if value is None:
        return []
    other = np.asarray(1.0 if np.all(value == 0) else 0.0, value.dtype)
    while len(node.input) < 3:
        node.input.append("")
    _replace(model, node, 2, other)
    return [node.name]


def dropped_pad(model: ModelProto, node: NodeProto) -> list[str]:
    """A Pad is missing: whoever read it reads what went into it."""
    amounts = _constant(model, node, 1) if node.op_type == "Pad" else None
    if amounts is None or not amounts.any():
        return []
    source, lost = node.input[0], node.output[0]
    readers = [other for other in model.graph.node if lost in other.input]
    if any(value.name == lost for value in model.graph.output) or not readers:
        return []
    model.graph.node.remove(node)
    for reader in readers:
        for position, name in enumerate(reader.input):
            if name == lost:
                reader.input[position] = source
    return [reader.name for reader in readers]


def crop_off_by_one(model: ModelProto, node: NodeProto) -> list[str]:
    """What a windowed operator gives is cropped one row late and filled up at the end."""
    if node.op_type not in WINDOWED or len(node.output) > 1 or _rank(model, node) != 4:
        return []
    if _opset(model) < 13:
        return []
    result, inner, cut = node.output[0], node.output[0] + "/whole", node.output[0] + "/cut"
    index = list(model.graph.node).index(node)
    node.output[0] = inner
    constants = {"start": [1], "end": [2**31 - 1], "axis": [2], "pads": [0, 0, 0, 0, 0, 0, 1, 0]}
    for name, values in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(np.array(values, np.int64), f"{result}/{name}"))
    crop = helper.make_node(
        "Slice", [inner, *(f"{result}/{name}" for name in ("start", "end", "axis"))], [cut], name=f"{node.name}/crop"
    )
    fill = helper.make_node("Pad", [cut, f"{result}/pads"], [result], name=f"{node.name}/fill", mode="edge")
    names = [node.name, crop.name, fill.name]
    model.graph.node.insert(index + 1, crop)
    model.graph.node.insert(index + 2, fill)
    return names


DAMAGES: dict[str, Callable[[ModelProto, NodeProto], list[str]]] = {
    damage.__name__: damage
    for damage in (
        pad_moved,
        nearest_mode_changed,
        coordinates_changed,
        weight_sign,
        small_weight_sign,
        transposed_kernel,
        wrong_fill,
        dropped_pad,
        crop_off_by_one,
    )
}


def _weight_place(model: ModelProto, node: NodeProto) -> tuple[NodeProto, int] | None:
    """Return which input of which node holds the weight: the DequantizeLinear's before a quantized operator."""
    if node.op_type.startswith("QLinear"):
        return node, 3
    if len(node.input) < 2:
        return None
    maker = next((each for each in model.graph.node if node.input[1] in each.output), None)
    return (maker, 0) if maker is not None and maker.op_type == "DequantizeLinear" else (node, 1)


def _opset(model: ModelProto) -> int:
    return int(next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")))


def _rank(model: ModelProto, node: NodeProto) -> int | None:
    pads = _pads(node)
    kernel = next((list(attribute.ints) for attribute in node.attribute if attribute.name == "kernel_shape"), None)
    weight = _constant(model, node, 1) if len(node.input) > 1 else None
    if kernel is not None:
        return len(kernel) + 2
    return weight.ndim if weight is not None else (None if pads is None else len(pads) // 2 + 2)


def _pads(node: NodeProto) -> list[int] | None:
    return next((list(attribute.ints) for attribute in node.attribute if attribute.name == "pads"), None)


def _set_pads(node: NodeProto, pads: list[int]) -> None:
    next(attribute for attribute in node.attribute if attribute.name == "pads").ints[:] = pads


def _tensor(model: ModelProto, name: str) -> TensorProto | None:
    for tensor in model.graph.initializer:
        if tensor.name == name:
            return tensor
    for node in model.graph.node:
        if node.op_type == "Constant" and name in node.output and node.attribute[0].name == "value":
            return node.attribute[0].t
    return None


def _constant(model: ModelProto, node: NodeProto, position: int) -> np.ndarray | None:
    if position >= len(node.input):
        return None
    tensor = _tensor(model, node.input[position])
    return None if tensor is None else numpy_helper.to_array(tensor).copy()


def _replace(model: ModelProto, node: NodeProto, position: int, value: np.ndarray) -> None:
    """Give the node a constant of its own: others may read the old one."""
    name = f"{node.name}/damaged"
    model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
    node.input[position] = name
