"""What operators do with elements: compute each at its place, or from those along axes, or lay them out otherwise."""

from __future__ import annotations

# fmt: off
ELEMENTWISE = frozenset(
    {
        "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitwiseAnd", "Cast", "Ceil",
        "Celu", "Clip", "Cos", "Cosh", "Div", "Dropout", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu",
        "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu",
        "Less", "LessOrEqual", "Log", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or", "Pow",
        "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus",
        "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Where", "Xor"
    }
)
# fmt: on
"""By their types in ONNX's own domain; inputs are broadcast."""

RESHAPING = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators that give their data other axes, and leave their elements in a row."""

LAYING_OUT = RESHAPING | {"Identity", "Transpose"}
"""Operators that give each element of their first input once, and nothing else, in whatever shape and order."""

COPYING = frozenset({"Expand", "Tile"})
"""Operators that give each element of their first input, maybe several times."""

PICKING_OUT = frozenset({"Gather", "GatherElements", "GatherND", "Slice", "Split"})
"""Operators that give some of the elements of their first input, as they are."""

MOVING = LAYING_OUT | PICKING_OUT | {"Cast"}
"""Operators that give elements of their first input elsewhere, or in another type."""

MOST_MOVES = 4
"""Of those that are looked through, one behind the other."""

PLACES = ("ArgMax", "ArgMin")
"""Operators that give where along an axis an extreme is."""

REDUCTIONS = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
)
"""Operators that make one element of those along axes."""
