"""What the padding rules share: reading a windowed operator, its pads axis by axis, and the sizes to prove it on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from padfix.geometry.padding import (
    effective_kernel,
    has_window_in_padding,
    lasting_padding,
    same_output_size,
    same_padding,
    same_total_padding_of_residue,
    size_independent_padding,
    split_same_padding,
    window_output_size,
)
from padfix.graph import attributes
from padfix.graph.lengths import known_residue
from padfix.graph.scopes import Dimension
from padfix.operators.table import WINDOW_OPERATORS, WindowOperator
from padfix.rules.base import Refusal, Rewrite, Site, Trial, TrialInput
from padfix.rules.dequantized_input import DequantizedInput, dequantized_input, padded_before, with_quantized_data
from padfix.rules.pool_indices import unpadded_indices
from padfix.rules.unfused_pad import no_op_pad

if TYPE_CHECKING:
    from padfix.graph.fragment import Fragment, FragmentBuilder

OPERATORS = frozenset(WINDOW_OPERATORS)
SAME = ("SAME_UPPER", "SAME_LOWER")
PADDING_MODES = frozenset({*SAME, "VALID", "NOTSET", ""})

_DILATIONS_SINCE = {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}
_CEIL_MODE_SINCE = {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}
_READ = ("auto_pad", "pads", "kernel_shape", "strides", "dilations", "ceil_mode", "count_include_pad", "group")
_MAXIMUM_TRIALS = 12
_LONGEST_TABLE = 1 << 10
"""Strides up to which pads are looked up by residue; beyond, they are computed."""
_DYNAMIC_PAD_SINCE = 11
"""The first opset whose Pad takes its pads as an input."""

LONGEST = 2**31 - 1
"""The longest window or stride that is read; runtimes count in 32 bits in many places."""

Pair = tuple[int, int]


@dataclass(frozen=True)
class Window:
    """A windowed operator as written, every entry one spatial axis.

    ``kernel`` and ``sizes`` (of the input) may hold unknown lengths; ``auto_pad`` is the attribute's text.
    """

    domain: str
    op_type: str
    auto_pad: str
    kernel: tuple[int | None, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    sizes: tuple[Dimension, ...]
    elem_type: int | None
    channels_last: bool = False

    @property
    def operator(self) -> WindowOperator:
        """What kind of operator it is."""
        return WINDOW_OPERATORS[self.domain, self.op_type]

    @property
    def is_exact(self) -> bool:
        """Whether the bits of its result must not change: a maximum rounds nothing."""
        return self.operator.is_maximum

    @property
    def leading(self) -> int:
        """Number of axes before the spatial ones: batch and channels, or the batch alone."""
        return 1 if self.channels_last else 2

    @property
    def rank(self) -> int:
        """Number of spatial axes."""
        return len(self.strides)

    def same_pads(self) -> tuple[Pair | None, ...]:
        """Return the (begin, end) of SAME for each axis; None where it depends on a length that is not known.

        Where a length is not known but all lengths have the same begin, the end is the longest of all.
        """
        upper = self.auto_pad == "SAME_UPPER"
        pairs: list[Pair | None] = []
        for taps, stride, dilation, size in zip(self.kernel, self.strides, self.dilations, self.sizes, strict=True):
            if taps is None:
                pairs.append(None)
            elif isinstance(size, int) and size > 0:
                pairs.append(same_padding(size, taps, stride, dilation, upper=upper))
            elif not isinstance(size, int) and (residue := known_residue(size, stride)) is not None:
                total = same_total_padding_of_residue(residue, taps, stride, dilation)
                pairs.append(split_same_padding(total, upper=upper))
            else:
                pairs.append(size_independent_padding(taps, stride, dilation, upper=upper))
        return tuple(pairs)


def auto_pad(site: Site) -> str | None:
    """Return the text of ``auto_pad``; None when the attribute is absent."""
    return None if attributes.find(site.node, "auto_pad") is None else site.text("auto_pad")


def read_window(site: Site) -> Window | Refusal:
    """Return the node's window, or why it can't be read."""
    node, op_type = site.node, site.node.op_type
    operator = WINDOW_OPERATORS[site.domain, op_type]
    for name in _READ:
        if attributes.is_reference(node, name):
            return Refusal(
                f"The attribute {name} of this node is given by the callers of {site.scope.path}, and they may differ: "
                "inline the function, or write a value for it in the function's body."
            )
    weights = None if operator.weights is None else site.input_type(operator.weights)
    kernel: tuple[int | None, ...]
    kernel_shape = attributes.integers(node, "kernel_shape")
    if kernel_shape:
        kernel = tuple(kernel_shape)
    elif weights is not None and weights.shape is not None:
        kernel = tuple(each if isinstance(each, int) else None for each in weights.shape[2:])
    elif operator.is_pool:
        return Refusal(f"{op_type} has no kernel_shape, which the specification requires: add the attribute.")
    else:
        known = site.input_type(0)
        if known is None or known.shape is None:
            return Refusal(
                "Neither kernel_shape nor the shape of the weights or of the input is known: add kernel_shape."
            )
        kernel = (None,) * (len(known.shape) - 2)
    if not kernel or any(taps is not None and taps < 1 for taps in kernel):
        return Refusal(f"kernel_shape={list(kernel)} is not a list of positive lengths: correct the model.")
    lists = {}
    for name in ("strides", "dilations"):
        values = attributes.integers(node, name)
        lists[name] = tuple(values) if values else (1,) * len(kernel)
        if len(lists[name]) != len(kernel) or any(value < 1 for value in lists[name]):
            return Refusal(
                f"{name}={list(lists[name])} does not fit a kernel of {len(kernel)} axes with lengths of 1 and more: "
                "correct the model."
            )
    if any(
        max(lists["strides"][axis], _span(kernel, lists["dilations"], axis)) > LONGEST for axis in range(len(kernel))
    ):
        return Refusal(
            f"kernel_shape={list(kernel)}, strides={list(lists['strides'])} and dilations={list(lists['dilations'])} "
            f"span more than {LONGEST} elements, which no runtime addresses: correct the model."
        )
    for name, since in (("dilations", _DILATIONS_SINCE), ("ceil_mode", _CEIL_MODE_SINCE)):
        if attributes.find(node, name) is not None and op_type in since and site.opset < since[op_type]:
            return Refusal(
                f"{op_type} has no attribute {name} before opset {since[op_type]} and this model is written for "
                f"opset {site.opset}, so runtimes ignore or reject it: remove it or raise the model's opset."
            )
    known = site.input_type(0)
    channels_last = operator.channels_last or attributes.integer(node, "channels_last", 0) == 1
    sizes: tuple[Dimension, ...] = (None,) * len(kernel)
    if known is not None and known.shape is not None:
        if len(known.shape) != len(kernel) + 2:
            return Refusal(
                f"The input has {len(known.shape)} axes, but the kernel has {len(kernel)}, which takes "
                f"{len(kernel) + 2}: correct the model."
            )
        sizes = known.shape[1:-1] if channels_last else known.shape[2:]
    return Window(
        site.domain,
        op_type,
        site.text("auto_pad"),
        kernel,
        lists["strides"],
        lists["dilations"],
        sizes,
        _elem_type(site, operator),
        channels_last,
    )


def _span(kernel: Sequence[int | None], dilations: Sequence[int], axis: int) -> int:
    return effective_kernel(kernel[axis] or 1, dilations[axis])


def _elem_type(site: Site, operator: WindowOperator) -> int | None:
    """Return the element type of the data, which that of its zero point, or of a plain convolution's weights, tells."""
    kin = operator.weights if operator.zero_point is None else operator.zero_point
    for position in (0, kin):
        known = None if position is None else site.input_type(position)
        if known is not None and known.elem_type:
            return known.elem_type
    return None


