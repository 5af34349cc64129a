"""What a node is tried on that no rule of windows or resizes knows: data that its operator can take, by role of input.

What no role describes is data, which the local proof fills in by itself.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from onnx import NodeProto, TensorProto, defs, helper

from padfix.geometry.padding import effective_kernel
from padfix.graph import attributes
from padfix.graph.lengths import filled
from padfix.graph.scopes import DEFAULT_DOMAIN, Dimension, Scope, ValueType
from padfix.operators.constant_chains import holds_zeros, leaves_of
from padfix.operators.elementwise import ELEMENTWISE, REDUCTIONS
from padfix.operators.reading import operator_of, read
from padfix.operators.recurrent_layers import RECURRENT
from padfix.operators.shared_lengths import shared_lengths
from padfix.operators.table import CONTRIB
from padfix.operators.window import Window
from padfix.rules.base import Site, Trial, TrialInput
from padfix.rules.build.contrib_roles import CONTRIB_ROLES
from padfix.rules.build.trial_roles import ROLES, Wanted

OPEN_LENGTH = 2
"""In place of a length that is left open."""

LARGEST_TRIAL = 1 << 18
"""Elements of all inputs together above which a node that stays as it is isn't tried on its own."""

_LARGEST_AXIS = 1 << 20
"""Elements of a trial's input above which axes that don't matter to the operator are shortened."""

_UNKNOWN_SIZE = 6
"""Length of an axis that is only known at run time, in a trial: divisible by 2 and 3."""

_SHORT_SIZE = 5
"""Length to which axes are cut that the operator treats all alike."""

_COUNTING = {0: 1, 4: 0, 5: 1, 6: 1}
"""Which axis of a recurrent layer's data, lengths and states counts its sequences."""

CUT_ALIKE = ELEMENTWISE | {"Softmax", "LogSoftmax", "Hardmax"}
"""Operators that axes of any length go through, as long as those of all inputs are cut alike."""


def trials_of(site: Site) -> tuple[Trial, ...]:
    """Return shape cases: the declared shape where it is known, else one that the node's attributes allow.

    Nothing when an input is no tensor.
    """
    node = site.node
    known = {position: site.scope.type_of(name) for position, name in enumerate(node.input) if name}
    types = {
        position: type_.elem_type if type_ is not None and type_.elem_type else guessed_type(site, position)
        for position, type_ in known.items()
    }
    shapes: dict[int, tuple[int, ...]] = {}
    for position, type_ in known.items():
        constant = site.constant(position)
        shapes[position] = constant.shape if constant is not None else _trial_shape(site, position, type_)
    shapes = _fitted(site, known, shapes)
    if node.op_type in CUT_ALIKE:
        shapes = _cut_alike(site, shapes)
    random = np.random.default_rng(len(node.input))
    trial: dict[str, TrialInput] = {}
    for position, name in enumerate(node.input):
        if not name or name in trial:
            continue
        constant = site.constant(position)
        if constant is not None:
            trial[name] = TrialInput.of(constant)
            continue
        if node.op_type in RECURRENT and holds_zeros(site.scope, name):  # a state that a form may leave out
            dtype = np.dtype(helper.tensor_dtype_to_np_dtype(types[position]))
            trial[name] = TrialInput.of(np.zeros(shapes[position], dtype), constant=False)
            continue
        own = CONTRIB_ROLES.get((node.op_type, position)) if site.domain == CONTRIB else None
        role = own or ROLES.get((node.op_type, position))
        value = None
        if role is not None:
            dtype = np.dtype(helper.tensor_dtype_to_np_dtype(types[position]))
            made = role(Wanted(site, shapes[position], dtype, shapes.get(0, ()), random))
            value = np.asarray(made).astype(dtype).reshape(shapes[position])
        trial[name] = TrialInput(shapes[position], types[position], value)
    return (trial,)


def is_known(site: Site) -> bool:
    """Whether the shapes of all inputs are known to the last axis, and small enough for a trial of its own."""
    total = 0
    for position, name in enumerate(site.node.input):
        known = site.scope.type_of(name) if name else None
        if not name:
            continue
        if known is None or not known.elem_type or known.lengths is None:
            return False
        if site.node.op_type not in CUT_ALIKE or site.constant(position) is not None:
            total += math.prod(known.lengths)
    return total <= LARGEST_TRIAL


def guessed_type(site: Site, position: int) -> int:
    """Return a type that the operator allows for an input whose own is not known."""
    if site.domain == CONTRIB:
        return site.elem_type(0)
    schema = defs.get_schema(site.node.op_type, site.opset, DEFAULT_DOMAIN)
    allowed = schema.inputs[min(position, len(schema.inputs) - 1)].types if schema.inputs else ["tensor(float)"]
    return int(TensorProto.FLOAT if "tensor(float)" in allowed or "tensor(int64)" not in allowed else TensorProto.INT64)


