"""What onnx2tf reads in the order of images although it is none, all its lengths being equal, in forms that differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, helper

from padfix.graph import attributes
from padfix.operators.axis_order import alike_axes, before_reshapes, holds_channels_last, may_be_equal, order_of
from padfix.operators.constant_chains import is_constant
from padfix.operators.elementwise import REDUCTIONS
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.moved_forms import known_as_image
from padfix.rules.build.node_trials import as_declared
from padfix.rules.build.objections import Operators
from padfix.targets.traits import Traits

_ELEMENT_BY_ELEMENT = frozenset(
    """
    Abs Add Clip Cos Div Elu Erf Exp Gelu HardSigmoid HardSwish LeakyRelu Log Max Mean Min Mish Mul Neg Pow Reciprocal
    Relu Selu Sigmoid Sin Softplus Softsign Sqrt Sub Sum Tanh Where Equal Greater GreaterOrEqual Less LessOrEqual
    """.split()  # noqa: SIM905
)

_WITH_AXIS = frozenset(("LayerNormalization", "LogSoftmax", "Softmax"))

_ALONG_AXES = _WITH_AXIS | frozenset(REDUCTIONS)

Shape = tuple[int, ...]

_FEWEST_AXES, _MOST_AXES = 3, 4

_MOST_ELEMENTS = 1 << 20

_AXIS_ALONE_SINCE = 13
"""Since when a Softmax works along its axis alone."""


def joined_reshapes(site: Site) -> Iterator[Form]:
    """Yield a Reshape of what the Reshapes before it read."""
    read = before_reshapes(site.scope, site.input_name(0))
    known, result = site.scope.type_of(read), site.scope.type_of(site.node.output[0])
    lengths = None if result is None else result.lengths
    before = None if known is None else known.lengths

    def write() -> Rewrite:
        assert known is not None and lengths is not None and before is not None
        builder = site.builder()
        builder.output(site.node.output[0], builder.reshaped(builder.input(read), lengths))
        trial = {read: TrialInput(tuple(before), known.elem_type or 1)}
        for node in (*_between(site, read), site.node):
            value = site.scope.constant(node.input[1])
            if value is not None:
                trial[node.input[1]] = TrialInput.of(value)
        return Rewrite(builder.build(), (trial,), exact=True, replaces=tuple(_between(site, read)))

    own = traits_of(site.scope, site.node) or {}
    why_not = None
    if read == site.input_name(0):
        why_not = Refusal("no Reshape stands before it")
    elif lengths is None or before is None or 0 in (*lengths, *before):
        why_not = Refusal("it needs the lengths of its input (--shape)")
    elif any(site.scope.constant(each.input[1]) is None for each in (*_between(site, read), site.node)):
        why_not = Refusal("a shape is only known at run time")
    yield Form("the Reshape before it left out", (("Reshape", {**own, **order_of(site.scope, read)}),), write, why_not)


def _between(site: Site, read: str) -> list[NodeProto]:
    """Return the Reshapes between the data called ``read`` and the node, in their order."""
    found: list[NodeProto] = []
    name = site.input_name(0)
    while name != read and (producer := site.scope.own_producer(name)) is not None:
        found.insert(0, producer)
        name = producer.input[0]
    return found


def beside_an_axis(site: Site) -> Iterator[Form]:
    """Yield the node on data with an axis of one element behind the first, so that not all lengths are equal."""
    node, result = site.node, site.scope.type_of(site.node.output[0])
    if node.op_type not in _ELEMENT_BY_ELEMENT | _ALONG_AXES or len(node.output) != 1:
        return
    shapes = _shapes(site)
    lengths = None if result is None else result.copied
    rank = max((len(shape) for shape in shapes.values()), default=0)
    moved = {place: shape for place, shape in shapes.items() if len(shape) == rank}
    axes = _axes(site, rank)

    def write() -> Rewrite:
        assert lengths is not None
        builder = site.builder()
        given: list[Any] = []
        for place, name in enumerate(node.input):
            value = site.constant(place) if name else None
            if place in moved:
                given.append(builder.reshaped(builder.input(name), [moved[place][0], 1, *moved[place][1:]]))
            elif value is not None and node.op_type in REDUCTIONS:
                given.append(builder.integers([each + 1 for each in axes or ()], "axes"))
            elif value is not None and node.op_type in _ELEMENT_BY_ELEMENT and value.ndim:
                shape = (max(lengths[0], 1), *lengths[1:])
                whole = np.broadcast_to(value, shape).reshape([shape[0], 1, *shape[1:]])
                given.append(builder.constant(whole.copy(), "whole"))
            else:
                given.append(builder.input(name))
        builder.output(node.output[0], builder.reshaped(builder.original(_shifted(node, axes), given), lengths))
        return Rewrite(builder.build(), (as_declared(site),))

    own = {**(traits_of(site.scope, node) or {}), "rank": rank + 1, "constants": "none"}
    own |= {"by-one-each": own.get("numbers") == "integer"} if "by-one-each" in own else {}
    wide: Traits = {
        "alike": alike_axes([[shape[0], 1, *shape[1:]] for shape in moved.values()]),
        "channels-last": False,
    }
    reads = [before_reshapes(site.scope, node.input[place]) for place in moved]
    operators: Operators = (
        *(("Reshape", {"rank": rank + 1, **order_of(site.scope, name)}) for name in reads),
        (node.op_type, {**own, **wide}),
        ("Reshape", {"rank": len(lengths or ()), "alike": "none", "channels-last": False}),
    )
    yield Form("an axis of one element more", operators, write, _why_not(site, shapes, lengths, rank, axes))


def as_images(site: Site) -> Iterator[Form]:
    """Yield the node on inputs of the model behind what works on images and leaves them as they are.

    That is a convolution with ones or, where how many channels they have is open, a pool of single elements.
    """
    scope, node = site.scope, site.node
    own = traits_of(scope, node) or {}
    data = {place: name for place, name in enumerate(node.input) if name and not is_constant(scope, name)}
    inputs = {place: name for place, name in data.items() if scope.parent is None and name in scope.inputs}
    types = {place: site.input_type(place) for place in data}
    shapes = {place: known.shape for place, known in types.items() if known is not None and known.shape is not None}

    def write() -> Rewrite:
        builder = site.builder()
        given = [builder.input(name) for name in node.input]
        for place in inputs:
            given[place] = known_as_image(builder, given[place], shapes[place], site.elem_type(place))
        return Rewrite(builder.ending_in(copied(node), given), (as_declared(site),))

    why_not = None
    if len(shapes) < len(data) or any(0 in shape[1:] for shape in shapes.values()):
        why_not = Refusal("how many axes it has is not known, or it has no elements")
    elif own.get("channels-last") is True or not inputs or not may_be_equal(own):
        why_not = Refusal("its data are no inputs of the model, or not all of one length")
    elif any(not _FEWEST_AXES <= len(shapes[place]) <= _MOST_AXES + 1 for place in inputs):
        why_not = Refusal("it has too few axes, or too many")
    elif any(site.elem_type(place) not in FLOATS for place in inputs):
        why_not = Refusal("its data are no floats")
    elif not all(
        holds_channels_last(scope, name, shapes[place]) for place, name in data.items() if place not in inputs
    ):
        why_not = Refusal("it reads what is no image as well")
    # What else is against it where its data are images is asked of what is written.
    asked_later = dict.fromkeys(("before-alike", "of-constants-too", "reduces-channels"), False)
    changed = {"channels-last": True, **asked_later}
    yield Form("behind what works on images", ((node.op_type, {**own, **changed}),), write, why_not)


def _why_not(
    site: Site,
    shapes: Mapping[int, Shape],
    lengths: Shape | None,
    rank: int,
    axes: Sequence[int] | None,
) -> Refusal | None:
    is_by_element = site.node.op_type in _ELEMENT_BY_ELEMENT
    if not shapes or not lengths or any(0 in shape[1:] for shape in (*shapes.values(), lengths)):
        return Refusal("it needs the lengths of its input (--shape)")
    if not _FEWEST_AXES <= rank <= _MOST_AXES or (is_by_element and len(lengths) != rank):
        return Refusal("it has too few axes, or too many")
    if not is_by_element and (not axes or min(axes) < 1 or max(axes) >= rank):
        return Refusal("it works along the first axis, or along which is not known")
    if math.prod(lengths[1:]) > _MOST_ELEMENTS and any(_is_list(site, place) for place in range(len(site.node.input))):
        return Refusal("its constants would be very large")
    values = [site.constant(place) for place in range(len(site.node.input)) if site.input_name(place)]
    if lengths[0] == 0 and any(each is not None and each.ndim == len(lengths) and each.shape[0] > 1 for each in values):
        return Refusal("it needs to know how many images there are (--shape)")
    return None


def _is_list(site: Site, place: int) -> bool:
    value = site.constant(place) if site.input_name(place) else None
    return value is not None and value.ndim > 0


def _shapes(site: Site) -> dict[int, Shape]:
    """Return the lengths of the data that a node reads, by place, 0 for an open number of images; else nothing."""
    types = {
        place: site.input_type(place)
        for place, name in enumerate(site.node.input)
        if name and not is_constant(site.scope, name)
    }
    found = {place: known.copied for place, known in types.items() if known is not None}
    if len(found) < len(types):
        return {}
    whole = {place: tuple(each) for place, each in found.items() if each is not None}
    return whole if len(whole) == len(types) else {}


def _axes(site: Site, rank: int) -> list[int] | None:
    """Return the axes along which the node works, counted from the begin; None where they are not told."""
    node = site.node
    if node.op_type in REDUCTIONS:
        listed = site.constant(1) if len(node.input) > 1 else None
        given = attributes.integers(node, "axes") if listed is None else [int(each) for each in listed.reshape(-1)]
    elif node.op_type == "LayerNormalization" or site.opset >= _AXIS_ALONE_SINCE:
        given = [attributes.integer(node, "axis", -1) or 0]
    else:
        given = None
    return None if not given else [axis % rank if rank else axis for axis in given]


def _shifted(node: NodeProto, axes: Sequence[int] | None) -> NodeProto:
    """Return the node with its axes one further to the end."""
    changed = copied(node)
    if not axes or node.op_type not in _ALONG_AXES:
        return changed
    further = [axis + 1 for axis in axes]
    for each in changed.attribute:
        if each.name == "axes":
            each.ints[:] = further
    if node.op_type in _WITH_AXIS:
        kept = [each for each in changed.attribute if each.name != "axis"]
        del changed.attribute[:]
        changed.attribute.extend([*kept, helper.make_attribute("axis", further[0])])
    return changed