def flat(pairs: tuple[Pair, ...] | list[Pair]) -> list[int]:
    """Return pads in ONNX order: all begins, then all ends."""
    return [begin for begin, _ in pairs] + [end for _, end in pairs]


def has_indices(node: NodeProto) -> bool:
    """Whether a MaxPool also gives the positions of its maxima."""
    return node.op_type == "MaxPool" and len(node.output) > 1 and bool(node.output[1])


def needs_separate_pad(window: Window, pairs: tuple[Pair, ...]) -> bool:
    """Whether ONNX Runtime refuses these pads as an attribute: a pool's must be shorter than its kernel.

    It compares with the taps, not with the length that they span, so pads of a dilated pool can be too long for it.
    """
    too_long = any(taps is not None and max(pair) >= taps for pair, taps in zip(pairs, window.kernel, strict=True))
    return window.operator.is_pool and (too_long or (window.operator.is_maximum and _reads_padding_only(window, pairs)))


def _reads_padding_only(window: Window, pairs: Sequence[Pair]) -> bool:
    """Whether some dilated window lies in the padding with all its taps.

    Its maximum is minus infinity and its average not a number; ONNX Runtime gives finite numbers when the pads are an
    attribute.
    """
    axes = zip(pairs, window.sizes, window.kernel, window.strides, window.dilations, strict=True)
    return any(
        isinstance(size, int) and taps is not None and has_window_in_padding(size, taps, stride, dilation, *pair)
        for pair, size, taps, stride, dilation in axes
    )


