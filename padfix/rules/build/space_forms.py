"""Pools of a volume as those of a plane, and what moves elements between space and depth as a convolution."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.graph import attributes
from padfix.operators.data_order import is_in_blocks, number_of_channels
from padfix.operators.refusal import Refusal
from padfix.operators.traits import transposed_traits, window_traits
from padfix.operators.transposed import TransposedWindow
from padfix.operators.window import Window
from padfix.operators.written import Written
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.elementary_forms import reduced
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_PLANE = 4
"""Axes of an image with its batch and channels."""

_AXES_AS_INPUT_SINCE = 18

_MOST_WEIGHTS = 1 << 20


def pooling_forms(site: Site) -> Iterator[Form]:
    """Yield the pool of a volume as one of a plane; and a norm as what sums along axes."""
    known = site.input_type(0)
    rank = known.rank if known is not None and known.rank is not None else 0
    is_volume = rank > _PLANE
    node = copied(site.node)
    name = "a plane in place of a volume"
    yield _pooled(site, name, rank, lambda builder, value: builder.original(node, [value]), site.node.op_type)
    if site.node.op_type == "GlobalLpPool":
        power = attributes.integer(site.node, "p", 2) or 0
        norm = {1: "ReduceL1", 2: "ReduceL2"}.get(power)
        axes = list(range(2, _PLANE if is_volume else rank))

        def summed(builder: FragmentBuilder, value: Any) -> Any:
            return reduced(builder, norm or "", value, axes)

        def rooted(builder: FragmentBuilder, value: Any) -> Any:
            dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
            powers = [builder.constant(np.array(each, dtype), "power") for each in (power, 1 / power)]
            magnitudes = builder.op("Abs", [value])
            if power == 1:
                return reduced(builder, "ReduceSum", magnitudes, axes)
            total = reduced(builder, "ReduceSum", builder.op("Pow", [magnitudes, powers[0]]), axes)
            return builder.op("Pow", [total, powers[1]])

        if norm is not None and rank:
            yield _pooled(site, "a norm along axes", rank, summed, norm, as_it_is=not is_volume)
        if power > 0 and rank:
            yield _pooled(site, "the root of a sum of powers", rank, rooted, "ReduceSum", as_it_is=not is_volume)


def _pooled(
    site: Site,
    name: str,
    rank: int,
    pool: Callable[[FragmentBuilder, Any], Any],
    op_type: str,
    *,
    as_it_is: bool = False,
) -> Form:
    """Return what ``pool`` makes of the data, which is made a plane first and a volume again unless ``as_it_is``."""

    known = site.input_type(0)
    lengths = [each for each in (known.shape if known is not None and known.shape else ())[2:] if isinstance(each, int)]
    # A length that is told suits an empty batch as well.
    flat = math.prod(lengths) if lengths and len(lengths) == rank - 2 else -1

    name_of_data = site.input_name(0)
    channels = number_of_channels(site.scope, name_of_data) or 0
    copies = not channels and is_in_blocks(site.scope, name_of_data)

    def whole(builder: FragmentBuilder, value: Any) -> Any:
        if as_it_is:
            return pool(builder, value)
        return builder.reshaped(
            pool(builder, builder.reshaped(value, [0, channels, 1, flat])), [0, 0, *[1] * (rank - 2)]
        )

    axes = {
        "axes-as-input": site.opset >= _AXES_AS_INPUT_SINCE,
        "axes-listed": True,
        "axes-empty": False,
        "reduced-axes": max(min(rank, _PLANE) - 2, 0),
    }
    reshapes = (
        () if as_it_is else (("Reshape", {"rank": _PLANE, "copies-channels": copies}), ("Reshape", {"rank": rank}))
    )
    why_not = None if as_it_is or rank > _PLANE else Refusal("its data is no volume")
    return Form(
        name, (*reshapes, (op_type, {"rank": min(rank, _PLANE), **axes})), lambda: replaced(site, whole), why_not
    )


def depth_forms(site: Site) -> Iterator[Form]:
    """Yield what moves elements between space and depth as a convolution with one tap of 1 for each element."""
    block = attributes.integer(site.node, "blocksize", 0) or 0
    known = site.input_type(0)
    channels = known.shape[1] if known is not None and known.shape is not None and known.rank == _PLANE else None
    sizes = known.shape[2:] if known is not None and known.shape is not None else (None, None)
    is_transposed = site.node.op_type == "DepthToSpace"
    why_not = None
    if not isinstance(channels, int) or block < 1:
        why_not, channels = Refusal("the number of channels is not known"), 0
    elif site.elem_type(0) not in FLOATS:
        why_not = Refusal("convolutions are of floats")
    elif channels * channels * (1 if is_transposed else block**4) > _MOST_WEIGHTS:
        why_not = Refusal(f"it would have more than {_MOST_WEIGHTS} weights")
    written = Written(kernel_shape=(block, block), strides=(block, block))
    plain: dict[str, Any] = {
        "domain": "",
        "written": written,
        "kernel": (block, block),
        "strides": (block, block),
        "dilations": (1, 1),
        "sizes": sizes,
        "elem_type": site.elem_type(0),
        "channels": channels,
    }
    if is_transposed:
        window = TransposedWindow(**plain, op_type="ConvTranspose", output_padding=(0, 0), output_shape=None)
        operators = (("ConvTranspose", transposed_traits(window)),)
    else:
        operators = (("Conv", window_traits(Window(**plain, op_type="Conv", maps=channels * block**2))),)
    write = partial(_convolved, site, operators[0][0], block, channels)
    if block == 1:
        yield kept(site)
    yield Form("a convolution with weights of 0 and 1", operators, write, why_not)


def _convolved(site: Site, op_type: str, block: int, channels: int) -> Rewrite:
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
    deep = channels if op_type == "ConvTranspose" else channels * block**2
    shallow = deep // block**2
    is_column_first = op_type == "ConvTranspose" and site.text("mode", "DCR") == "CRD"
    weights = np.zeros((deep, shallow, block, block), dtype)
    for row in range(block):
        for column in range(block):
            place, maps = row * block + column, np.arange(shallow)
            first = maps * block**2 + place if is_column_first else place * shallow + maps
            weights[first, maps, row, column] = 1
    given = {"kernel_shape": [block, block], "strides": [block, block]}
    return replaced(
        site, lambda builder, value: builder.op(op_type, [value, builder.constant(weights, "weights")], given)
    )


def kept(site: Site) -> Form:
    """Return what gives its data as they are."""
    return Form(
        "its data as they are",
        (("Identity", {}),),
        lambda: replaced(site, lambda builder, value: builder.op("Identity", [value])),
    )


def replaced(site: Site, write: Callable[[FragmentBuilder, Any], Any]) -> Rewrite:
    """Return what ``write`` makes of the data in place of the node."""
    builder = site.builder()
    builder.output(site.node.output[0], write(builder, builder.input(site.input_name(0))))
    known = site.input_type(0)
    shape = [None] * _PLANE if known is None or known.shape is None else list(known.shape)
    block = attributes.integer(site.node, "blocksize", 1) or 1
    lengths = tuple(each if isinstance(each, int) else 2 * block for each in shape)
    trial = {site.input_name(0): TrialInput(lengths, site.elem_type(0))}
    if (told := site.constant(1)) is not None:
        trial[site.input_name(1)] = TrialInput.of(told)
    return Rewrite(builder.build(), (trial,), exact="Space" in site.node.op_type)
