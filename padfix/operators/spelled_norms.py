"""Norms that models spell out, and what runtimes take them for."""

from __future__ import annotations

from itertools import dropwhile

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.dependence import reached
from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.data_order import AXES_OF_IMAGES, CHANNELS
from padfix.operators.fused_layers import AXES_OF_SEQUENCES, TERMS, constant_shape, is_written, made_by
from padfix.operators.lists import depends_on_data
from padfix.operators.reductions import reduced_axes
from padfix.operators.window import Shape
from padfix.targets.traits import Traits

_NO_NORM: Traits = {"ends-norm": False, "of-input": False, "axes-negative": False}
"""What :func:`norm_traits` says of other sums."""

BY_NORM = ("by-norm-of-axes", "by-norm-of-others", "by-norm-off-channels", "by-norm-and-number")
"""What importers may make of a Div by a ReduceL2."""

BY_INVERSE = "by-inverse-of-norm"
"""What importers may make of a Mul."""

_PARTS_OF_NORMS = ("Add", "Div", "Mul", "Pow", "ReduceMean", "Reciprocal", "Sqrt")


def norm_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return whether an Add ends a norm along the last axes, spelled out, but not as LayerNormalization takes it.

    That wants a scale and a shift in the shape of the axes, each as the second input of its operator. And return
    whether the norm is of an input of the model, and whether its axes are counted from the end.
    """
    product = next((each for name in node.input if (each := made_by(scope, name, "Mul")) is not None), None)
    names = () if product is None else product.input
    quotient = next((each for name in names if (each := made_by(scope, name, "Div")) is not None), None)
    deviation = None if quotient is None else made_by(scope, quotient.input[0], "Sub")
    mean = None if deviation is None else made_by(scope, deviation.input[1], "ReduceMean")
    axes = None if mean is None else attributes.integers(mean, "axes")
    if product is None or quotient is None or mean is None or not axes or not _is_root_of(scope, quotient.input[1]):
        return _NO_NORM
    known = scope.type_of(mean.input[0])
    shape = () if known is None or known.shape is None else known.shape
    if sorted(axis % len(shape) for axis in axes if shape) != list(range(len(shape) - len(axes), len(shape))):
        return _NO_NORM
    in_order = (product.input[0], node.input[0]) == (quotient.output[0], product.output[0])
    shapes = {constant_shape(scope, each.input[1]) for each in (product, node)}
    return {
        "ends-norm": not in_order or shapes != {shape[-len(axes) :]},
        "of-input": mean.input[0] in scope.inputs,
        "axes-negative": max(axes) < 0,
    }


def divided_norm(scope: Scope, node: NodeProto) -> Traits:
    """Return of a Div along which axes the ReduceL2 goes that gives what it divides by, and whether of the dividend.

    And whether it divides by a norm with a number that is added to it, or that it is no less than.
    """
    norm = made_by(scope, node.input[1], "ReduceL2")
    found = dict.fromkeys(BY_NORM, False)
    found["by-norm-and-number"] = _adds_to_norm(scope, node.input[1]) or _spreads_norm(scope, node.input[1])
    if norm is None or (len(norm.input) > 1 and norm.input[1]):
        return found
    known, axes = scope.type_of(norm.input[0]), attributes.integers(norm, "axes") or []
    rank = None if known is None else known.rank
    if len(axes) != 1:
        found["by-norm-of-axes"] = True
    elif norm.input[0] != node.input[0] or not attributes.integer(norm, "keepdims", 1):
        found["by-norm-of-others"] = True
    else:
        found["by-norm-off-channels"] = (axes[0] % rank if rank else axes[0]) != CHANNELS
    return found


def scaled_norm(scope: Scope, node: NodeProto) -> Traits:
    """Return of a Mul whether it scales a norm of groups, and whether it multiplies with the inverse of a norm."""
    return {"scales-groups": _scales_groups(scope, node), BY_INVERSE: _is_by_inverse_of_norm(scope, node)}


def _is_by_inverse_of_norm(scope: Scope, node: NodeProto) -> bool:
    """Whether a product is with the inverse of a norm as TensorFlow's exporters spell it: a root, with a least number.

    The axes are those of an attribute, or all.
    """
    return any(_is_inverse_of_norm(scope, name) for name in node.input)


def _is_inverse_of_norm(scope: Scope, name: str) -> bool:
    for op_type in ("Reciprocal", "Sqrt"):
        producer = made_by(scope, name, op_type)
        if producer is None:
            return False
        name = producer.input[0]
    most = made_by(scope, name, "Max")
    totals = (
        [] if most is None or len(most.input) != TERMS else [made_by(scope, each, "ReduceSum") for each in most.input]
    )
    plain = [each for each in totals if each is not None and not any(each.input[1:])]
    return any(made_by(scope, each.input[0], "Mul") is not None for each in plain)


def _adds_to_norm(scope: Scope, name: str) -> bool:
    """Whether it is the root of a sum of powers along axes that an attribute names or all, with a Constant added."""
    total = made_by(scope, name, "Add")
    roots = [] if total is None else [made_by(scope, each, "Sqrt") for each in total.input]
    root = next((each for each in roots if each is not None), None)
    summed = None if root is None else made_by(scope, root.input[0], "ReduceSum")
    power = None if summed is None or any(summed.input[1:]) else made_by(scope, summed.input[0], "Pow")
    if total is None or power is None:
        return False
    return all(any(made_by(scope, each, "Constant") for each in node.input) for node in (total, power))


def _spreads_norm(scope: Scope, name: str) -> bool:
    """Whether it is a ReduceL2, cut off by attributes, in the shape of something."""
    spread = made_by(scope, name, "Expand")
    cut = None if spread is None or made_by(scope, spread.input[1], "Shape") is None else spread.input[0]
    clip = None if cut is None else made_by(scope, cut, "Clip")
    return clip is not None and not any(clip.input[1:]) and made_by(scope, clip.input[0], "ReduceL2") is not None


def square_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return whether a product or power is taken for part of a norm of rows, or of all axes."""
    return {
        "squares-for-norm": _squares_for_norm(scope, node),
        "squares-for-whole-norm": _squares_for_whole_norm(scope, node),
    }