def explicit_fragment(site: Site, pads: list[int] | None, *, same: bool) -> Fragment:
    """Return the node with ``pads`` in place of ``auto_pad``; None leaves the attribute ``pads`` as it is."""
    builder = site.builder()
    node = NodeProto()
    node.CopyFrom(site.node)
    attributes.remove(node, "auto_pad")
    if pads is not None:
        attributes.set_integers(node, "pads", pads)
    if same:
        # SAME pads make the division exact; with ceil_mode some runtimes would add a window where pads were cut to 0.
        attributes.remove(node, "ceil_mode")
    bind(builder, node, builder.original(node, [builder.input(name) for name in node.input]))
    return builder.build()


def bind(builder: FragmentBuilder, node: NodeProto, results: Any) -> None:
    """Give results of a copied node the names of the host's outputs; omitted outputs stay omitted."""
    for name, value in zip(node.output, results if isinstance(results, list) else [results], strict=True):
        builder.output(name, value)


def bare_node(site: Site) -> NodeProto:
    """Return a copy of the node that pads nothing."""
    node = NodeProto()
    node.CopyFrom(site.node)
    attributes.remove(node, "auto_pad", "pads", "ceil_mode", "count_include_pad")
    return node


def lowest(elem_type: int) -> np.ndarray:
    """Return what MaxPool pads with: minus infinity, or an integer type's least value; a scalar of that type."""
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    if np.issubdtype(dtype, np.integer):
        return np.array(np.iinfo(dtype).min, dtype)
    return np.array(-np.inf, dtype)


def runtime_opset(site: Site, window: Window) -> int:
    """Return the lowest opset that a Pad with computed pads (or a Pad of this element type) can be written in."""
    if window.elem_type == TensorProto.BFLOAT16:
        return 13
    return _DYNAMIC_PAD_SINCE


def needed_opset(site: Site, window: Window, pairs: tuple[Pair | None, ...]) -> int:
    """Return the lowest opset that SAME with these pads can be written in; 1 where they become an attribute.

    A Pad with known pads is as old as Pad is for floats; before opset 11 it takes no integers.
    """
    known = tuple(pair for pair in pairs if pair is not None)
    if len(known) == len(pairs):
        floats = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, None)
        if window.elem_type in floats or not needs_separate_pad(window, known):
            return 1
    return runtime_opset(site, window)


