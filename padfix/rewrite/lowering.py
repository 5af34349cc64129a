"""What a node needs to stand at an older opset, where it says nothing that the older one has no words for.

Most of what newer versions added may be left out; inputs that were attributes are attributes again where they are
constants; an operator that the older opset lacks is what it is defined by. What is none of these is refused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import AttributeProto, TensorProto, helper

from padfix.graph import attributes
from padfix.graph.fragment import Fragment
from padfix.operators.refusal import Refusal
from padfix.operators.schemas import schema
from padfix.rules.base import Site
from padfix.rules.build.definition import defined_by_others
from padfix.rules.build.explicit_pads import copied

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder, Value

Lowered = Fragment | Refusal | None


def lowered(site: Site, target: int) -> Lowered:
    """Return the node as it is at ``target``, an older opset; None where nothing of it has to change.

    A fragment that is written for the node's own opset is to be moved on from there.
    """
    node = site.node
    if schema(node.op_type, target) is None:
        return _defined(site, target)
    for attribute in node.attribute:
        since = _VALUES.get((node.op_type, attribute.name), {}).get(attribute.s, 1)
        if since > target:
            value = attribute.s.decode()
            return Refusal(f"opset {target} has no {attribute.name}={value} of {node.op_type}, which came in {since}")
    changed, adapter = _ADAPTERS.get(node.op_type, (0, _fitted))
    return adapter(site, target) if target < changed <= site.opset else _fitted(site, target)


def _defined(site: Site, target: int) -> Lowered:
    """Return what defines an operator that the older opset lacks."""
    found = defined_by_others(site)
    missing = f"opset {target} has no such {site.node.op_type}"
    return Refusal(f"{missing}, and {found.reason}") if isinstance(found, Refusal) else found


def _fitted(site: Site, target: int) -> Lowered:
    """Return the node without what says nothing, and with constant inputs as the attributes that they were."""
    old, new = schema(site.node.op_type, site.opset), schema(site.node.op_type, target)
    node = copied(site.node)
    for attribute in site.node.attribute:
        if attribute.name not in new.attributes:
            if not _says_nothing(site, attribute, old):
                return Refusal(f"opset {target} has no {attribute.name} of {node.op_type}, which the node gives")
            attributes.remove(node, attribute.name)
    while len(node.input) > new.max_input:
        position = len(node.input) - 1
        name, formal, constant = node.input.pop(), old.inputs[position].name, site.constant(position)
        if not name or (constant is not None and constant.size == 0):
            continue
        if formal not in new.attributes:
            return Refusal(f"opset {target} has no input {formal} of {node.op_type}, which the node gives")
        if constant is None:
            return Refusal(f"its input {formal} is computed at run time, and in opset {target} it is an attribute")
        node.attribute.append(helper.make_attribute(formal, constant.tolist()))
    return None if node == site.node else Fragment((node,), (), target)


_REDUCTIONS = {b"add": 16, b"mul": 16, b"max": 18, b"min": 18}
_VALUES: dict[tuple[str, str], dict[bytes, int]] = {
    ("Pad", "mode"): {b"wrap": 19},
    ("Resize", "coordinate_transformation_mode"): {b"half_pixel_symmetric": 19},
    ("ScatterElements", "reduction"): _REDUCTIONS,
    ("ScatterND", "reduction"): _REDUCTIONS,
}
"""By operator and attribute: values that older opsets do not list, with the opset that they came in. No schema says
so, and ONNX Runtime takes them at any opset."""


def _says_nothing(site: Site, attribute: AttributeProto, old: Any) -> bool:
    """Whether a node means the same without the attribute."""
    default = old.attributes[attribute.name].default_value if attribute.name in old.attributes else AttributeProto()
    if default.type and helper.get_attribute_value(default) == helper.get_attribute_value(attribute):
        return True
    match attribute.name:
        case "dilations":
            return set(attribute.ints) == {1}
        case "noop_with_empty_axes":
            axes = site.constant(1)
            return axes is not None and axes.size > 0
        case "output_dtype":
            reads = 1 if site.node.op_type == "DequantizeLinear" else 2  # the type is that of the scale, of the zero
            known = site.input_type(reads)
            return known is not None and known.elem_type == attribute.i
    return False


def _pad(site: Site, target: int) -> Lowered:
    """Before 18 there is an amount for each axis."""
    if not site.input_name(3):
        return _fitted(site, target)
    axes = _listed_axes(site, site.constant(3))
    if isinstance(axes, Refusal):
        return axes
    builder, rank = site.builder(target), _rank(site)
    places = [*axes, *(axis + rank for axis in axes)]
    inputs = [builder.input(site.input_name(0)), _at_places(builder, site, 1, places, np.zeros(2 * rank, np.int64))]
    if site.input_name(2):
        inputs.append(builder.input(site.input_name(2)))
    return builder.ending_in(copied(site.node), inputs)


def _resize(site: Site, target: int) -> Lowered:
    """Before 18 scales, sizes and the region are those of all axes."""
    listed = attributes.integers(site.node, "axes")
    if listed is None:
        return _fitted(site, target)
    axes = _listed_axes(site, np.array(listed))
    bare = dataclasses.replace(site, node=copied(site.node, without=("axes",)))
    fitted = _fitted(bare, target)
    if isinstance(axes, Refusal) or isinstance(fitted, Refusal):
        return axes if isinstance(axes, Refusal) else fitted
    builder, rank = site.builder(target), _rank(site)
    data = builder.input(site.input_name(0))
    both = [*axes, *(axis + rank for axis in axes)]
    region = np.repeat(np.array([0, 1], helper.tensor_dtype_to_np_dtype(site.elem_type(1))), rank)
    known = site.input_type(0)
    lengths = None if known is None else known.lengths

    def own() -> Value:
        return np.array(lengths, np.int64) if lengths is not None else builder.op("Shape", [data])

    all_axes: list[tuple[list[int], Callable[[], Value]]] = [
        (both, lambda: region),
        (axes, lambda: np.ones(rank, np.float32)),
        (axes, own),
    ]
    given = [data]
    for position, (places, base) in enumerate(all_axes[: len(site.node.input) - 1], 1):
        constant = site.constant(position)
        left_out = not site.input_name(position) or (constant is not None and constant.size == 0)
        given.append(builder.input("") if left_out else _at_places(builder, site, position, places, base()))
    return builder.ending_in(bare.node if fitted is None else fitted.nodes[0], given)


def _rank(site: Site) -> int:
    known = site.input_type(0)
    assert known is not None and known.rank is not None
    return known.rank


def _listed_axes(site: Site, axes: np.ndarray | None) -> list[int] | Refusal:
    """Return the axes, counted from the first."""
    known = site.input_type(0)
    if axes is None or known is None or known.rank is None:
        return Refusal("its axes or the rank of its input are not known; give the model input shapes")
    return [int(axis) % known.rank for axis in axes.reshape(-1)]


def _at_places(builder: FragmentBuilder, site: Site, position: int, places: Sequence[int], base: Value) -> Value:
    """Return ``base``, a vector, with the elements of an input of the node at ``places``."""
    constant = site.constant(position)
    if constant is not None and isinstance(base, np.ndarray):
        values = base.astype(constant.dtype)
        values[list(places)] = constant
        return builder.constant(values, "all_axes")
    vector = builder.constant(base, "all_axes") if isinstance(base, np.ndarray) else base
    indices = builder.integers(places, "places")
    return builder.op("ScatterElements", [vector, indices, builder.input(site.input_name(position))])


def _split(site: Site, target: int) -> Lowered:
    """Before 18 pieces that are not all of one length have their lengths given."""
    number = attributes.integer(site.node, "num_outputs", 0)
    node = copied(site.node, without=("num_outputs",))
    if not number:
        return None
    known, axis = site.input_type(0), attributes.integer(node, "axis", 0)
    shape = known.shape or () if known is not None else ()
    length = shape[axis] if -len(shape) <= axis < len(shape) else None
    builder = site.builder(target)
    data = builder.input(site.input_name(0))
    if isinstance(length, int):
        piece = -(-length // number)
        lengths = builder.integers([piece] * (number - 1) + [length - piece * (number - 1)], "split")
    elif axis < 0 and not shape:
        return Refusal("the rank of its input is not known; give the model input shapes")
    else:
        start = axis + len(shape) if axis < 0 else axis
        one, count = (builder.integers([each], "number") for each in (1, number))
        whole = builder.op("Shape", [data], {"start": start, "end": start + 1})
        piece = builder.op("Div", [builder.op("Sub", [builder.op("Add", [whole, count]), one]), count])
        front = builder.op("Tile", [piece, builder.integers([number - 1], "number")])
        rest = builder.op("Sub", [whole, builder.op("ReduceSum", [front])])
        lengths = builder.op("Concat", [front, rest], {"axis": 0})
    return builder.ending_in(node, [data, lengths])


def _dft(site: Site, target: int) -> Lowered:
    """Before 20 the axis is an attribute, of another default."""
    fitted = _fitted(site, target)
    if isinstance(fitted, Refusal) or site.input_name(2):
        return fitted
    node = copied(site.node) if fitted is None else fitted.nodes[0]
    attributes.set_integer(node, "axis", -2)
    return Fragment((node,), (), target)


def _grid_sample(site: Site, target: int) -> Lowered:
    """The modes had other names before 20."""
    names = {"linear": "bilinear", "cubic": "bicubic"}
    known = site.input_type(0)
    if known is None or known.rank != 4:
        return Refusal(f"opset {target} samples images of 4 axes only, and its input has not, or not surely, 4")
    mode, node = site.text("mode", "linear"), copied(site.node)
    attributes.set_text(node, "mode", names.get(mode, mode))
    return Fragment((node,), (), target)


def _quantize(site: Site, target: int) -> Lowered:
    """Before 21 the type of the result is that of the zero point."""
    elem_type, scale = attributes.integer(site.node, "output_dtype", 0), site.input_type(1)
    if not elem_type or site.input_name(2):
        return _fitted(site, target)
    if scale is None or scale.lengths is None or elem_type not in (TensorProto.INT8, TensorProto.UINT8):
        return Refusal(f"the type that it gives has no zero point in opset {target}")
    builder = site.builder(target)
    zero = builder.constant(np.zeros(scale.lengths, helper.tensor_dtype_to_np_dtype(elem_type)), "zero_point")
    node = copied(site.node, without=("output_dtype",))
    inputs = [builder.input(name) for name in list(site.node.input)[:2]]
    return builder.ending_in(node, [*inputs, zero])


_ADAPTERS: dict[str, tuple[int, Callable[[Site, int], Lowered]]] = {
    "DFT": (20, _dft),
    "GridSample": (20, _grid_sample),
    "GroupNormalization": (21, _defined),
    "Pad": (18, _pad),
    "QuantizeLinear": (21, _quantize),
    "Resize": (18, _resize),
    "Split": (18, _split),
}
"""By operator: the version that changed its meaning, and what a node needs that is moved to below it."""