def _fitted(
    site: Site, known: Mapping[int, ValueType | None], shapes: Mapping[int, tuple[int, ...]]
) -> dict[int, tuple[int, ...]]:
    """Give axes that are left open the lengths that other inputs tell which the operator wants as long."""
    if site.node.op_type in (*CUT_ALIKE, "PRelu"):
        return _fitted_from_last(known, shapes)
    fitted = {position: list(shape) for position, shape in shapes.items()}
    for axes, may_be_one in shared_lengths(site.node, {position: len(shape) for position, shape in shapes.items()}):
        told: dict[int, Dimension] = {}
        for position, axis in axes:
            declared_shape = None if (type_ := known.get(position)) is None else type_.shape
            if declared_shape is None:
                told[position] = None
            elif len(declared_shape) == len(shapes[position]):
                told[position] = declared_shape[axis]
        lengths = (shapes[place][axis] for place, axis in axes if isinstance(told.get(place), int))
        length = next((each for each in lengths if each > 1 or not may_be_one), None)
        for position, axis in axes:
            if length is not None and position in told and not isinstance(told[position], int):
                fitted[position][axis] = length
    return {position: tuple(shape) for position, shape in fitted.items()}


def _fitted_from_last(
    known: Mapping[int, ValueType | None], shapes: Mapping[int, tuple[int, ...]]
) -> dict[int, tuple[int, ...]]:
    """Give axes that are left open the length that another input tells, counted from the last axis."""
    is_open = {
        position: [not isinstance(length, int) for length in type_.shape]
        if type_ is not None and type_.shape is not None and len(type_.shape) == len(shapes[position])
        else [False] * len(shapes[position])
        for position, type_ in known.items()
    }
    told = {
        axis: length
        for position, shape in shapes.items()
        for axis, length in enumerate(shape, -len(shape))
        if length > 1 and not is_open[position][axis]
    }
    return {
        position: tuple(
            told.get(axis, length) if is_open[position][axis] else length
            for axis, length in enumerate(shape, -len(shape))
        )
        for position, shape in shapes.items()
    }


