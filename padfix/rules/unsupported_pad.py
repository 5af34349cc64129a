"""PF112: a Pad that the target refuses, or computes wrongly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from padfix.geometry.border import border_indices
from padfix.graph import attributes
from padfix.graph.scopes import Dimension
from padfix.operators.axis_order import order_of_axes
from padfix.operators.constant_chains import chain_of
from padfix.operators.constant_pad import given_pads
from padfix.operators.length_bounds import adds_nothing
from padfix.operators.pad_traits import axes_padded_behind, outer_traits
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site, Trial, TrialInput
from padfix.rules.build.along_axes import (
    FLOATS,
    LONGEST,
    TAKING,
    multiplied,
    multiplying,
    one_by_one,
    selection,
    taken,
    weighed_and_summed,
    why_not_multiplied,
)
from padfix.rules.build.as_floats import as_floats
from padfix.rules.build.cut_columns import padded_as_volumes
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import OPEN_LENGTH, as_declared, chain_trial
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import sliced
from padfix.rules.build.padded_images import as_image
from padfix.rules.build.repeated_borders import joined_slices
from padfix.rules.build.target_rule import TargetRule
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_INPUTS_SINCE = 11
"""The first opset whose Pad takes its amounts and its value as inputs."""

_MOST_ELEMENTS = 1 << 20
"""Of a value that is added where it is padded."""


class UnsupportedPad(TargetRule):
    """A Pad that the target refuses, or runs and gives other numbers for.

    Importers know some of the modes, and not always the input `axes`, negative amounts, or a mode that is left out.
    `padfix targets NAME` lists what is known of each, with its evidence.

    padfix writes the mode and all axes out, cuts with a Slice what negative amounts take away, and takes the elements
    of the modes reflect, edge and wrap by one Gather an axis where the lengths are known, by products with matrices, or
    joins slices about an axis of any length; where there is nothing before the last axis, it pads there as well, and
    takes the rest.

    Refused: amounts that are only known at run time, and modes that need lengths which are not known (`--shape`).

    Before, opset 17, for ncnn:

        main (float[1,3,8,8] X) => (float[1,3,10,10] Y) <int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}> {
          Y = Pad (X, pads)
        }

    After:

        Y = Pad <mode = "constant"> (X, pads)

    References:

    - The ONNX specification of Pad: <https://onnx.ai/onnx/operators/onnx__Pad.html>
    """

    code = "PF112"
    name = "unsupported-pad"
    operators = frozenset({("", "Pad")})

    def forms(self, site: Site) -> Iterator[Form]:
        """Yield the forms of a Pad, the nearest to what stands there first."""
        traits = traits_of(site.scope, site.node) or {}
        amounts = _amounts(site)
        if isinstance(amounts, Refusal):
            yield _left_out(site)
            yield Form("all of it written out", (), _unwritten, amounts)
            return
        cut = [min(0, each) for each in amounts]
        added = [max(0, each) for each in amounts]
        half = len(amounts) // 2
        ends = axes_padded_behind(site.scope, site.node, added) if half else []
        left_out = dict.fromkeys(("axes-listed", "negative", "value-unread"), False)
        told = {"mode-written": True, "end-alone": bool(ends), **left_out}
        plain: Traits = {**traits, **told, **outer_traits(added)}
        written: Operators = (("Pad", plain),)
        cuts: Operators = (("Slice", {"behind-window": False}),) if any(cut) else ()
        for opset in (site.scope.opset, *([_INPUTS_SINCE] if 1 < site.scope.opset < _INPUTS_SINCE else [])):
            write = partial(_written_out, site, added, cut, opset)
            yield Form("all of it written out", (*cuts, *written), write, opset=opset)
        mode = site.text("mode", "constant") or "constant"
        known = site.input_type(0)
        lengths = () if known is None or known.shape is None else known.shape
        why_not = _why_not(lengths, amounts)
        sizes = [(each, 2 * each) for _, each in _padded(lengths, amounts) if isinstance(each, int)]
        no_products = why_not or why_not_multiplied(site.elem_type(0), sizes)
        if mode == "constant" and ends:
            both: Operators = (("Pad", {**plain, "end-alone": False}), ("Gather", {}))
            sizes_there = {axis: size for axis in ends if lengths and isinstance(size := lengths[axis], int)}
            is_known = len(sizes_there) == len(ends) and not any(cut)
            no_length = None if is_known else Refusal("it needs the length of the last axis (--shape)")
            write = partial(_at_both_ends, site, added, sizes_there)
            yield Form("a Pad at both ends, and a Gather", both, write, no_length)
        if mode == "constant" and traits.get("value") == "zero" and traits.get("value-given"):
            zeros: Operators = (*cuts, ("Pad", {**plain, "value-given": False}))
            yield Form(
                "its zero left out", zeros, partial(_written_out, site, added, cut, site.scope.opset, value=False)
            )
        if mode == "constant" and traits.get("value") == "finite":
            yield from (_filled(site, added, cuts, written, is_for_all=each) for each in (False, True))
        if mode == "constant":
            yield from padded_as_volumes(site, plain, added, cut, _value_of(site))
            beside = [_beside_another(site, plain, added, cut)] if traits.get("pads-line-of-bytes") else []
            yield from [*beside, _joined_about(site, added, cut)]
        if mode != "constant":
            yield Form("one Gather an axis", TAKING, lambda: _taken(site, amounts, mode), why_not)
            products = multiplying(
                [axis for axis in range(half) if amounts[axis] or amounts[half + axis]], lengths, site
            )
            yield Form("products with matrices", products, lambda: _multiplied(site, amounts, mode), no_products)
            trials = _trials(site, half)
            pieces = list(joined_slices(site, amounts, mode, lengths, trials))
            image = as_image(site, plain, amounts, mode, trials)
            yield from [image, *pieces] if sum(added) > _FEW else [*pieces, image]
        elif any(cut):
            products = multiplying([axis for axis in range(half) if cut[axis] or cut[half + axis]], lengths, site)
            write = partial(_written_out, site, added, cut, site.scope.opset, by_products=True)
            yield Form("products with matrices and a Pad", (*products, *written), write, no_products)
        if site.elem_type(0) == TensorProto.BOOL or traits.get("reads-constant-bytes"):
            yield from as_floats(site)


_IMAGES = 3
"""Axes from which on the first is how many images or lines there are."""

_FEW = 8
"""Elements that are joined one by one sooner than a line becomes an image."""

_OPEN = 9
"""The length of an axis that is left open, where it is padded by less."""


def _left_out(site: Site) -> Form:
    """Return nothing in the place of a Pad that gives an empty batch a row, and adds nothing to any other."""
    producer = site.scope.own_producer(site.input_name(1))
    chain = None if producer is None else chain_of(site.scope, producer, open_lengths=True)
    is_needless = chain is not None and adds_nothing(site.scope, site.node) and not site.target.empty_batch

    def write() -> Rewrite:
        builder = site.builder()
        builder.output(site.node.output[0], builder.op("Identity", [builder.input(site.input_name(0))]))
        trials = []
        for length in (1, OPEN_LENGTH):
            own = {name: each for name, each in as_declared(site, length).items() if name != site.input_name(1)}
            trials.append({**chain_trial(site.scope, chain or (), length), **own})
        return Rewrite(builder.build(), tuple(trials), exact=True, replaces=tuple(chain or ()))

    why_not = None if is_needless else Refusal("it may add something")
    return Form("nothing in its place", (), write, why_not)


def _value_of(site: Site) -> Any:
    """Return what is padded with, None where that is not constant."""
    if site.input_name(2):
        return site.constant(2)
    attribute = attributes.find(site.node, "value")
    return 0.0 if attribute is None else attribute.f


def _filled(site: Site, added: list[int], cuts: Operators, written: Operators, *, is_for_all: bool) -> Form:
    """Return a Pad with zeros, to which the value is added where there are no elements, of each image or of all."""
    known = site.scope.type_of(site.node.output[0])
    lengths = None if known is None else known.copied
    half = len(added) // 2
    fill = _value_of(site)
    are_alike = bool(lengths) and added[0] == 0 == added[half]
    if lengths and are_alike and (is_for_all or lengths[0] == 0):
        lengths = (1, *lengths[1:])  # what is added to one image is added to all

    def write() -> Rewrite | Refusal:
        assert lengths is not None
        dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
        more = np.full(lengths, fill, dtype)
        more[tuple(slice(added[axis], lengths[axis] - added[half + axis]) for axis in range(half))] = 0
        builder = site.builder()
        node, inputs = _whole_node(site, builder, added)
        zeros = builder.original(copied(node, without=("value",)), [builder.input(site.input_name(0)), *inputs[:1]])
        builder.output(site.node.output[0], builder.op("Add", [zeros, builder.constant(more, "more")]))
        return Rewrite(builder.build(), _trials(site, half), exact=True)

    why_not = None
    if not lengths or 0 in lengths or math.prod(lengths) > _MOST_ELEMENTS or site.elem_type(0) not in FLOATS:
        why_not = Refusal("it needs all lengths, not too many elements, and floats (--shape)")
    elif cuts or fill is None:
        why_not = Refusal("it takes elements away, or its value is not constant")
    elif is_for_all and not are_alike:
        why_not = Refusal("it pads the first axis")
    zeros: Operators = tuple(
        (op_type, {**traits, "value": "zero", "value-given": False}) for op_type, traits in written
    )
    images = bool(lengths) and half >= _IMAGES and (lengths or (1,))[0] > 1
    name = f"a Pad with zeros, and a sum{' with the same for every image' if is_for_all else ''}"
    return Form(name, (*zeros, ("Add", {"numbers-images": images})), write, why_not)


def _joined_about(site: Site, added: list[int], cut: list[int]) -> Form:
    """Return a Pad as constants joined before and behind the data, an axis after the other."""
    known = site.input_type(0)
    lengths = None if known is None else known.lengths
    half = len(added) // 2
    fill = _value_of(site)
    given = site.input_type(2) if site.input_name(2) else None

    def write() -> Rewrite | Refusal:
        assert lengths is not None
        dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
        builder = site.builder()
        data = builder.input(site.input_name(0))
        result = _cut(site, builder, data, cut)
        sizes = [length + cut[axis] + cut[half + axis] for axis, length in enumerate(lengths)]
        for axis in range(half):
            sides = [(*sizes[:axis], added[place], *sizes[axis + 1 :]) for place in (axis, half + axis)]
            filling = np.asarray(1 if fill is None else fill, dtype).reshape(())
            first, second = (np.full(each, filling) for each in sides)
            before, behind = ([builder.constant(each, "side")] if each.size else [] for each in (first, second))
            if fill is None:
                value = builder.input(site.input_name(2))
                before, behind = ([builder.op("Mul", [*each, value])] if each else [] for each in (before, behind))
            pieces = [*before, result, *behind]
            result = builder.op("Concat", pieces, {"axis": axis}) if len(pieces) > 1 else result
            sizes[axis] += added[axis] + added[half + axis]
        builder.output(site.node.output[0], builder.op("Identity", [result]) if result is data else result)
        return Rewrite(builder.build(), _trials(site, half), exact=True)

    why_not = None
    if lengths is None or len(lengths) != half or 0 in lengths or math.prod(lengths) > _MOST_ELEMENTS:
        why_not = Refusal("it needs all lengths, and not too many elements (--shape)")
    elif np.size(fill) != 1 or (fill is None and (given is None or given.shape not in ((), (1,)))):
        why_not = Refusal("its value is none, or its shape is not known")
    elif fill is None and site.elem_type(0) not in FLOATS:
        why_not = Refusal("its value is only known at run time, and no float")
    elif any(length + cut[axis] + cut[half + axis] < 1 for axis, length in enumerate(lengths)):
        why_not = Refusal("nothing is left of it")
    operators: Operators = (("Slice", {"behind-window": False}), ("Concat", {})) if any(cut) else (("Concat", {}),)
    if fill is None:
        operators = (*operators, ("Mul", {"gate-second": False}))
    return Form("constants joined about it", operators, write, why_not)


def _unwritten() -> Rewrite | Refusal:
    return Refusal("The amounts are only known at run time.")


def _amounts(site: Site) -> list[int] | Refusal:
    """Return the amounts for every axis of the data, all begins first."""
    given = given_pads(site.scope, site.node)
    data = site.input_type(0)
    if given is None:
        return Refusal("the amounts are only known at run time")
    if not site.input_name(3):
        return given
    axes = site.constant(3)
    if axes is None or data is None or data.rank is None:
        return Refusal("the axes, or how many there are, are not known")
    rank, half = data.rank, len(given) // 2
    amounts = [0] * (2 * rank)
    for position, axis in enumerate(axes.reshape(-1).tolist()):
        amounts[axis % rank] = given[position]
        amounts[rank + axis % rank] = given[half + position]
    return amounts


def _trials(site: Site, rank: int) -> tuple[Trial, ...]:
    """Return data of two lengths for each that is left open, longer than what is mirrored of it."""
    known, amounts = site.input_type(0), _amounts(site)
    shape = [None] * rank if known is None or known.shape is None else list(known.shape)
    added = [0] * (2 * rank) if isinstance(amounts, Refusal) or len(amounts) != 2 * rank else amounts
    least = [max(_OPEN, 1 + max(added[axis], added[rank + axis])) for axis in range(rank)]
    trials = []
    for more in (0, 1):
        lengths = tuple(
            each if isinstance(each, int) else length + more for each, length in zip(shape, least, strict=True)
        )
        trial = {site.input_name(0): TrialInput(lengths, site.elem_type(0))}
        for position in range(1, len(site.node.input)):
            value = site.constant(position)
            if site.input_name(position):
                trial[site.input_name(position)] = (
                    TrialInput((), site.elem_type(position)) if value is None else TrialInput.of(value)
                )
        trials.append(trial)
    return tuple(trials)


def _at_both_ends(site: Site, added: list[int], sizes: Mapping[int, int]) -> Rewrite | Refusal:
    """Return the Pad with an element before the axes of these ``sizes`` as well, which is not taken."""
    builder = site.builder()
    half = len(added) // 2
    both = [1 if place in sizes else amount for place, amount in enumerate(added)]
    node, more = _whole_node(site, builder, both)
    padded = builder.original(node, [builder.input(site.input_name(0)), *more])
    kept = {axis: range(1, 1 + size + added[half + axis]) for axis, size in sizes.items()}
    builder.output(site.node.output[0], taken(builder, padded, kept))
    return Rewrite(builder.build(), _trials(site, half), exact=True)


def _beside_another(site: Site, plain: Traits, added: list[int], cut: list[int]) -> Form:
    """Return a Pad of another axis as well, by an element that a Slice leaves out."""
    half = len(added) // 2
    free = [axis for axis in range(half) if not added[axis] and not added[half + axis]]
    both = [amount + (place - half in free[-1:]) for place, amount in enumerate(added)]

    def write() -> Rewrite:
        builder = site.builder()
        node, more = _whole_node(site, builder, both)
        padded = builder.original(node, [builder.input(site.input_name(0)), *more])
        builder.output(site.node.output[0], sliced(builder, padded, [0], [-1], free[-1:]))
        return Rewrite(builder.build(), _trials(site, half), exact=True)

    ends = axes_padded_behind(site.scope, site.node, both) if half else []
    padding: Traits = {**plain, **outer_traits(both), "pads-line-of-bytes": False, "end-alone": bool(ends)}
    operators: Operators = (("Pad", padding), ("Slice", {"behind-window": False}))
    why_not = None if free and not any(cut) else Refusal("it pads all axes, or cuts some")
    return Form("a Pad of another axis as well, and a Slice", operators, write, why_not)


def _written_out(
    site: Site, added: list[int], cut: list[int], opset: int, *, by_products: bool = False, value: bool = True
) -> Rewrite | Refusal:
    builder = site.builder(opset)
    rank = len(added) // 2
    data = builder.input(site.input_name(0))
    if any(cut) and by_products:
        indices, lengths = _indices(site, cut, "edge")
        data = multiplied(builder, data, _matrices(site, indices, lengths), lengths, site)
    else:
        data = _cut(site, builder, data, cut)
    node, more = _whole_node(site, builder, added)
    builder.output(site.node.output[0], builder.original(node, [data, *(more if value else more[:1])]))
    return Rewrite(builder.build(), _trials(site, rank), exact=True)


def _cut(site: Site, builder: FragmentBuilder, value: Any, cut: list[int]) -> Any:
    """Return the value without what negative amounts take away."""
    rank = len(cut) // 2
    axes = [axis for axis in range(rank) if cut[axis] or cut[rank + axis]]
    if not axes:
        return value
    axes = [axes[place] for place in order_of_axes(site.scope, site.node, axes)]
    ends = [cut[rank + axis] or int(np.iinfo(np.int64).max) for axis in axes]
    return sliced(builder, value, [-cut[axis] for axis in axes], ends, axes)


def _whole_node(site: Site, builder: FragmentBuilder, added: list[int]) -> tuple[NodeProto, list[Any]]:
    """Return the Pad with all of it written out, and its inputs behind the data."""
    opset = builder.opset
    node = copied(site.node, without=("mode", "value", "pads") if opset >= _INPUTS_SINCE else ("mode",))
    attributes.set_text(node, "mode", site.text("mode", "constant") or "constant")
    if opset < _INPUTS_SINCE:
        attributes.set_integers(node, "paddings" if opset < 2 else "pads", added)
        return node, []
    given = site.constant(1)
    same = given is not None and given.reshape(-1).tolist() == added and not site.input_name(3)
    pads = builder.input(site.input_name(1)) if same else builder.constant(np.array(added, np.int64), "pads")
    return node, [pads, *_fill(site, builder)]


def _fill(site: Site, builder: FragmentBuilder) -> list[Any]:
    """Return what the Pad adds as its third input, if it has one to be: modes but constant read none."""
    if site.text("mode", "constant") not in ("constant", ""):
        return []
    if site.input_name(2):
        return [builder.input(site.input_name(2))]
    value = attributes.find(site.node, "value")
    if value is None or site.scope.opset >= _INPUTS_SINCE:
        return []
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
    return [builder.constant(np.array(value.f, dtype), "value")]


def _padded(lengths: Sequence[Dimension], amounts: Sequence[int]) -> list[tuple[int, Dimension]]:
    """Return each axis that changes, with its length."""
    half = len(amounts) // 2
    return [(axis, each) for axis, each in enumerate(lengths[:half]) if amounts[axis] or amounts[half + axis]]


def _why_not(lengths: Sequence[Dimension], amounts: Sequence[int]) -> Refusal | None:
    known = [(axis, each) for axis, each in _padded(lengths, amounts) if isinstance(each, int) and 0 < each <= LONGEST]
    if len(known) < len(_padded(lengths, amounts)) or 2 * len(lengths) != len(amounts):
        return Refusal("it needs the lengths of the input (--shape)")
    half = len(lengths)
    if any(length + min(0, amounts[axis]) + min(0, amounts[half + axis]) < 1 for axis, length in known):
        return Refusal("nothing is left that it could repeat")
    return None


def _indices(site: Site, amounts: list[int], mode: str) -> tuple[dict[int, list[int]], list[Dimension]]:
    """Return the elements that are taken along each axis that changes, and the lengths of all axes."""
    known = site.input_type(0)
    lengths = list(known.shape) if known is not None and known.shape else []
    half = len(lengths)
    return {
        axis: border_indices(mode, length, amounts[axis], amounts[half + axis])
        for axis, length in _padded(lengths, amounts)
        if isinstance(length, int)
    }, lengths


def _taken(site: Site, amounts: list[int], mode: str) -> Rewrite | Refusal:
    indices, lengths = _indices(site, amounts, mode)
    return Rewrite(one_by_one(site, indices), _trials(site, len(lengths)), exact=True)


def _multiplied(site: Site, amounts: list[int], mode: str) -> Rewrite | Refusal:
    indices, lengths = _indices(site, amounts, mode)
    fragment = weighed_and_summed(site, _matrices(site, indices, lengths), lengths)
    return Rewrite(fragment, _trials(site, len(lengths)), exact=True)


def _matrices(site: Site, indices: Mapping[int, Sequence[int]], lengths: Sequence[Dimension]) -> dict[int, np.ndarray]:
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
    return {
        axis: selection(each, length).astype(dtype)
        for axis, each in indices.items()
        if isinstance(length := lengths[axis], int)
    }
