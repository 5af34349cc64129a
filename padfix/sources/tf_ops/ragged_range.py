"""RaggedRange (``tf.ragged.range``): a row of numbers for each start, limit and step.

tf2onnx counts one number too many where a row runs the wrong way and is empty.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor, concatenated, count_up, filled

OPERATORS = ("RaggedRange",)


def convert(builder: Builder, node: Any) -> tuple[Tensor, Tensor]:
    """Return where rows begin and end, and all their values; three scalars make one row."""
    if any(builder.ctx.get_rank(name) is None for name in node.input):
        raise ValueError(f"whether {node.name} makes one row of numbers or several is not known")
    start, limit, step = (builder.read(name) for name in node.input)
    steps = _whole_steps(limit - start, step) if start.dtype.kind in "iu" else ((limit - start) / step).ceil()
    sizes = steps.cast(INTEGER).maximum(0).reshape([-1])
    ends = builder.node("CumSum", [sizes, builder.integers(0)], INTEGER)
    splits = concatenated([builder.integers([0]), ends])
    total = splits.take(-1)
    # The row of a value is the number of rows that end at its place or before.
    none = filled(0, INTEGER, (total + 1).reshape([1]))
    ones = filled(1, INTEGER, ends.shape())
    endings = none.scattered(ends, ones, "add")
    places = count_up(builder, total, INTEGER)
    row = builder.node("CumSum", [endings, builder.integers(0)], INTEGER).take(places)
    within = (places - splits.take(row)).cast(start.dtype)
    ranks = [builder.ctx.get_rank(name) for name in (node.input[0], node.input[2])]
    first, by = (bound.take(row) if rank else bound for bound, rank in zip((start, step), ranks, strict=True))
    return splits.cast(builder.type_of(node.output[0])), first + within * by


def _whole_steps(distance: Tensor, step: Tensor) -> Tensor:
    """Return the quotient of integers rounded up."""
    wide, by = distance.cast(INTEGER), step.cast(INTEGER)
    rest = wide.remainder(by)
    return wide / by + (rest.equal(0).negated() & (rest.less(0).equal(by.less(0)))).cast(INTEGER)
