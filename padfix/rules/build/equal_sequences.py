"""A recurrent layer that is told how long its sequences are, all alike, over what there is of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from padfix.graph import attributes
from padfix.graph.names import without_blanks
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import as_declared
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import padded_by, sliced

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_LENGTHS = 4
"""Which input tells how long each sequence of the batch is."""

_RANK = 4
"""Axes of all that a layer gives, behind the steps the directions, the batch and the state."""


def without_lengths(site: Site) -> Iterator[Form]:
    """Yield a layer over the steps that all sequences have, and zeros behind them, where constants tell how many."""
    if not site.input_name(_LENGTHS):
        return
    told, known = site.constant(_LENGTHS), site.input_type(0)
    batch_first = attributes.integer(site.node, "layout", 0) == 1
    axis = 1 if batch_first else 0
    shape = () if known is None or known.shape is None else known.shape
    steps = shape[axis] if shape else None
    lengths = set() if told is None else {int(each) for each in told.reshape(-1)}
    length = lengths.pop() if len(lengths) == 1 else 0
    rest = steps - length if isinstance(steps, int) else 0

    def write() -> Rewrite:
        builder = site.builder()
        node = copied(site.node)
        names = without_blanks(["" if place == _LENGTHS else name for place, name in enumerate(site.node.input)])
        given = [builder.input(name) for name in names]
        if rest:
            given[0] = sliced(builder, given[0], [0], [length], [axis])
        found = builder.originals(node, given)
        if rest and node.output[0]:
            found[0] = _with_zeros(builder, found[0], axis, rest)
        for name, value in zip(without_blanks(node.output), found, strict=True):
            if name:
                builder.output(name, value)
        return Rewrite(builder.build(), (as_declared(site),))

    why_not = None
    if not length or not isinstance(steps, int) or rest < 0:
        why_not = Refusal("its lengths are not constant and alike, or how many steps there are is not known (--shape)")
    # What else is special of the layer is looked at once it has no lengths.
    operators: Operators = ()
    if rest and site.node.output[0]:
        operators = (("Pad", {"mode": "constant", "rank": _RANK, "mode-written": True}),)
    if rest:
        operators = (("Slice", {"rank": len(shape), "first-axis": not axis}), *operators)
    yield Form("as many steps as all sequences have", operators, write, why_not)


def _with_zeros(builder: FragmentBuilder, value: Any, axis: int, steps: int) -> Any:
    """Return a sequence with so many steps of zeros behind it."""
    amounts = [0] * (2 * _RANK)
    amounts[_RANK + axis] = steps
    return padded_by(builder, value, amounts)