def _cut_alike(site: Site, shapes: Mapping[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
    """Shorten axes of data, unless a constant holds their full length, or a list, which forms write in a shape."""
    full = {
        length
        for position, shape in shapes.items()
        for length in shape
        if (site.constant(position) is not None or len(shape) == 1) and length > 1
    }
    return {
        position: shape
        if site.constant(position) is not None
        else tuple(length if length in full else min(length, _SHORT_SIZE) for length in shape)
        for position, shape in shapes.items()
    }


def chain_trial(scope: Scope, chain: Sequence[NodeProto], open_length: int = OPEN_LENGTH) -> dict[str, TrialInput]:
    """Return the constants that a chain of nodes reads, which give them lengths or constants, and what it measures."""
    constants, measured = leaves_of(scope, list(chain))
    trial = {name: TrialInput.of(value) for name in constants if (value := scope.constant(name)) is not None}
    types = {name: scope.type_of(name) for name in measured}
    data = {name: TrialInput(()) if it is None else like(it, open_length) for name, it in types.items()}
    return {**trial, **data}


def like(known: ValueType, open_length: int = OPEN_LENGTH) -> TrialInput:
    """Return data of a type, with a few elements for every open length."""
    return TrialInput(filled(known.shape, open_length), known.elem_type or TensorProto.FLOAT)


def as_declared(site: Site, open_length: int = OPEN_LENGTH) -> Trial:
    """Return the lengths and constants of a node as they are, for a form that is written for these alone."""
    found = declared(site.scope, site.node.input, open_length)
    places = {position: name for position, name in enumerate(site.node.input) if name in found}
    known = {position: site.scope.type_of(name) for position, name in places.items()}
    fitted = _fitted(site, known, {position: found[name].shape for position, name in places.items()})
    for position, name in places.items():
        if found[name].shape != fitted[position]:
            found[name] = dataclasses.replace(found[name], shape=fitted[position])
    return found


def declared(scope: Scope, names: Iterable[str], open_length: int = OPEN_LENGTH) -> dict[str, TrialInput]:
    """Return tensors as they are: constants, and data of the types that are known."""
    found: dict[str, TrialInput] = {}
    for name in filter(None, names):
        value, known = scope.constant(name), scope.type_of(name)
        if value is not None:
            found[name] = TrialInput.of(value)
        elif known is not None and known.shape is not None:
            found[name] = like(known, open_length)
    return found


def _trial_shape(site: Site, position: int, known: ValueType | None) -> tuple[int, ...]:
    if known is not None and known.shape is not None:
        shape = [
            size
            if isinstance(size, int)
            else _sequences(site, position, axis) or _run_time_size(site, axis, len(known.shape))
            for axis, size in enumerate(known.shape)
        ]
        return _shortened(site, shape, position)
    if site.node.op_type == "BatchNormalization":
        channels = _channels(site) or 3
        return (channels,) if position > 0 else (2, channels, 3)
    if site.domain == CONTRIB and position and site.input_type(0) is not None:  # the other term of a sum
        return _trial_shape(site, 0, site.input_type(0))
    pads = attributes.integers(site.node, "pads") or attributes.integers(site.node, "paddings") or []
    axes = attributes.integers(site.node, "axes") or []
    axis = attributes.integer(site.node, "axis", 0)
    rank = len(pads) // 2 or max([2, axis, *axes]) + 1
    shape = [2, *[3] * (rank - 1)]
    if site.node.op_type == "Squeeze":
        return tuple(1 if number in axes else size for number, size in enumerate(shape))
    return tuple(_run_time_size(site, number, rank) if number == axis else size for number, size in enumerate(shape))


def _run_time_size(site: Site, axis: int, rank: int) -> int:
    """Return a length for one of so many axes whose own is not known, one that the node can take."""
    is_own = axis == (attributes.integer(site.node, "axis", -1 if site.node.op_type == "TopK" else 0) or 0) % rank
    if site.node.op_type == "Split" and is_own:
        told = site.constant(1) if site.input_name(1) else attributes.integers(site.node, "split")
        return int(sum([2 * len(site.node.output)] if told is None else told))
    if site.node.op_type == "TopK" and is_own:
        number = site.constant(1) if site.input_name(1) else attributes.integer(site.node, "k", 0)
        return max(_UNKNOWN_SIZE, 1 + int(np.max(0 if number is None else number, initial=0)))
    if site.node.op_type == "Squeeze" and axis in (attributes.integers(site.node, "axes") or []):
        return 1
    return (_channels(site) if axis == 1 else None) or _UNKNOWN_SIZE


def _sequences(site: Site, position: int, axis: int) -> int | None:
    """Return how many sequences a recurrent layer reads, for the axis of an input that counts them; else None."""
    if (
        site.node.op_type not in RECURRENT
        or attributes.integer(site.node, "layout", 0)
        or axis != _COUNTING.get(position)
    ):
        return None
    types = {place: site.input_type(place) for place in _COUNTING if site.input_name(place)}
    told = [known.shape[_COUNTING[place]] for place, known in types.items() if known is not None and known.shape]
    return next((length for length in told if isinstance(length, int)), None)


def _channels(site: Site) -> int | None:
    """Return how many channels a BatchNormalization or a convolution has, as far as one of its parameters tells."""
    if operator_of(site.node) is not None:
        window = read(site.scope, site.node)
        return window.channels if isinstance(window, Window) and not window.channels_last else None
    names = site.node.input[1:] if site.node.op_type == "BatchNormalization" else ()
    lengths = (known.lengths for name in filter(None, names) if (known := site.scope.type_of(name)) is not None)
    return next((shape[0] for shape in lengths if shape), None)


def _shortened(site: Site, shape: list[int], position: int) -> tuple[int, ...]:
    """Shorten the axes of an input that the operator treats alike."""
    node = site.node
    short = tuple(min(size, _SHORT_SIZE) for size in shape)
    if node.op_type in REDUCTIONS and position == 0 and math.prod(shape) > _LARGEST_AXIS:
        return short
    if node.op_type == "BatchNormalization" and position == 0:
        return (*short[:1], *shape[1:2], *short[2:])
    is_joined = node.op_type == "Concat" and all(site.constant(each) is None for each in range(len(node.input)))
    if is_joined and shape:
        kept = attributes.integer(node, "axis", 1) % len(shape)
        return (*short[:kept], shape[kept], *short[kept + 1 :])
    return _windows_alone(site, shape) if position == 0 else tuple(shape)


def _windows_alone(site: Site, shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape with room for a few windows of a convolution or pool, of the same remainder at its strides."""
    window = read(site.scope, site.node) if operator_of(site.node) is not None else None
    if not isinstance(window, Window) or None in window.kernel or len(shape) != window.leading + window.rank:
        return tuple(shape)
    lengths = list(shape)
    for axis, (_, taps, stride, dilation) in enumerate(window.axes, window.leading):
        least = 2 * (effective_kernel(taps or 1, dilation) + stride)
        if lengths[axis] > least:
            lengths[axis] = least + (lengths[axis] - least) % stride
    return tuple(lengths)
