"""A node with its pads as an attribute, copies of nodes for other forms, and where an attribute does not do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from onnx import NodeProto, TensorProto

from padfix.geometry.padding import effective_kernel, has_window_in_padding, window_output_size
from padfix.graph import attributes
from padfix.graph.names import without_blanks
from padfix.operators.window import Pair, Window
from padfix.rules.base import Site

if TYPE_CHECKING:
    from padfix.graph.fragment import Fragment
    from padfix.graph.fragment_builder import FragmentBuilder

_PADS_INTEGERS_SINCE = 11
"""The first opset whose Pad takes its pads as an input, and integers."""


def flat(pairs: Sequence[Pair]) -> list[int]:
    """Return pads in ONNX order: all begins, then all ends."""
    return [begin for begin, _ in pairs] + [end for _, end in pairs]


def explicit_fragment(site: Site, pads: list[int] | None, *, same: bool) -> Fragment:
    """Return the node with ``pads`` in place of ``auto_pad``; None leaves the attribute ``pads`` as it is."""
    node = copied(site.node, without=("auto_pad",))
    if pads is not None:
        attributes.set_integers(node, "pads", pads)
    if same:
        # SAME pads make the division exact; with ceil_mode some runtimes would add a window where pads were cut to 0.
        attributes.remove(node, "ceil_mode")
    return site.only(node)


def copied(node: NodeProto, *, without: Sequence[str] = ()) -> NodeProto:
    """Return a copy of a node without some attributes."""
    copy = NodeProto()
    copy.CopyFrom(node)
    attributes.remove(copy, *without)
    return copy


def bare_node(site: Site) -> NodeProto:
    """Return a copy of the node that pads nothing."""
    return copied(site.node, without=("auto_pad", "pads", "ceil_mode", "count_include_pad"))


def bind(builder: FragmentBuilder, node: NodeProto, results: Any) -> None:
    """Give results of a copied node the names of the host's outputs; omitted outputs stay omitted."""
    for name, value in zip(
        without_blanks(node.output), results if isinstance(results, list) else [results], strict=True
    ):
        builder.output(name, value)


def is_too_long(window: Window, pairs: Sequence[Pair]) -> bool:
    """Whether some pad is as long as the kernel has taps, or longer: ONNX Runtime refuses such a pool.

    It compares with the taps, not with the length that they span, so pads of a dilated pool can be too long for it.
    """
    return any(taps is not None and max(pair) >= taps for pair, taps in zip(pairs, window.kernel, strict=True))


def reads_padding_only(window: Window, pairs: Sequence[Pair]) -> bool:
    """Whether some dilated window lies in the padding with all its taps.

    Its maximum is minus infinity and its average not a number; ONNX Runtime gives finite numbers when the pads are an
    attribute.
    """
    return any(
        isinstance(size, int) and taps is not None and has_window_in_padding(size, taps, stride, dilation, *pair)
        for (size, taps, stride, dilation), pair in zip(window.axes, pairs, strict=True)
    )


def needs_separate_pad(window: Window, pairs: Sequence[Pair]) -> bool:
    """Whether ONNX Runtime refuses these pads as an attribute of a pool, or gives it other numbers."""
    lowest_is_read = window.operator.is_maximum and reads_padding_only(window, pairs)
    return window.operator.is_pool and (is_too_long(window, pairs) or lowest_is_read)


def runtime_opset(window: Window) -> int:
    """Return the lowest opset that a Pad with computed pads (or a Pad of this element type) can be written in."""
    return 13 if window.elem_type == TensorProto.BFLOAT16 else _PADS_INTEGERS_SINCE


def needed_opset(window: Window, pairs: Sequence[Pair | None]) -> int:
    """Return the lowest opset that SAME with these pads can be written in; 1 where they become an attribute.

    A Pad with known pads is as old as Pad is for floats; before opset 11 it takes no integers.
    """
    known = [pair for pair in pairs if pair is not None]
    if len(known) < len(pairs):
        return runtime_opset(window)
    if not needs_separate_pad(window, known):
        return 1
    floats = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, None)
    return 2 if window.elem_type in floats else runtime_opset(window)


def same_windows(window: Window, own: tuple[Pair, ...], added: tuple[Pair, ...]) -> bool:
    """Whether ceil mode gives the same windows with all pads in the operator as with ``added`` in front of it.

    It drops a last window that starts in the operator's own end padding. ``window`` has the sizes before the Pad.
    """
    for (size, taps, stride, dilation), (begin, end), (before, after) in zip(window.axes, own, added, strict=True):
        taps = taps or 1
        if isinstance(size, int):
            separate = window_output_size(size + before + after, taps, stride, dilation, begin, end, ceil_mode=True)
            together = window_output_size(size, taps, stride, dilation, begin + before, end + after, ceil_mode=True)
            if separate != together:
                return False
        elif after and end + after + stride > effective_kernel(taps, dilation):
            return False
    return True
