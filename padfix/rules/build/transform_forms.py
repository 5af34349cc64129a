"""Equal forms of a DFT: of an axis that a runtime takes for what it is, of both sides, and as a product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.graph import attributes
from padfix.operators.plain_traits import DFT_AXIS_AS_INPUT_SINCE, dft_axis
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Site
from padfix.rules.build.along_axes import multiplied, multiplying, why_not_multiplied
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_forms import of_inputs
from padfix.rules.build.objections import Operators

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_PARTS = 2
"""What a complex number has: the real part, and the imaginary one."""


@dataclass(frozen=True)
class _Transform:
    """What a DFT does, as far as it is known.

    Attributes:
        axis: The axis that it transforms, from the begin.
        shape: The lengths of its data, the last of which is 1 for real ones and 2 for complex ones.
        length: The number of elements that are transformed; others are left out, or are zeros.
        kept: The number of elements of the result: about half of them where only one side is kept.
        turns_back: Whether it is the inverse.
        is_one_sided: Whether only one side is kept.
    """

    axis: int
    shape: tuple[Any, ...]
    length: int
    kept: int
    turns_back: bool
    is_one_sided: bool


def transform_forms(site: Site) -> Iterator[Form]:
    """Yield a DFT with its axis from the begin, or the first one; of both sides, which are cut; and as a product."""
    axis, known = dft_axis(site.scope, site.node), site.input_type(0)
    rank = 0 if known is None or known.rank is None else known.rank
    why_not = None if rank and axis is not None else Refusal("its axis, or how many there are, is not known")
    found = _read(site)
    own = {**(traits_of(site.scope, site.node) or {}), "axis-from-end": False, "axis-written": True}
    for turned in (False, True):
        turns = _turns(rank) if turned else ()
        traits = {**own, **({"first-axis": True} if turned else {})}
        name = "the first axis" if turned else "its axis from the begin"
        write = partial(_written, site, axis=axis or 0, rank=rank, turned=turned)
        operators = (*turns, ("DFT", traits))
        yield Form(name, operators, partial(of_inputs, site, write, exact=False), why_not)
        cut: Operators = (("Slice", {"rank": rank, "behind-window": False}),)
        operators = (*turns, ("DFT", {**traits, "one-sided": False}), *cut)
        write = partial(_written, site, axis=axis or 0, rank=rank, turned=turned, cut=found)
        yield Form(
            f"both sides, along {name.removeprefix('its ')}",
            operators,
            partial(of_inputs, site, write, exact=False),
            why_not or (found if isinstance(found, Refusal) else None) or _why_whole(found),
        )
    yield _product(site, found)


def _turns(rank: int) -> Operators:
    """Return the Transposes before and behind a transform, which exchange two axes."""
    return (("Transpose", {"rank": rank, "turned-back": False, "turned-back-alike": False}),)


def _read(site: Site) -> _Transform | Refusal:
    node, known, axis = site.node, site.input_type(0), dft_axis(site.scope, site.node)
    shape = () if known is None or known.shape is None else tuple(known.shape)
    given = site.constant(1) if len(node.input) > 1 and node.input[1] else None
    length = shape[axis] if axis is not None and axis < len(shape) else None
    if len(node.input) > 1 and node.input[1]:
        length = None if given is None else int(given.reshape(-1)[0])
    if axis is None or not isinstance(length, int) or not isinstance(shape[axis], int) or length < 1:
        return Refusal("its axis, or how long that is, is not known (--shape)")
    is_one_sided = attributes.integer(node, "onesided", 0) != 0
    kept = length // 2 + 1 if is_one_sided else length
    return _Transform(axis, shape, length, kept, attributes.integer(node, "inverse", 0) != 0, is_one_sided)


def _why_whole(found: _Transform | Refusal) -> Refusal | None:
    is_half = isinstance(found, _Transform) and found.is_one_sided and not found.turns_back
    return None if is_half else Refusal("it gives both sides, or is an inverse")


def _written(
    site: Site,
    builder: FragmentBuilder,
    value: Any,
    *others: Any,
    axis: int,
    rank: int,
    turned: bool,
    cut: _Transform | Refusal | None = None,
) -> Any:
    """Return a DFT along ``axis``, or along the first behind the batch, with which that is exchanged and back."""
    order = list(range(rank))
    order[1], order[axis] = axis, 1
    is_turned = turned and axis != 1
    place = 1 if turned else axis
    data = builder.op("Transpose", [value], {"perm": order}) if is_turned else value
    node = copied(site.node, without=("axis", "onesided") if cut else ("axis",))
    inputs = [data, *others]
    if builder.opset < DFT_AXIS_AS_INPUT_SINCE:
        attributes.set_integer(node, "axis", place)
    else:
        inputs = [data, builder.input(site.input_name(1)), builder.constant(np.array(place, np.int64), "axis")]
    result = builder.original(node, inputs)
    if isinstance(cut, _Transform):
        bounds = [builder.integers([each]) for each in (0, cut.kept, place)]
        result = builder.op("Slice", [result, *bounds])
    return builder.op("Transpose", [result], {"perm": order}) if is_turned else result


def _product(site: Site, found: _Transform | Refusal) -> Form:
    """Return the product with cosines and sines that a DFT is defined as."""
    name = "a product with cosines and sines"
    if isinstance(found, Refusal) or found.shape[-1] not in (1, _PARTS):
        unread = found if isinstance(found, Refusal) else Refusal("whether its data are real is not known")
        return Form(name, (), lambda: of_inputs(site, lambda *_: None, exact=False), unread)
    rank, parts = len(found.shape), found.shape[-1]
    order = list(range(rank))
    order[rank - 2], order[found.axis] = found.axis, rank - 2
    lengths = [found.shape[axis] for axis in order[:-2]]
    size = found.shape[found.axis] * parts
    is_turned = found.axis != rank - 2

    def write(builder: FragmentBuilder, value: Any, *_: Any) -> Any:
        dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
        data = builder.op("Transpose", [value], {"perm": order}) if is_turned else value
        flat = builder.reshaped(data, [*[0] * len(lengths), size])
        product = multiplied(builder, flat, {rank - 2: _weights(found, parts).astype(dtype)}, [*lengths, size])
        result = builder.reshaped(product, [*[0] * len(lengths), found.kept, _PARTS])
        return builder.op("Transpose", [result], {"perm": order}) if is_turned else result

    operators: Operators = (
        *(_turns(rank) if is_turned else ()),
        ("Reshape", {"rank": rank - 1}),
        *multiplying([rank - 2], [*lengths, size]),
        ("Reshape", {"rank": rank}),
    )
    why_not = why_not_multiplied(site.elem_type(0), [(size, _PARTS * found.kept)])
    if found.turns_back and found.is_one_sided:
        why_not = Refusal("it is the inverse of one side")
    return Form(name, operators, lambda: of_inputs(site, write, exact=False), why_not)


def _weights(found: _Transform, parts: int) -> np.ndarray:
    """Return the matrix of a DFT, (2 * kept, parts * elements): real and imaginary parts take turns."""
    elements = found.shape[found.axis]
    used = np.arange(elements) < found.length
    turns = np.outer(np.arange(found.kept), np.arange(elements)) % found.length / found.length
    angles = 2 * np.pi * turns * (-1 if found.turns_back else 1)
    scale = used / (found.length if found.turns_back else 1)
    cosine, sine = np.cos(angles) * scale, np.sin(angles) * scale
    pairs = np.array([[cosine, sine], [-sine, cosine]])[:, :parts]  # of the result, of the data, kept, elements
    return pairs.transpose(2, 0, 3, 1).reshape(_PARTS * found.kept, elements * parts)
