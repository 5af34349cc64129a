"""Reductions and norms in operators that say less at once: a few axes, sums, matrices, quotients."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

from padfix.graph import attributes
from padfix.operators.clip import BOUNDS_AS_INPUT_SINCE
from padfix.operators.data_order import CHANNELS
from padfix.operators.followed_batch import drops_batch
from padfix.operators.gates import FAR
from padfix.operators.reductions import are_of_one_element, reduced_axes
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.along_axes import FLOATS, LONGEST, multiplied, multiplying, why_not_multiplied
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.extreme_forms import extreme_form, infinite_form
from padfix.rules.build.forms import Form
from padfix.rules.build.objections import Operators
from padfix.rules.build.passing_forms import reducing_nothing
from padfix.rules.build.product_forms import product_form
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

AT_ONCE = 2
"""Axes that every runtime reduces in one go."""

_PLANE = 4
"""Axes of an image with its batch and channels."""

_STEPWISE = ("ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
"""What gives the same when some of the axes are reduced, and then the others."""

_MATRIX = 2
"""Axes."""

_SHORT = 3
"""In place of a length that is not known, where a form is tried."""

Write = Callable[["FragmentBuilder", Any], Any]


def reduction_forms(site: Site) -> Iterator[Form]:
    """Yield a reduction step by step, as a sum of something, and as a product with ones."""
    known, axes = site.input_type(0), reduced_axes(site.scope, site.node)
    rank = None if known is None else known.rank
    if axes is None or rank is None:
        yield Form("other operators", (), _unwritten, Refusal("its axes are not known"))
        return
    if not axes and attributes.integer(site.node, "noop_with_empty_axes", 0):
        yield reducing_nothing(site)
        return
    if any(axis < 0 for axis in axes):
        yield _from_begin(site, [axis % max(rank, 1) for axis in axes])
    axes = sorted({axis % max(rank, 1) for axis in axes} & {*range(rank)}) or list(range(rank))
    op_type, kept = site.node.op_type, attributes.integer(site.node, "keepdims", 1) != 0
    if len(axes) == rank:
        bare = dict.fromkeys(("axes-listed", "axes-as-input", "axes-empty"), False)
        own = {**(traits_of(site.scope, site.node) or {}), **bare}

        def whole(builder: FragmentBuilder, value: Any) -> Any:
            return builder.op(op_type, [value], {"keepdims": int(kept)})

        yield Form("no axes listed", ((op_type, own),), partial(written, site, whole))
    if op_type in _STEPWISE and len(axes) > 1:
        yield from _stepwise_forms(site, axes, rank, kept=kept)
        if len(axes) == rank:
            yield _as_list(site, rank, kept)
    of_volume = op_type == "ReduceLogSumExp" and not kept and 0 in axes and _PLANE < rank != len(axes)
    if of_volume or (op_type in _BY_SUM and drops_batch(site.scope, site.node)):
        # The reduction that keeps its axes is found again, and has forms of its own.
        whole_form = _reshaped(site, [axes])
        yield dataclasses.replace(whole_form, operators=whole_form.operators[1:])
    if op_type == "ReduceLogSumExp":
        yield from in_a_row(site)
    if op_type in _BY_SUM:
        sums = tuple(
            (
                "ReduceSum",
                {
                    **reduction_traits("ReduceSum", site.opset, step),
                    "over-batch": _is_over_batch(site) and 0 in step,
                },
            )
            for step in steps_of(axes, AT_ONCE)
        )
        powers: Operators = (("Exp", {"falls-far": True}),) if op_type == "ReduceLogSumExp" else ()
        yield Form("a sum", (*powers, *sums), _by_sum(site, axes, kept), _without_roots(site))
        if powers:
            yield Form("a sum of what is not far below", sums, _by_sum(site, axes, kept, least=FAR))
            # What the target has against the sum has forms of its own.
            yield Form("a sum in a form of its own", powers, _by_sum(site, axes, kept))
    yield from _by_ones(site, axes, kept)
    if op_type in ("ReduceMax", "ReduceMin"):
        yield infinite_form(site)
        yield extreme_form(site, axes, kept)
    if op_type == "ReduceProd":
        yield product_form(site, axes, kept)
    if not kept:
        yield _reshaped(site, [axes])
    if not kept and op_type in _STEPWISE and len(axes) > 1:
        yield from _kept_stepwise(site, axes)


def _without_roots(site: Site) -> Refusal | None:
    """Return why a reduction is not written as what follows a sum: integers have no roots and logarithms."""
    is_written = site.node.op_type in ("ReduceL1", "ReduceSumSquare") or site.elem_type(0) in (0, *FLOATS)
    return None if is_written else Refusal("integers have no roots and logarithms")


def _from_begin(site: Site, axes: Sequence[int]) -> Form:
    """Return a reduction whose axes are counted from the begin."""
    as_input = len(site.node.input) > 1

    def write(builder: FragmentBuilder, value: Any) -> Any:
        node = copied(site.node)
        if not as_input:
            attributes.set_integers(node, "axes", axes)
        return builder.original(node, [value, builder.constant(np.array(axes, np.int64), "axes")][: 1 + as_input])

    own = {**(traits_of(site.scope, site.node) or {}), "added-axis-from-end": False, "axis-from-end": False}
    return Form("its axes from the begin", ((site.node.op_type, own),), partial(written, site, write))


def _as_list(site: Site, rank: int, kept: bool) -> Form:
    """Return a reduction of all axes as one of a list, which names no axis."""
    op_type = site.node.op_type

    def write(builder: FragmentBuilder, value: Any) -> Any:
        one = builder.op(op_type, [builder.reshaped(value, [-1])], {"keepdims": int(kept)})
        return builder.reshaped(one, [1] * rank) if kept else one

    own: Traits = {**(traits_of(site.scope, site.node) or {}), "rank": 1, "reduced-axes": 1, "of-volume": False}
    bare = dict.fromkeys(("axes-listed", "axes-as-input", "axes-empty", "several-of-volume"), False)
    last: Operators = (("Reshape", {"rank": rank}),) if kept else ()
    operators: Operators = (("Reshape", {"rank": 1}), (op_type, {**own, **bare}), *last)
    return Form("a reduction of a list", operators, partial(written, site, write))


def _stepwise_forms(site: Site, axes: Sequence[int], rank: int, *, kept: bool) -> Iterator[Form]:
    """Yield a reduction of two axes at a time, and of one; the last of which is asked what the whole was."""
    op_type, is_asked = site.node.op_type, bool((traits_of(site.scope, site.node) or {}).get("asked-for-infinity"))
    for most in (AT_ONCE, 1):
        steps = steps_of(axes, most)
        left = [rank - (0 if kept else sum(map(len, steps[:place]))) for place in range(len(steps))]
        is_volume = rank > _PLANE
        operators = tuple(
            (
                op_type,
                {
                    **reduction_traits(op_type, site.opset, step),
                    "reduces-all": len(step) == every,
                    "one-element": _is_of_one_element(site, step),
                    "over-batch": _is_over_batch(site) and 0 in step,
                    "moves-batch": 0 in step and not kept,
                    "drops-batch": 0 in step and drops_batch(site.scope, site.node),
                    "asked-for-infinity": is_asked,
                    "of-volume": is_volume,
                    "several-of-volume": is_volume and len(step) > 1,
                },
            )
            for step, every in zip(steps, left, strict=True)
        )
        write = partial(written, site, stepwise(op_type, axes, most, kept))
        yield Form(f"{most} of its axes at a time", operators, write)


def _is_over_batch(site: Site) -> bool:
    """Whether a reduction takes several images together."""
    return bool((traits_of(site.scope, site.node) or {}).get("over-batch"))


def _is_of_one_element(site: Site, axes: Sequence[int]) -> bool | None:
    """Whether each of these axes has one element, None where that depends on lengths that are left open."""
    known = site.input_type(0)
    return are_of_one_element([known.shape[axis] for axis in axes] if known is not None and known.shape else [])


def _kept_stepwise(site: Site, axes: Sequence[int]) -> Iterator[Form]:
    """Yield a reduction that keeps its axes: of two each time, one of them again if need be, or of one."""
    if len(axes) > AT_ONCE:
        # What is left of an axis that is reduced again has one element.
        yield _reshaped(site, [(axes[max(0, end - 2)], axes[max(1, end - 1)]) for end in range(len(axes), 0, -2)])
    yield _reshaped(site, [(axis,) for axis in reversed(axes)])


def _reshaped(site: Site, steps: Sequence[Sequence[int]]) -> Form:
    """Return a reduction that keeps its axes, in several steps or in one, which a Reshape or Squeeze takes away."""
    given, known, op_type = site.input_type(0), site.scope.type_of(site.node.output[0]), site.node.op_type
    rank = None if given is None else given.rank
    lengths = None if known is None else known.lengths
    squeezes = drops_batch(site.scope, site.node)

    def write(builder: FragmentBuilder, value: Any) -> Any:
        for step in steps:
            value = reduced(builder, op_type, value, step)
        if squeezes:
            return builder.unsqueezed(value, *sorted({axis for step in steps for axis in step}), back=True)
        return builder.reshaped(value, lengths) if lengths else as_number(builder, value)

    traits = [
        {
            **reduction_traits(op_type, site.opset, step),
            "moves-batch": False,
            "one-element": _is_of_one_element(site, step),
            "reduces-all": len(step) == rank,
            "of-volume": rank is not None and rank > _PLANE,
            "over-batch": _is_over_batch(site) and 0 in step,
        }
        for step in steps
    ]
    why_not = None if lengths is not None else Refusal("it needs the lengths of what it gives (--shape)")
    last: Operators = (("Reshape", {"rank": len(lengths)}),) if lengths else AS_NUMBER
    if squeezes:
        why_not = Refusal("it is a matrix, whose batch no Squeeze takes away") if rank == _MATRIX else None
        last = (("Squeeze", {"rank": rank}),)
    operators = (*((op_type, each) for each in traits), *last)
    at_once = "" if len(steps) == 1 else f"{len(steps[0])} at a time, "
    name = f"its axes kept, {at_once}and a {last[0][0]}"
    return Form(name, operators, partial(written, site, write), why_not)


_LAST = {
    **dict.fromkeys(("axes-listed", "axes-as-input", "axes-empty", "keeps-axis"), False),
    "reduces-all": True,
    "reduced-axes": 1,
    "rank": 1,
}

AS_NUMBER: Operators = (("Reshape", {"rank": 1}), ("ReduceMax", _LAST))
"""What :func:`as_number` consists of."""


def as_number(builder: FragmentBuilder, value: Any) -> Any:
    """Return one element without axes, as the maximum of a list: some importers read no shape without lengths."""
    return builder.op("ReduceMax", [builder.reshaped(value, [1])], {"keepdims": 0})


def reduction_traits(op_type: str, opset: int, axes: Sequence[int]) -> dict[str, bool | int]:
    """Return what a reduction is like that a form writes by :func:`reduced`."""
    return {
        "axes-as-input": _takes_axes_as_input(op_type, opset),
        "axes-listed": True,
        "axes-empty": False,
        "reduced-axes": len(axes),
        "reduces-channels": CHANNELS in axes and len(axes) > 1,
        "axis-from-end": any(axis < 0 for axis in axes),
    }


def _takes_axes_as_input(op_type: str, opset: int) -> bool:
    return opset >= (13 if op_type == "ReduceSum" else 18)


def zeros_of(builder: FragmentBuilder, value: Any, elem_type: int = TensorProto.FLOAT) -> Any:
    """Return zeros in the shape of floats, infinite ones and what is no number among them.

    A value is equal to itself or, where it is no number, not; either gives zero as a product with zero.
    """
    same = builder.op("Cast", [builder.op("Equal", [value, value])], {"to": int(elem_type)})
    zero = np.zeros(1, helper.tensor_dtype_to_np_dtype(elem_type))
    return builder.op("Mul", [same, builder.constant(zero, "zero")])


def reduced(builder: FragmentBuilder, op_type: str, value: Any, axes: Sequence[int], *, kept: bool = True) -> Any:
    """Return ``value`` with some axes reduced."""
    told: dict[str, Any] = {"keepdims": int(kept)}
    if _takes_axes_as_input(op_type, builder.opset):
        return builder.op(op_type, [value, builder.constant(np.array(axes, np.int64), "axes")], told)
    return builder.op(op_type, [value], {"axes": list(axes), **told})


def steps_of(axes: Sequence[int], most: int) -> list[Sequence[int]]:
    """Return the axes in groups, the last first, so that what is taken out moves none that is still to come."""
    return [axes[max(0, end - most) : end] for end in range(len(axes), 0, -most)]


def stepwise(op_type: str, axes: Sequence[int], most: int, kept: bool) -> Write:
    """Return what reduces at most so many axes at a time."""

    def write(builder: FragmentBuilder, value: Any) -> Any:
        for step in steps_of(axes, most):
            value = reduced(builder, op_type, value, step, kept=kept)
        return value

    return write


def _by_sum(site: Site, axes: Sequence[int], kept: bool, *, least: float | None = None) -> Callable[[], Rewrite]:
    """Return what writes the sum; of exponentials, what is less than ``least`` below the largest counts as that."""
    known = site.input_type(0)
    whole = known is not None and len(axes) == known.rank
    before, after = _BY_SUM[site.node.op_type]
    total = stepwise("ReduceSum", axes, AT_ONCE, kept)

    def write(builder: FragmentBuilder, value: Any) -> Any:
        return after(builder, total(builder, before(builder, value)))

    def exponential(builder: FragmentBuilder, value: Any) -> Any:
        shifted = builder.op("Sub", [value, stepwise("ReduceMax", axes, 1, True)(builder, value)])
        if least is not None:
            bound = np.array(least, helper.tensor_dtype_to_np_dtype(site.elem_type(0)))
            shifted = clipped(builder, shifted, bound, None)
        if not kept and whole:
            largest = stepwise("ReduceMax", axes, 1, True)(builder, value)
            summed = stepwise("ReduceSum", axes, AT_ONCE, True)(builder, builder.op("Exp", [shifted]))
            # A number that is computed is a list to some importers: it becomes one last.
            one = builder.op("Add", [builder.op("Log", [summed]), largest])
            return builder.op("ReduceMax", [one], {"keepdims": 0})
        logarithm = builder.op("Log", [total(builder, builder.op("Exp", [shifted]))])
        return builder.op("Add", [logarithm, stepwise("ReduceMax", axes, 1, kept)(builder, value)])

    return partial(written, site, exponential if site.node.op_type == "ReduceLogSumExp" else write)


def _same(builder: FragmentBuilder, value: Any) -> Any:
    return value


def _squared(builder: FragmentBuilder, value: Any) -> Any:
    return builder.op("Mul", [value, value])


def _by(op_type: str) -> Write:
    return lambda builder, value: builder.op(op_type, [value])


_BY_SUM: Mapping[str, tuple[Write, Write]] = {
    "ReduceL1": (_by("Abs"), _same),
    "ReduceL2": (_squared, _by("Sqrt")),
    "ReduceLogSum": (_same, _by("Log")),
    "ReduceLogSumExp": (_same, _same),
    "ReduceSumSquare": (_squared, _same),
}
"""What stands before and behind the sum; the logarithm of a sum of powers is written apart, so that none overflows."""


OF_ONES = frozenset({"ReduceSum", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare"})
"""What is a sum of something, which a product with ones gives."""


def about_sum(op_type: str) -> tuple[Write, Write]:
    """Return what stands before and behind the sum, or the mean, that a reduction is."""
    return _BY_SUM.get(op_type, (_same, _same))


def _by_ones(site: Site, axes: Sequence[int], kept: bool) -> Iterator[Form]:
    """Yield the reduction of one axis as a product with ones; of several, where images are taken together."""
    known = site.input_type(0)
    shape = None if known is None else known.shape
    mean = site.node.op_type == "ReduceMean"
    is_told = len(axes) == 1 or _is_over_batch(site)
    if not is_told or shape is None or not (mean or site.node.op_type in OF_ONES):
        return
    why_not, dtype = why_not_multiplied(site.elem_type(0), []), helper.tensor_dtype_to_np_dtype(site.elem_type(0))
    ones = {}
    for axis in axes:
        length = shape[axis]
        if not isinstance(length, int) or not 0 < length <= LONGEST:
            why_not, length = Refusal(f"an equal form needs the length of axis {axis} (--shape)"), 1
        ones[axis] = np.full((1, length), 1 / length if mean else 1, dtype)
    # One element is its own sum; ncnn gives no network of a product with a matrix of one.
    ones = {axis: row for axis, row in ones.items() if row.size > 1} or ones
    is_open = not all(isinstance(each, int) for each in shape[1:])
    before, after = about_sum(site.node.op_type)

    def write(builder: FragmentBuilder, value: Any) -> Any:
        value = after(builder, multiplied(builder, before(builder, value), ones, shape))
        if kept or is_open:
            return value if kept else builder.unsqueezed(value, *axes, back=True)
        left = [each for axis, each in enumerate(shape) if axis and axis not in axes and isinstance(each, int)]
        return builder.reshaped(value, [0, *left])

    operators = multiplying(ones, shape)
    if not kept:
        why_not = why_not or (Refusal("it takes out the batch") if 0 in axes else None)
        last = ("Squeeze", {"rank": len(shape)}) if is_open else ("Reshape", {"rank": len(shape) - len(axes)})
        operators = (*operators, last)
    yield Form("a product with ones", operators, partial(written, site, write), why_not)


def in_a_row(site: Site) -> Iterator[Form]:
    """Yield what sums the powers of a list on a matrix of one row: some importers keep lists for columns."""
    known = site.input_type(0)
    if known is None or known.rank != 1:
        return
    reduces = site.node.op_type.startswith("Reduce")

    def write(builder: FragmentBuilder, value: Any) -> Any:
        row = builder.reshaped(value, [1, -1])
        if not reduces:
            return builder.reshaped(builder.op(site.node.op_type, [row], {"axis": 1}), [-1])
        one = reduced(builder, site.node.op_type, row, [1])
        if attributes.integer(site.node, "keepdims", 1):
            return builder.reshaped(one, [1])
        return builder.op("ReduceMax", [one], {"keepdims": 0})

    # What the target has against it on a matrix has forms of its own.
    operators: Operators = (("Reshape", {"rank": 2}), ("Reshape", {"rank": 1}))
    yield Form("a matrix of one row", operators, partial(written, site, write))


def clipped(builder: FragmentBuilder, value: Any, least: np.ndarray | None, most: np.ndarray | None) -> Any:
    """Return ``value`` within bounds; None for one that is open."""
    bounds = {"min": least, "max": most}
    if builder.opset < BOUNDS_AS_INPUT_SINCE:
        return builder.op("Clip", [value], {name: float(each) for name, each in bounds.items() if each is not None})
    given = [least] if most is None else [least, most]
    return builder.op(
        "Clip", [value, *(builder.input("") if each is None else builder.constant(each, "bound") for each in given)]
    )


def unranked(site: Site) -> Refusal | None:
    """Return why a form that counts axes can't be written; None where their number is known."""
    known = site.input_type(0)
    return None if known is not None and known.rank is not None else Refusal("the rank of its input is not known")


def _unwritten() -> Rewrite | Refusal:
    return Refusal("There is no such form.")


def written(site: Site, write: Write, rank: int = 0, opset: int = 1) -> Rewrite:
    """Return what ``write`` makes of the data in place of the node, at ``opset`` or the newer one of the model.

    It is tried on ``rank`` axes where that is not known.
    """
    builder = site.builder(max(site.opset, opset))
    builder.output(site.node.output[0], write(builder, builder.input(site.input_name(0))))
    known = site.input_type(0)
    shape = known.shape if known is not None and known.shape is not None else [None] * rank
    lengths = tuple(each if isinstance(each, int) else _SHORT for each in shape)
    trial = {site.input_name(0): TrialInput(lengths, site.elem_type(0))}
    if len(site.node.input) > 1 and site.node.input[1]:
        axes = site.constant(1)
        assert axes is not None
        trial[site.input_name(1)] = TrialInput.of(axes)
    return Rewrite(builder.build(), (trial,))
