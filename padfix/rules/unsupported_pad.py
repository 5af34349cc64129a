"""PF112: a Pad that the target refuses, or computes wrongly."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from padfix.geometry.border import border_indices
from padfix.graph import attributes
from padfix.operators.constant_pad import given_pads
from padfix.operators.refusal import Refusal
from padfix.operators.traits import Traits, traits_of
from padfix.rules.base import Rewrite, Site, Trial, TrialInput
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.one_by_one import one_by_one
from padfix.rules.build.pad_node import sliced
from padfix.rules.build.target_rule import TargetRule

_LONGEST = 4096


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
        mode = site.text("mode", "constant") or "constant"
        cuts_elsewhere = any(cut) and mode != "constant"
        why_not = Refusal("what a negative amount takes away may be what is repeated") if cuts_elsewhere else None
        yield Form("all of it written out", operators, lambda: _written_out(site, added, cut), why_not)
        if mode != "constant":
            yield Form("one Gather an axis", (("Gather", {}),), lambda: _gathered(site, amounts, mode), _why_not(site))


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


def _why_not(site: Site) -> Refusal | None:
    known = site.input_type(0)
    lengths = () if known is None or known.shape is None else known.shape
    if not lengths or not all(isinstance(each, int) and 0 < each <= _LONGEST for each in lengths):
        return Refusal("it needs the lengths of the input (--shape)")
    return None


def _gathered(site: Site, amounts: list[int], mode: str) -> Rewrite | Refusal:
    known = site.input_type(0)
    assert known is not None
    assert known.shape is not None
    rank = len(amounts) // 2
    taken = {
        axis: border_indices(mode, length, amounts[axis], amounts[rank + axis])
        for axis, length in enumerate(known.shape)
        if isinstance(length, int) and (amounts[axis] or amounts[rank + axis])
    }
    return Rewrite(one_by_one(site, taken), _trials(site, rank), exact=True)
