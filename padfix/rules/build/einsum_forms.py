"""An Einsum as the products of matrices that it is, between transpositions and reshapes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from padfix.operators.equations import letters_of
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.elementary_forms import reduced, reduction_traits
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import as_declared
from padfix.rules.build.objections import Operators

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

Lengths = Mapping[str, int]

_MATRIX = 2


def einsum_forms(site: Site) -> Iterator[Form]:
    """Yield an Einsum as sums along axes and products of matrices, one for each data but the first."""
    written, gives = letters_of(site.scope, site.node) or ([], "")
    lengths = _lengths(site, written)
    terms = [_without_repeats(each) for each in written]

    def write() -> Rewrite:
        assert not isinstance(lengths, Refusal)
        builder = site.builder()
        given = [builder.input(name) for name in site.node.input]
        picked = [_diagonals(builder, *each, lengths) for each in zip(given, written, strict=True)]
        value, have = picked[0], terms[0]
        for place in range(1, len(terms)):
            needed = set(gives).union(*terms[place + 1 :])
            value, have = _product(builder, (value, picked[place]), (have, terms[place]), needed, lengths)
        value, have = _summed(builder, value, have, set(gives))
        result = _turned(builder, value, have, gives)
        builder.output(site.node.output[0], builder.op("Identity", [result]) if result is given[0] else result)
        return Rewrite(builder.build(), (as_declared(site),))

    ranks = sorted({*map(len, terms), *map(len, written), len(gives)})
    slices = {"strided": True, "backwards": False, "behind-window": False}
    turned: dict[str, Any] = {"turned-back": False, "turned-back-alike": False, "about-a-product": False}
    product = {"list-first": False, "list-second": False, "by-a-matrix": False}
    operators: Operators = (
        *(("Transpose", {"rank": each, **turned}) for each in ranks if each >= _MATRIX),
        *(("Reshape", {"rank": each}) for each in (3, *ranks) if each),
        *(("Slice", {"rank": len(term), **slices}) for term, own in zip(terms, written, strict=True) if term != own),
        *((("MatMul", {"rank": 3, **product}),) if len(terms) > 1 else ()),
        *((("ReduceSum", reduction_traits("ReduceSum", site.opset, [0])),) if _sums(terms, gives) else ()),
    )
    yield Form("products of matrices", operators, write, lengths if isinstance(lengths, Refusal) else None)


def _lengths(site: Site, terms: Sequence[str]) -> Lengths | Refusal:
    if not terms:
        return Refusal("what its dots stand for is not known")
    if len(terms) == 1 and terms[0].isalpha() and len(set(terms[0])) == len(terms[0]) and site.elem_type(0) in FLOATS:
        return {}  # nothing is reshaped
    found: dict[str, int] = {}
    for place, term in enumerate(terms):
        known = site.input_type(place)
        lengths = None if known is None else known.lengths
        if not term.isalpha():
            return Refusal("it is of a number")
        if lengths is None or len(lengths) != len(term) or 0 in lengths:
            return Refusal("it needs the lengths of its input (--shape)")
        if any(found.setdefault(*pair) != pair[1] for pair in zip(term, lengths, strict=True)):
            return Refusal("it takes one element for several")
    return found if site.elem_type(0) in FLOATS else Refusal("its data are no floats")


def _without_repeats(term: str) -> str:
    """Return the letters of what is left where an axis is written twice: the diagonal, along the last axis."""
    for letter in dict.fromkeys(term):
        if term.count(letter) > 1:
            term = term.replace(letter, "") + letter
    return term


def _diagonals(builder: FragmentBuilder, value: Any, term: str, lengths: Lengths) -> Any:
    """Return the data along the diagonal of the axes that are written twice, which are flattened for it."""
    for letter in dict.fromkeys(term):
        times = term.count(letter)
        if times == 1:
            continue
        length = lengths[letter]
        others = [place for place, each in enumerate(term) if each != letter]
        order = [*others, *(place for place, each in enumerate(term) if each == letter)]
        if order != list(range(len(term))):
            value = builder.op("Transpose", [value], {"perm": order})
        value = builder.reshaped(value, [*(lengths[term[place]] for place in others), length**times])
        apart = sum(length**each for each in range(times))
        bounds = [builder.integers([each]) for each in (0, length**times, len(others), apart)]
        value = builder.op("Slice", [value, *bounds])
        term = term.replace(letter, "") + letter
    return value


def _sums(terms: Sequence[str], gives: str) -> bool:
    """Whether there are axes of one data alone that are not in the result."""
    counted = Counter("".join(terms))
    return any(times == 1 and each not in gives for each, times in counted.items())


def _product(
    builder: FragmentBuilder, values: Sequence[Any], terms: Sequence[str], needed: set[str], lengths: Lengths
) -> tuple[Any, str]:
    """Return the product of two data along what they share and nothing needs any more, and its letters."""
    first, have = _summed(builder, values[0], terms[0], needed | set(terms[1]))
    second, others = _summed(builder, values[1], terms[1], needed | set(terms[0]))
    images = [each for each in have if each in others and each in needed]
    inner = [each for each in have if each in others and each not in needed]
    rows = [each for each in have if each not in others]
    columns = [each for each in others if each not in have]
    sizes = [math.prod(lengths[each] for each in group) for group in (images, rows, inner, columns)]
    left = _shaped(builder, _turned(builder, first, have, [*images, *rows, *inner]), len(have), sizes[:3])
    right_sizes = [sizes[0], sizes[2], sizes[3]]
    right = _shaped(builder, _turned(builder, second, others, [*images, *inner, *columns]), len(others), right_sizes)
    result = [*images, *rows, *columns]
    product = builder.op("MatMul", [left, right])
    return builder.reshaped(product, [lengths[each] for each in result]), "".join(result)


def _shaped(builder: FragmentBuilder, value: Any, rank: int, sizes: Sequence[int]) -> Any:
    return builder.reshaped(value, list(sizes)) if rank else value


def _summed(builder: FragmentBuilder, value: Any, have: str, needed: set[str]) -> tuple[Any, str]:
    """Return the sum along what nothing needs, one axis after the other from the last."""
    for axis in reversed(range(len(have))):
        if have[axis] not in needed:
            value = reduced(builder, "ReduceSum", value, [axis], kept=False)
    return value, "".join(each for each in have if each in needed)


def _turned(builder: FragmentBuilder, value: Any, have: Sequence[str], wanted: Sequence[str]) -> Any:
    order = [have.index(each) for each in wanted]
    return value if order == list(range(len(have))) else builder.op("Transpose", [value], {"perm": order})