def _squares_for_norm(scope: Scope, node: NodeProto) -> bool:
    """Whether MNN takes a square for part of a norm of rows, and the norm is another.

    Of what differs from a mean it is a power where the difference is read elsewhere as well, and a product where it is
    not; of data themselves it is either. A norm of rows is along the last axis, of three where it has a mean, with a
    scale for each element of a row.
    """
    name = squared(scope, node)
    known = scope.type_of(name) if name else None
    readers = scope.consumers(node.output[0]) if name else []
    means = [each for each in readers if each.op_type == "ReduceMean"]
    if not means or known is None:
        return False
    axes, is_read_elsewhere = [reduced_axes(scope, each) for each in means], len(scope.consumers(name)) > 1
    if is_norm_of_squares(scope, node):
        is_taken, ranks = is_read_elsewhere, (known.rank,)
    else:
        is_taken, ranks = is_read_elsewhere is (node.op_type == "Pow"), (AXES_OF_SEQUENCES,)
    last = None if known.rank is None else known.rank - 1
    is_last = known.rank in ranks and all(each in ([-1], [last]) for each in axes)
    length = (known.shape or ())[-1:]
    return is_taken and not (is_last and all(each == length for mean in means for each in _scales_behind(scope, mean)))


def _squares_for_whole_norm(scope: Scope, node: NodeProto) -> bool:
    """Whether a power is part of a norm, spelled out as PyTorch has it, of all axes or of all behind the first.

    That is what differs from a mean, by the root of the mean of its square with a constant behind it.
    """
    name = squared(scope, node) if node.op_type == "Pow" else ""
    difference, readers = made_by(scope, name, "Sub"), scope.consumers(node.output[0])
    mean = None if difference is None else made_by(scope, difference.input[1], "ReduceMean")
    if mean is None or len(readers) != 1 or readers[0].op_type != "ReduceMean":
        return False
    known, axes = scope.type_of(name), [reduced_axes(scope, each) for each in (mean, readers[0])]
    rank = None if known is None else known.rank
    if rank is None or None in axes:
        return False
    listed = [sorted(axis % rank for axis in each or range(rank)) for each in axes]
    whole = [[*range(rank)], *([[*range(1, rank)]] if rank > _MATRIX else [])]
    return listed[0] == listed[1] and listed[0] in whole and _divides_by_root(scope, readers[0], name)


_MATRIX = 2
"""Axes."""


