"""Elements that move in many axes as blocks that change places with their neighbours, in four axes at the most."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from padfix.operators.constant_chains import worked_out
from padfix.operators.refusal import Refusal
from padfix.operators.turned_volumes import TurnedVolume, turned_volume
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.forms import SHAPE_AS_INPUT_SINCE, Form, by_another_rule
from padfix.rules.build.node_trials import like
from padfix.rules.build.objections import Operators

_SWAP = [0, 2, 1, 3]
"""The order of what comes before two blocks, the blocks, and what comes behind them."""


def block_swaps(site: Site) -> Iterator[Form]:
    """Yield a Reshape behind a Transpose behind a Reshape as exchanges of neighbours in four axes each.

    It is written in the place of the last of the three, the others wait for it.
    """
    volume = turned_volume(site.scope, site.node)
    known = None if volume is None else site.scope.type_of(volume.joined.output[0])
    turned = {"rank": len(_SWAP), "axes": len(_SWAP), "turned-back": False, "turned-back-alike": False}
    last = 0 if known is None else known.rank or 0
    operators: Operators = (("Reshape", {"rank": len(_SWAP)}), ("Transpose", turned), ("Reshape", {"rank": last}))
    why_not = None if volume is not None else Refusal("it stands in no turned volume of known lengths (--shape)")
    if volume is not None and site.opset < SHAPE_AS_INPUT_SINCE:
        why_not = Refusal("this opset has no Reshape to a shape that is an input")
    name = "neighbours exchanged in four axes"
    if volume is not None and volume.joined is not site.node:
        yield Form(name, operators, by_another_rule, why_not)
        return

    def write() -> Rewrite:
        assert volume is not None
        return _written(site, volume)

    yield Form(name, operators, write, why_not)


def _written(site: Site, volume: TurnedVolume) -> Rewrite:
    builder = site.builder()
    data, gives = site.scope.type_of(volume.split.input[0]), site.scope.type_of(volume.joined.output[0])
    assert data is not None
    assert gives is not None
    assert gives.lengths is not None
    value = builder.input(volume.split.input[0])
    for lengths in exchanges(volume.lengths, volume.order):
        value = builder.op("Transpose", [builder.reshaped(value, lengths)], {"perm": _SWAP})
    builder.output(site.node.output[0], builder.reshaped(value, gives.lengths))
    shapes = {each: worked_out(site.scope, each) for each in (volume.split.input[1], volume.joined.input[1])}
    told = {name: TrialInput.of(value) for name, value in shapes.items() if value is not None}
    trial = {**told, volume.split.input[0]: like(data)}
    return Rewrite(builder.build(), (trial,), exact=True, replaces=(volume.split, volume.turn))


def exchanges(lengths: Sequence[int], order: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """Return how long four axes are in each exchange of the two in the middle that together put axes in an order.

    Axes of one element are nowhere, so that none is exchanged for them alone.
    """
    target = [axis for axis in order if lengths[axis] != 1]
    now = sorted(target)
    steps = []
    for place, axis in enumerate(target):
        found = now.index(axis)
        if found == place:
            continue
        run = 1
        while target[place : place + run + 1] == now[found : found + run + 1] and found + run < len(now):
            run += 1
        blocks = now[:place], now[place:found], now[found : found + run], now[found + run :]
        before, first, second, behind = (math.prod(lengths[each] for each in block) for block in blocks)
        steps.append((before, first, second, behind))
        now = [*blocks[0], *blocks[2], *blocks[1], *blocks[3]]
    return steps
