"""What the equation of an Einsum says."""

from __future__ import annotations

from collections import Counter

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope
from padfix.targets.traits import Traits

_REST = "..."


def parts_of(equation: str) -> tuple[list[str], str | None]:
    """Return the letters of each factor, and those of the result where they are written."""
    factors, arrow, result = "".join(equation.split()).partition("->")
    return factors.split(","), result if arrow else None


def result_of(equation: str) -> str:
    """Return the letters of the result: those that stand once, in their order, where it is not written."""
    factors, result = parts_of(equation)
    if result is not None:
        return result
    letters = Counter("".join(factors).replace(".", ""))
    rest = _REST if any(_REST in each for each in factors) else ""
    return rest + "".join(sorted(each for each, times in letters.items() if times == 1))


def equation_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return of an Einsum how its equation is written, and whether it is of lists or gives a number."""
    text = attributes.text(node, "equation", "") or ""
    factors, result = parts_of(text)
    return {
        "capital-letters": text != text.lower(),
        "implicit-result": result is None,
        "gives-a-number": not result_of(text),
        "of-lists": any(len(each) == 1 for each in factors),
    }