def _divides_by_root(scope: Scope, variance: NodeProto, name: str) -> bool:
    """Whether a value is divided by the root of a variance to which a constant behind it is added."""
    sums = [each for each in scope.consumers(variance.output[0]) if each.op_type == "Add"]
    added = [
        each.output[0] for each in sums if each.input[0] == variance.output[0] and is_written(scope, each.input[1])
    ]
    roots = [root for each in added for root in scope.consumers(each) if root.op_type == "Sqrt"]
    quotients = [each for root in roots for each in scope.consumers(root.output[0]) if each.op_type == "Div"]
    return any(each.input[0] == name for each in quotients)


def is_norm_of_squares(scope: Scope, node: NodeProto) -> bool:
    """Whether what it squares has not the own mean taken off."""
    difference = made_by(scope, squared(scope, node), "Sub")
    mean = None if difference is None else made_by(scope, difference.input[1], "ReduceMean")
    return difference is None or mean is None or mean.input[0] != difference.input[0]


def squared(scope: Scope, node: NodeProto) -> str:
    """Return what a product or power squares; nothing for another."""
    if node.op_type not in ("Mul", "Pow") or len(node.input) < TERMS:
        return ""
    exponent = scope.constant(node.input[1])
    is_two = exponent is not None and set(exponent.reshape(-1).tolist()) == {2}
    is_square = is_two if node.op_type == "Pow" else _are_one(scope, *node.input)
    return node.input[0] if is_square else ""


def _are_one(scope: Scope, first: str, second: str) -> bool:
    """Whether two names are of one value: the same name, or given by two nodes that are alike."""
    one, other = scope.own_producer(first), scope.own_producer(second)
    if first == second or one is None or other is None:
        return first == second
    places = [[*each.output].index(name) for each, name in ((one, first), (other, second))]
    told = [(each.op_type, each.domain, [*each.input], [*each.attribute]) for each in (one, other)]
    return places[0] == places[1] and told[0] == told[1]


def _scales_behind(scope: Scope, mean: NodeProto) -> list[Shape]:
    """Return the shapes, without ones before, of the constants that what a mean is part of is multiplied by first."""
    scales: list[Shape] = []

    def behind(name: str) -> list[str]:
        found = []
        for reader in scope.consumers(name):
            factors = [each for each in reader.input if is_written(scope, each)] if reader.op_type == "Mul" else []
            if factors:
                shapes = [constant_shape(scope, each) for each in factors]
                scales.extend(tuple(dropwhile(lambda length: length == 1, each)) for each in shapes)
            elif reader.op_type in _PARTS_OF_NORMS:
                found.append(reader.output[0])
        return found

    reached([mean.output[0]], behind)
    return scales


def _is_root_of(scope: Scope, name: str) -> bool:
    """Whether a value is the root of a variance, the mean of a power, with something added to it."""
    root = made_by(scope, name, "Sqrt")
    summed = None if root is None else made_by(scope, root.input[0], "Add")
    means = [] if summed is None else [made_by(scope, each, "ReduceMean") for each in summed.input]
    return any(each is not None and made_by(scope, each.input[0], "Pow") is not None for each in means)


def _scales_groups(scope: Scope, node: NodeProto) -> bool:
    """Whether a constant scales a norm of groups that Reshapes make, to which another constant is added.

    But for planes that each channel of an image has one scale and one shift.
    """
    place = next((place for place, name in enumerate(node.input) if depends_on_data(scope, name)), 0)
    laid = scope.own_producer(node.input[place])
    while laid is not None and laid.op_type == "Reshape" and not normal_domain(laid.domain):
        norm = scope.own_producer(laid.input[0])
        if norm is not None and norm.op_type == "InstanceNormalization":
            break
        laid = norm
    readers = scope.consumers(node.output[0])
    if laid is None or laid.op_type != "Reshape" or len(readers) != 1 or readers[0].op_type != "Add":
        return False
    terms = [name for name in readers[0].input if name != node.output[0]]
    constants = [*terms, *(name for number, name in enumerate(node.input) if number != place)]
    if len(constants) != _FACTORS or any(depends_on_data(scope, name) for name in constants):
        return False
    known = scope.type_of(node.input[place])
    shape = () if known is None or known.shape is None else known.shape
    if len(shape) != AXES_OF_IMAGES:
        return True
    channels, told = (shape[1], 1, 1), [scope.type_of(name) for name in constants]
    return not all(each is not None and each.shape in (channels, (1, *channels)) for each in told)


_FACTORS = 2
"""A scale, and a shift."""
