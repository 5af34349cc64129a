"""CTCGreedyDecoder (``tf.nn.ctc_greedy_decoder``): the likeliest class at each step, without blanks and repeats.

tf2onnx sums the largest inputs of all steps, those behind a sequence's end too, and takes the last class for the blank
whatever ``blank_index`` says.
"""

from __future__ import annotations

from typing import Any

from padfix.sources.tf_ops.tensor import INTEGER, Builder, Tensor, concatenated, count_up, filled, join
from padfix.sources.tf_ops.windows import reduce

OPERATORS = ("CTCGreedyDecoder",)


def convert(builder: Builder, node: Any) -> list[Tensor]:
    """Return where each symbol stands, the symbols, how many rows and columns they take, and minus each likelihood."""
    inputs, lengths = (builder.read(name) for name in node.input)
    steps, batch, classes = inputs.lengths(range(3))
    best = builder.node("ArgMax", [inputs], INTEGER, {"axis": 2, "keepdims": 0})
    is_in_time = count_up(builder, steps, INTEGER).unsqueeze([1]).less(lengths.cast(INTEGER).unsqueeze([0]))
    blank_index = node.get_attr_value("blank_index", -1)
    blank = builder.integers(blank_index) if blank_index >= 0 else classes + blank_index
    is_kept = is_in_time & best.equal(blank).negated()
    if node.get_attr_value("merge_repeated", False):
        none = filled(-1, INTEGER, join(builder, [1, batch]))
        before = concatenated([none, best.part(0, -1, 0)])  # what the step before was
        is_kept = is_kept & best.equal(before).negated()
    kept = is_kept.transpose([1, 0])
    # Behind the symbols of a row stand none, so a symbol's column is how many are kept before it.
    counted = kept.cast(INTEGER)
    columns = builder.node("CumSum", [counted, builder.integers(1)], INTEGER) - 1
    places = builder.node("NonZero", [kept], INTEGER).transpose([1, 0])
    column = builder.node("GatherND", [columns, places], INTEGER).reshape([-1, 1])
    rows = places.take(builder.integers([0]), 1)
    indices = concatenated([rows, column], 1)
    values = builder.node("GatherND", [best.transpose([1, 0]), places], INTEGER)
    longest = concatenated([builder.integers([0]), columns.reshape([-1]) + 1])
    said = builder.choose(is_in_time, reduce("ReduceMax", inputs, [2]) * -1.0, 0.0)
    total = reduce("ReduceSum", said, [0])
    shape = join(builder, [batch, reduce("ReduceMax", longest, [0])])
    return [indices, values, shape, total.reshape([-1, 1])]
