"""Lengths that are not known as numbers but as expressions, such as ``32*k``: what they leave when divided.

A dimension that the graph computes from an unknown length is an expression: twice an unknown length is even. SAME
padding depends on a length only through its remainder, so that is enough.

What a model *declares* of its inputs is another matter. No runtime makes sure that ``32*k`` is a multiple of 32, so
that the text of a declared dimension is a name to shape inference, whatever it reads as (:func:`declared`). Probes
alone take it at its word, to find lengths that the model runs on. A text without any symbol, such as ``8``, is a name
there too.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from padfix.graph.scopes import Dimension

_UNNAMED = "unk__"
"""A length without a name. It begins as the symbols do that onnx.shape_inference makes up."""

_LONGEST_TEXT = 200


@dataclass(frozen=True)
class Length:
    """A sum of whole multiples of symbols and a constant: ``factors`` by symbol, sorted, none of them 0."""

    factors: tuple[tuple[str, int], ...]
    constant: int

    def plus(self, number: int) -> Length:
        """Return the length and ``number`` elements."""
        return Length(self.factors, self.constant + number)

    def times(self, number: int) -> Length:
        """Return ``number`` times the length."""
        factors = tuple((symbol, factor * number) for symbol, factor in self.factors) if number else ()
        return Length(factors, self.constant * number)

    def divided(self, number: int) -> Length | None:
        """Return the length divided by ``number`` and rounded down; None where that is no sum of multiples."""
        if any(factor % number for _, factor in self.factors):
            return None
        return Length(tuple((symbol, factor // number) for symbol, factor in self.factors), self.constant // number)

    def residue(self, modulus: int) -> int | None:
        """Return what is left when it is divided by ``modulus``; None where that depends on the symbols."""
        return self.constant % modulus if not any(factor % modulus for _, factor in self.factors) else None

    def value(self, symbols: Mapping[str, int]) -> int:
        """Return the number for given values of all symbols."""
        return sum(symbols[symbol] * factor for symbol, factor in self.factors) + self.constant

    def dimension(self) -> Dimension:
        """Return the length as a dimension: a number, or the text of the expression."""
        if not self.factors:
            return self.constant
        terms = []
        for symbol, factor in self.factors:
            name = symbol if symbol.isidentifier() else repr(symbol)
            terms.append(name if factor == 1 else f"{factor}*{name}")
        text = " + ".join(terms)
        return f"{text} {'+' if self.constant > 0 else '-'} {abs(self.constant)}" if self.constant else text


@lru_cache(maxsize=4096)
def length_of(dimension: Dimension) -> Length:
    """Return a dimension as a length; text that is no expression is one symbol, None a length without a name."""
    if isinstance(dimension, int):
        return Length((), dimension)
    if dimension is None:
        return Length(((_UNNAMED, 1),), 0)
    try:
        tree = ast.parse(dimension.strip(), mode="eval") if len(dimension) <= _LONGEST_TEXT else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    found = None if tree is None else _linear(tree.body)
    return Length(((dimension, 1),), 0) if found is None or not found.factors else found


def declared(dimension: Dimension) -> Dimension:
    """Return a declared dimension as one for computing with: its text is a name, quoted where it reads as more."""
    return repr(dimension) if isinstance(dimension, str) and not dimension.isidentifier() else dimension


def named(size: Dimension, length: Length) -> Dimension:
    """Return ``length``, computed from ``size``, as a dimension.

    That of a length without a name says something if it is a multiple.
    """
    return None if size is None and len(length.factors) == 1 and length.factors[0][1] == 1 else length.dimension()


def filled(shape: Sequence[Dimension] | None, length: int) -> tuple[int, ...]:
    """Return a shape with ``length`` in place of every symbol; that itself where nothing would be left of an axis."""
    found = []
    for each in shape or ():
        expression = length_of(each)
        size = expression.value({symbol: length for symbol, _ in expression.factors})
        found.append(size if size > 0 or isinstance(each, int) else length)
    return tuple(found)


def known_residue(dimension: Dimension, modulus: int) -> int | None:
    """Return ``dimension % modulus`` where it is known, else None."""
    return length_of(dimension).residue(modulus)


def is_expression(dimension: Dimension) -> bool:
    """Whether a dimension is more than a number or a name."""
    if not isinstance(dimension, str):
        return False
    length = length_of(dimension)
    return length.constant != 0 or [factor for _, factor in length.factors] != [1]


def is_made_up(dimension: Dimension) -> bool:
    """Whether an expression holds a symbol that shape inference made up, which says nothing to anybody else."""
    return any(symbol.startswith(_UNNAMED) for symbol, _ in length_of(dimension).factors)


def _linear(node: ast.expr) -> Length | None:
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return Length((), number)
        case ast.Name(id=name) | ast.Constant(value=str(name)):
            return Length(((name, 1),), 0)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            negated = _linear(operand)
            return None if negated is None else negated.times(-1)
        case ast.BinOp(left=left, op=operator, right=right):
            first, second = _linear(left), _linear(right)
            return None if first is None or second is None else _combined(first, operator, second)
    return None


def _combined(first: Length, operator: ast.operator, second: Length) -> Length | None:
    match operator:
        case ast.Add():
            return _sum(first, second)
        case ast.Sub():
            return _sum(first, second.times(-1))
        case ast.Mult() if not second.factors:
            return first.times(second.constant)
        case ast.Mult() if not first.factors:
            return second.times(first.constant)
        case ast.FloorDiv() | ast.Div() if not second.factors and second.constant > 0:
            divided = first.divided(second.constant)
            exact = isinstance(operator, ast.FloorDiv) or first.constant % second.constant == 0
            return divided if exact else None
    return None


def _sum(first: Length, second: Length) -> Length:
    factors = Counter(dict(first.factors))
    factors.update(dict(second.factors))
    kept = tuple(sorted((symbol, factor) for symbol, factor in factors.items() if factor))
    return Length(kept, first.constant + second.constant)