def trials(site: Site, window: Window, *, same: bool, as_declared: bool = False) -> tuple[Trial, ...]:
    """Return the shape cases to prove a rewrite on.

    Few channels; a known length is represented by a short one of the same residue modulo the stride; an unknown one by
    every residue (a choice of them when the stride is long), and by lengths below the kernel. Where positions are
    counted, or ``as_declared``, the known length itself is in the arithmetic, so nothing stands for it.
    """
    as_declared = as_declared or has_indices(site.node)
    options = [
        [max(size, 1)]
        if isinstance(size, int) and as_declared
        else _lengths(size, taps or 3, stride, dilation, same=same)
        for size, taps, stride, dilation in zip(
            window.sizes, window.kernel, window.strides, window.dilations, strict=True
        )
    ]
    count = min(_MAXIMUM_TRIALS, max(len(each) for each in options))
    if sum(len(each) > 1 for each in options) > 1:
        count = min(_MAXIMUM_TRIALS, count + 2)
    cases = []
    for case in range(count):
        # Axes walk through their lengths at different offsets, so that unequal residues meet.
        spatial = tuple(each[(case + axis * (case // len(each) + 1)) % len(each)] for axis, each in enumerate(options))
        cases.append(_trial(site, window, spatial))
    return tuple(cases)


def _lengths(size: Dimension, taps: int, stride: int, dilation: int, *, same: bool) -> list[int]:
    span = effective_kernel(taps, dilation)
    enough = span + stride
    if isinstance(size, int):
        if size <= enough + stride:
            return [max(size, 1)]
        return [enough + (size - enough) % stride]
    residues: list[int] | range = range(stride)
    residue = known_residue(size, stride)
    if residue is not None and stride > 1:
        first = span + (residue - span) % stride
        return [first, first + stride, first + 2 * stride, *([residue or stride] if same and dilation == 1 else [])]
    if stride > 8:
        residues = sorted({0, 1, 2, stride // 2, stride - 2, stride - 1, span % stride, (span + 1) % stride})
    lengths = [span + (residue - span) % stride for residue in residues]
    lengths.append(enough + 1)
    if same and dilation == 1:
        lengths += sorted({1, max(1, taps - 1)} - set(lengths))
    return lengths


def _trial(site: Site, window: Window, spatial: tuple[int, ...]) -> Trial:
    node, operator = site.node, window.operator
    elem_type = window.elem_type or TensorProto.FLOAT
    inputs: dict[str, TrialInput] = {}
    maps = 3
    if operator.weights is None:
        inputs[node.input[0]] = TrialInput(_data_shape(window, (2, 3), spatial), elem_type)
    else:
        group = attributes.integer(node, "group", 1)
        known = site.input_type(operator.weights)
        shape = known.shape if known is not None and known.shape is not None else (None, None)
        per_group = min(shape[1], 2) if isinstance(shape[1], int) else 2
        per_map = min(shape[0] // group, 2) if isinstance(shape[0], int) and shape[0] >= group else 2
        maps = group * per_map
        inputs[node.input[0]] = TrialInput(_data_shape(window, (1, group * per_group), spatial), elem_type)
        weight_type = known.elem_type if known is not None and known.elem_type else elem_type
        kernel = tuple(taps or 3 for taps in window.kernel)
        inputs[node.input[operator.weights]] = TrialInput((maps, per_group, *kernel), weight_type)
    for position, name in enumerate(node.input):
        if name and name not in inputs:
            inputs[name] = _side_input(site, window, position, maps, spatial)
    return inputs


def _data_shape(window: Window, leading: Pair, spatial: Sequence[int]) -> tuple[int, ...]:
    batch, channels = leading
    return (batch, *spatial, channels) if window.channels_last else (batch, channels, *spatial)


def _side_input(site: Site, window: Window, position: int, maps: int, spatial: Sequence[int]) -> TrialInput:
    """Bias, scales and zero points: a scale is a small positive number, a zero point the model's own if it is known."""
    operator = window.operator
    known = site.input_type(position)
    kind = known.elem_type if known is not None and known.elem_type else window.elem_type or TensorProto.FLOAT
    if position == operator.addend:
        return TrialInput(_data_shape(window, (1, maps), _output_sizes(site, window, spatial)), kind)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    if position == operator.bias:
        quantized = np.arange(maps).astype(dtype) if np.issubdtype(dtype, np.integer) else None
        return TrialInput((maps,), kind, quantized, quantized is not None)
    if position in operator.scales:
        # No power of two for the average's output: ONNX Runtime rounds ties of a global average in another way.
        scales = {1: 0.5, 3: 0.27, 4: 0.25, 6: 4.0}
        return TrialInput((), kind, np.array(scales[position], dtype), True)
    constant = site.constant(position)
    value = np.array(3 if constant is None or constant.size == 0 else constant.reshape(-1)[0], dtype)
    return TrialInput((), kind, value, True)


def _output_sizes(site: Site, window: Window, spatial: Sequence[int]) -> list[int]:
    if window.auto_pad in SAME:
        return [same_output_size(size, stride) for size, stride in zip(spatial, window.strides, strict=True)]
    pads = [0] * (2 * window.rank)
    if window.auto_pad != "VALID":
        pads = attributes.integers(site.node, "pads") or pads
    axes = zip(spatial, window.kernel, window.strides, window.dilations, strict=True)
    return [
        window_output_size(size, taps or 3, stride, dilation, pads[axis], pads[axis + window.rank])
        for axis, (size, taps, stride, dilation) in enumerate(axes)
    ]


def pad_at_run_time(site: Site, window: Window, pairs: tuple[Pair | None, ...]) -> Rewrite | Refusal:
    """Return the node behind a Pad: with known pads as numbers, the others computed from the input's shape.

    Where sizes are dynamic, the node itself pads what does not depend on them, and the Pad only adds what the begins
    lack, looked up by the residue. Where that is not to be, or can't be, it pads all there is, and the node nothing.

    For an axis of unknown length ``n`` with ``stride`` and ``span`` (the effective kernel):
    ``total = max(0, ceil(n / stride) * stride - stride + span - n)``; of it, ``total // 2`` elements go to the begin
    for SAME_UPPER and to the end for SAME_LOWER, the others to the opposite side.
    """
    if has_indices(site.node) and (refusal := no_position(window, pairs)):
        return refusal
    averaged = leaves_pads_out(site)
    if averaged and window.operator.zero_point is not None:
        return Refusal(
            f"A Pad before this {window.op_type} would count as data, and quantized averages can't be corrected "
            "exactly: fix the input's size (--shape), or set count_include_pad=1 if the pads are meant to count."
        )
    if window.elem_type is None and window.operator.is_pool:
        return Refusal("The element type of the input is not known, so neither is the value to pad with: declare it.")
    if any(taps is None for taps in window.kernel):
        return Refusal("The kernel's size is not known: add the attribute kernel_shape, or make the weights constant.")
    static = all(pair is not None for pair in pairs)
    opset = site.scope.opset if static else max(site.scope.opset, runtime_opset(site, window))
    quantized = dequantized_input(site, window, opset)
    builder = site.builder(opset)
    source = builder.input(site.node.input[0] if quantized is None else quantized.node.input[0])
    spatial_shape = None
    if averaged or not static:
        spatial_shape = spatial_shape_of(builder, source, window)
    node = bare_node(site)
    tables = None if static else _begins_to_add(site, window, pairs)
    if tables is None:
        pads = _PadsBuilder(builder, window, pairs, spatial_shape).build()
    else:
        lasting = _lasting_pairs(window, pairs)
        if any(map(any, lasting)):
            attributes.set_integers(node, "pads", flat(lasting))
            if attributes.integer(site.node, "count_include_pad", 0):
                attributes.set_integer(node, "count_include_pad", 1)
        rest_of = tuple(None if pair is None else (0, 0) for pair in pairs)
        pads = _PadsBuilder(builder, window, rest_of, spatial_shape, tables).build()
    value = None if quantized is not None and not averaged else _padding_value(site, builder, window)
    rest = [builder.input(name) for name in site.node.input[1:]]
    if quantized is None:
        padded = _pad(builder, source, pads, value, window)
    else:
        padded = padded_before(builder, quantized, source, pads)
    result = builder.original(node, [padded, *rest])
    if averaged:
        # Dividing by the average of ones leaves the sum over the input's own elements divided by their number.
        ones = ones_like(builder, spatial_shape, window)
        counted = builder.original(node, [_pad(builder, ones, pads, value, window)])
        result = builder.op("Div", [result, counted])
    if has_indices(site.node):
        result[1] = indices_in_input(site, builder, window, pairs, result[1], source, padded, pads)
    bind(builder, site.node, result)
    cases = trials(site, window, same=True)
    if quantized is None:
        return Rewrite(builder.build(), cases, exact=window.is_exact)
    cases = with_quantized_data(quantized, cases, site.node.input[0])
    return Rewrite(builder.build(), cases, exact=window.is_exact, replaces=(quantized.node,))


def _lasting_pairs(window: Window, pairs: Sequence[Pair | None]) -> tuple[Pair, ...]:
    """Return what can stand in the attribute: known pads, and of the others what does not depend on the size."""
    upper = window.auto_pad == "SAME_UPPER"
    axes = zip(pairs, window.kernel, window.strides, window.dilations, strict=True)
    return tuple(
        lasting_padding(taps or 1, stride, dilation, upper=upper) if pair is None else pair
        for pair, taps, stride, dilation in axes
    )


def _begins_to_add(site: Site, window: Window, pairs: Sequence[Pair | None]) -> list[list[int]] | None:
    """Return for each unknown axis what its begin lacks, by the length modulo the stride; None to pad apart altogether.

    The operator pads the rest itself, so the Pad writes less, and nothing at all where no begin has to grow.
    """
    unknown = [axis for axis, pair in enumerate(pairs) if pair is None]
    dilated = window.operator.is_pool and max(window.dilations) > 1  # its pads may be too long for an attribute
    if site.target.pads == "node" or dilated or has_indices(site.node):
        return None
    if sum(window.strides[axis] for axis in unknown) > _LONGEST_TABLE:
        return None
    upper, lasting = window.auto_pad == "SAME_UPPER", _lasting_pairs(window, pairs)
    tables = []
    for axis in unknown:
        stride, taps = window.strides[axis], window.kernel[axis] or 1
        sizes = [stride, *range(1, stride)]
        begins = [same_padding(size, taps, stride, window.dilations[axis], upper=upper)[0] for size in sizes]
        tables.append([begin - lasting[axis][0] for begin in begins])
    return tables


def leaves_pads_out(site: Site) -> bool:
    """Whether the node averages over the elements of the input only."""
    return "AveragePool" in site.node.op_type and attributes.integer(site.node, "count_include_pad", 0) == 0


def no_position(window: Window, pairs: Sequence[Pair | None]) -> Refusal | None:
    """Return why the positions of a MaxPool's maxima can't be given, or None."""
    known = tuple(pair for pair in pairs if pair is not None)
    if len(known) < len(pairs) or not _reads_padding_only(window, known):
        return None
    return Refusal(
        "Some window of this MaxPool lies in the padding with all its taps, so its second output, the position of "
        "the maximum in the input, has no value: correct the dilations, or stop using the indices."
    )


def indices_in_input(
    site: Site,
    builder: FragmentBuilder,
    window: Window,
    pairs: tuple[Pair | None, ...],
    indices: Any,
    source: Any,
    padded: Any,
    pads: Any,
) -> Any:
    """Return the positions that MaxPool gives for its ``padded`` input as positions in ``source`` itself.

    ``pads`` is the computed vector that holds the pairs that are None.
    """
    shapes: dict[str, Any] = {}

    def length(name: str, value: Any, axis: int) -> Any:
        if name not in shapes:
            shapes[name] = spatial_shape_of(builder, value, window)
        return _slice(builder, shapes[name], axis, axis + 1)

    sizes: list[Any] = []
    padded_sizes: list[Any] = []
    begins: list[Any] = []
    for axis, (size, pair) in enumerate(zip(window.sizes, pairs, strict=True)):
        sizes.append(size if isinstance(size, int) else length("source", source, axis))
        if isinstance(size, int) and pair is not None:
            padded_sizes.append(size + sum(pair))
        else:
            padded_sizes.append(length("padded", padded, axis))
        entry = window.leading + axis
        begins.append(_slice(builder, pads, entry, entry + 1) if pair is None else pair[0])
    return unpadded_indices(
        builder,
        indices,
        sizes=sizes,
        padded_sizes=padded_sizes,
        begins=begins,
        dilations=window.dilations,
        column_first=attributes.integer(site.node, "storage_order", 0) == 1,
    )


def pad_before(
    site: Site,
    builder: FragmentBuilder,
    window: Window,
    source: Any,
    pairs: Sequence[Pair],
    quantized: DequantizedInput | None = None,
) -> Any:
    """Return ``source`` behind a Pad of known amounts with what the operator pads with; no runtime fuses it wrongly.

    With ``quantized``, ``source`` is what that DequantizeLinear reads, and it stands behind the Pad.
    """
    pads = _PadsBuilder(builder, window, tuple(pairs), None).build()
    if quantized is not None:
        return padded_before(builder, quantized, source, pads)
    value = _padding_value(site, builder, window)
    return _pad(builder, source, pads, value, window)


def ones_like(builder: FragmentBuilder, spatial_shape: Any, window: Window) -> Any:
    """Return ones of the computed ``spatial_shape``, for one channel of one image."""
    dtype = helper.tensor_dtype_to_np_dtype(window.elem_type or TensorProto.FLOAT)
    one = helper.make_tensor("value", window.elem_type or TensorProto.FLOAT, [1], np.ones(1, dtype))
    leading = builder.constant(np.array([1, 1], np.int64), "one_channel")
    shape = builder.op("Concat", [leading, spatial_shape], {"axis": 0})
    return builder.op("ConstantOfShape", [shape], {"value": one})


def _padding_value(site: Site, builder: FragmentBuilder, window: Window) -> Any:
    """Return the scalar that the operator pads with."""
    if window.operator.is_maximum:
        assert window.elem_type is not None
        return builder.constant(lowest(window.elem_type), "lowest")
    zero_point = window.operator.zero_point
    if zero_point is not None and site.input_name(zero_point):
        known = site.input_type(zero_point)
        value = builder.input(site.input_name(zero_point))
        if known is not None and known.rank == 0:
            return value
        return builder.op("Reshape", [value, builder.constant(np.array([], np.int64), "scalar")])
    if window.elem_type is None:
        return builder.input("")
    return builder.constant(np.array(0, helper.tensor_dtype_to_np_dtype(window.elem_type)), "zero")


def spatial_shape_of(builder: FragmentBuilder, source: Any, window: Window) -> Any:
    start, end = window.leading, window.leading + window.rank
    if builder.opset >= 15:
        return builder.op("Shape", [source], {"start": start, "end": end} if window.channels_last else {"start": start})
    return _slice(builder, builder.op("Shape", [source]), start, end)


def _slice(builder: FragmentBuilder, vector: Any, start: int, end: int) -> Any:
    if builder.opset < 10:
        return builder.op("Slice", [vector], {"starts": [start], "ends": [end], "axes": [0]})
    bounds = [
        builder.constant(np.array([start], np.int64), "start"),
        builder.constant(np.array([end], np.int64), "end"),
    ]
    return builder.op("Slice", [vector, *bounds])


def _pad(builder: FragmentBuilder, source: Any, pads: Any, value: Any, window: Window) -> Any:
    fusible = window.domain == "" and window.operator.is_pool and not _is_lowest_below_zero(window)
    elem_type = window.elem_type or TensorProto.FLOAT
    if isinstance(pads, list) and builder.opset < 11:
        constant = float(value.values) if hasattr(value, "values") else 0.0
        padded = builder.op("Pad", [source], {"mode": "constant", "pads": pads, "value": constant})
        return no_op_pad(builder, padded, 2 + window.rank, elem_type) if fusible else padded
    if isinstance(pads, list):
        pads = builder.constant(np.array(pads, np.int64), "pads")
    # The input axes of Pad-18 is left out: ONNX Runtime 1.31 can't push a Transpose through a Pad that has it.
    padded = builder.op("Pad", [source, pads, value], {"mode": "constant"})
    return no_op_pad(builder, padded, 2 + window.rank, elem_type) if fusible else padded


def _is_lowest_below_zero(window: Window) -> bool:
    """Whether the operator is padded with something below zero, which ONNX Runtime never fuses."""
    return window.operator.is_maximum and bool(lowest(window.elem_type or TensorProto.FLOAT) < 0)


class _PadsBuilder:
    """The pads of a Pad in front of the window: a list when all are known, else a computed vector.

    The entries of the batch and channel axes, always 0, stand where those axes do.
    """

    def __init__(
        self,
        builder: FragmentBuilder,
        window: Window,
        pairs: tuple[Pair | None, ...],
        spatial_shape: Any,
        tables: list[list[int]] | None = None,
    ) -> None:
        """``tables`` give the begins of the unknown axes by the length modulo the stride; then their ends are 0."""
        self._builder = builder
        self._window = window
        self._pairs = pairs
        self._shape = spatial_shape
        self._tables = tables
        self._leading = window.leading
        self._trailing = 2 - window.leading

    def build(self) -> Any:
        unknown = [axis for axis, pair in enumerate(self._pairs) if pair is None]
        if not unknown:
            lead = [(0, 0)] * self._leading
            trail = [(0, 0)] * self._trailing
            return flat([*lead, *(pair for pair in self._pairs if pair is not None), *trail])
        begins, ends = self._halves(unknown) if self._tables is None else (self._looked_up(unknown, self._tables), None)
        parts: list[Any] = []
        for side, halves in ((0, begins), (1, ends)):
            unknown_entry = None if halves is not None else 0
            entries: list[int | None] = [0] * self._leading
            entries += [unknown_entry if pair is None else pair[side] for pair in self._pairs]
            entries += [0] * self._trailing
            parts += self._runs(entries, halves, len(unknown))
        return self._builder.op("Concat", self._merged(parts), {"axis": 0})

    def _runs(self, entries: list[int | None], halves: Any, count: int) -> list[Any]:
        """Return known entries as lists and runs of computed ones as (slices of) ``halves``, in order."""
        parts: list[Any] = []
        taken = 0
        for known, group in itertools.groupby(entries, key=lambda entry: entry is not None):
            run = list(group)
            if known:
                parts.append(run)
                continue
            whole = len(run) == count
            parts.append(halves if whole else _slice(self._builder, halves, taken, taken + len(run)))
            taken += len(run)
        return parts

    def _merged(self, parts: list[Any]) -> list[Any]:
        merged: list[Any] = []
        for part in parts:
            if isinstance(part, list) and merged and isinstance(merged[-1], list):
                merged[-1] = merged[-1] + part
            else:
                merged.append(part)
        return [
            self._builder.constant(np.array(part, np.int64), "known_pads") if isinstance(part, list) else part
            for part in merged
        ]

    def _lengths(self, unknown: list[int]) -> Any:
        if len(unknown) == self._window.rank:
            return self._shape
        return self._builder.op("Gather", [self._shape, self._vector(unknown, "axes")], {"axis": 0})

    def _looked_up(self, unknown: list[int], tables: list[list[int]]) -> Any:
        builder, strides = self._builder, [self._window.strides[axis] for axis in unknown]
        residues = builder.op("Mod", [self._lengths(unknown), self._vector(strides, "strides")])
        if all(table == list(range(len(table))) for table in tables):
            return residues
        if any(table != tables[0] for table in tables):
            offsets = list(itertools.accumulate(strides[:-1], initial=0))
            residues = builder.op("Add", [residues, self._vector(offsets, "first_of_axis")])
            table = [entry for each in tables for entry in each]
        else:
            table = tables[0]
        return builder.op("Gather", [self._vector(table, "begin_by_residue"), residues], {"axis": 0})

    def _halves(self, unknown: list[int]) -> tuple[Any, Any]:
        builder, window = self._builder, self._window
        strides = [window.strides[axis] for axis in unknown]
        spans = [effective_kernel(window.kernel[axis] or 1, window.dilations[axis]) for axis in unknown]
        lengths = self._lengths(unknown)
        stride = self._vector(strides, "strides")
        rounded = builder.op("Add", [lengths, self._vector([each - 1 for each in strides], "strides_less_1")])
        rounded = builder.op("Mul", [builder.op("Div", [rounded, stride]), stride])
        overhang = builder.op("Sub", [rounded, lengths])
        missing = [span - each for span, each in zip(spans, strides, strict=True)]
        total = builder.op("Add", [overhang, self._vector(missing, "kernel_less_stride")])
        if min(missing) < 0:  # a kernel shorter than the stride can leave elements over; they are not cut off
            zero = self._vector([0] * len(unknown), "no_pads")
            if builder.opset >= 12:
                total = builder.op("Max", [total, zero])
            else:  # Max takes no integers yet
                total = builder.op("Where", [builder.op("Greater", [total, zero]), total, zero])
        small = builder.op("Div", [total, self._vector([2] * len(unknown), "two")])
        big = builder.op("Sub", [total, small])
        return (small, big) if window.auto_pad == "SAME_UPPER" else (big, small)

    def _vector(self, values: list[int], hint: str) -> Any:
        return self._builder.constant(np.array(values, np.int64), hint)
