"""PF112: a Pad that the target refuses, or computes wrongly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from onnx import helper

from padfix.geometry.border import border_indices
from padfix.graph import attributes
from padfix.graph.scopes import Dimension
from padfix.operators.constant_pad import given_pads
from padfix.operators.refusal import Refusal
from padfix.operators.traits import Traits, traits_of
from padfix.rules.base import Rewrite, Site, Trial, TrialInput
from padfix.rules.build.along_axes import (
    LONGEST,
    TAKING,
    multiplying,
    one_by_one,
    selection,
    weighed_and_summed,
    why_not_multiplied,
)
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.pad_node import sliced
from padfix.rules.build.target_rule import TargetRule


class UnsupportedPad(TargetRule):
    """A Pad that the target refuses, or runs and gives other numbers for.

    Importers know some of the modes, and not always the input `axes`, negative amounts, or a mode that is left out.
    `padfix targets NAME` lists what is known of each, with its evidence.

    padfix writes the mode and all axes out, cuts with a Slice what negative amounts take away, and takes the elements
    of the modes reflect, edge and wrap by one Gather an axis where the lengths are known.

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
            yield Form("all of it written out", (), _unwritten, amounts)
            return
        cut = [min(0, each) for each in amounts]
        added = [max(0, each) for each in amounts]
        plain: Traits = {**traits, "mode-written": True, "axes-listed": False, "negative": False}
        operators: tuple[tuple[str, Traits], ...] = (("Pad", plain),)
        if any(cut):
            operators = (*operators, ("Slice", {}))
        yield Form("all of it written out", operators, lambda: _written_out(site, added, cut))
        mode = site.text("mode", "constant") or "constant"
        if mode != "constant":
            known = site.input_type(0)
            lengths = () if known is None or known.shape is None else known.shape
            why_not = _why_not(lengths, amounts)
            yield Form("one Gather an axis", TAKING, lambda: _taken(site, amounts, mode), why_not)
            moved = [axis for axis in range(len(amounts) // 2) if amounts[axis] or amounts[len(amounts) // 2 + axis]]
            products = why_not or why_not_multiplied(
                site.elem_type(0), [(each, 2 * each) for each in lengths if isinstance(each, int)]
            )
            made_of = multiplying(moved, len(lengths))
            yield Form("products with matrices", made_of, lambda: _multiplied(site, amounts, mode), products)


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
    known = site.input_type(0)
    shape = [None] * rank if known is None or known.shape is None else list(known.shape)
    trials = []
    for more in (0, 1):
        lengths = tuple(each if isinstance(each, int) else 9 + more for each in shape)
        trial = {site.input_name(0): TrialInput(lengths, site.elem_type(0))}
        for position in range(1, len(site.node.input)):
            value = site.constant(position)
            if site.input_name(position):
                trial[site.input_name(position)] = (
                    TrialInput((), site.elem_type(position)) if value is None else TrialInput.of(value)
                )
        trials.append(trial)
    return tuple(trials)


def _written_out(site: Site, added: list[int], cut: list[int]) -> Rewrite | Refusal:
    builder = site.builder()
    rank = len(added) // 2
    value = builder.input(site.input_name(0))
    axes = [axis for axis in range(rank) if cut[axis] or cut[rank + axis]]
    if axes:
        ends = [cut[rank + axis] or int(np.iinfo(np.int64).max) for axis in axes]
        value = sliced(builder, value, [-cut[axis] for axis in axes], ends, axes)
    node = copied(site.node, without=("mode",))
    attributes.set_text(node, "mode", site.text("mode", "constant") or "constant")
    inputs = [value]
    if site.scope.opset < 11:
        attributes.set_integers(node, "paddings" if site.scope.opset < 2 else "pads", added)
    else:
        given = site.constant(1)
        same = given is not None and given.reshape(-1).tolist() == added and not site.input_name(3)
        pads = builder.input(site.input_name(1)) if same else builder.constant(np.array(added, np.int64), "pads")
        inputs += [pads, *([builder.input(site.input_name(2))] if site.input_name(2) else [])]
    builder.output(site.node.output[0], builder.original(node, inputs))
    return Rewrite(builder.build(), _trials(site, rank), exact=True)


def _why_not(lengths: Sequence[Dimension], amounts: Sequence[int]) -> Refusal | None:
    known = [each for each in lengths if isinstance(each, int) and 0 < each <= LONGEST]
    if len(known) < len(lengths) or 2 * len(known) != len(amounts):
        return Refusal("it needs the lengths of the input (--shape)")
    half = len(known)
    if any(length + min(0, amounts[axis]) + min(0, amounts[half + axis]) < 1 for axis, length in enumerate(known)):
        return Refusal("nothing is left that it could repeat")
    return None


def _indices(site: Site, amounts: list[int], mode: str) -> tuple[dict[int, list[int]], list[int]]:
    """Return the elements that are taken along each axis that changes, and the lengths of all axes."""
    known = site.input_type(0)
    lengths = [each for each in (known.shape if known is not None and known.shape else ()) if isinstance(each, int)]
    pairs = zip(amounts[: len(lengths)], amounts[len(lengths) :], strict=True)
    return {
        axis: border_indices(mode, length, *pair)
        for axis, (length, pair) in enumerate(zip(lengths, pairs, strict=True))
        if any(pair)
    }, lengths


def _taken(site: Site, amounts: list[int], mode: str) -> Rewrite | Refusal:
    indices, lengths = _indices(site, amounts, mode)
    return Rewrite(one_by_one(site, indices), _trials(site, len(lengths)), exact=True)


def _multiplied(site: Site, amounts: list[int], mode: str) -> Rewrite | Refusal:
    indices, lengths = _indices(site, amounts, mode)
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
    matrices = {axis: selection(each, lengths[axis]).astype(dtype) for axis, each in indices.items()}
    return Rewrite(weighed_and_summed(site, matrices, len(lengths)), _trials(site, len(lengths)), exact=True)
