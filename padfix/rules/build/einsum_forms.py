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
    lengths = _lengths(site, written, gives)
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
    is_open = not isinstance(lengths, Refusal) and 0 in lengths.values()
    product = {"list-first": False, "list-second": False, "by-a-matrix": is_open}
    products = {3, 4, *map(len, terms)} if is_open else {3}
    operators: Operators = (
        *(("Transpose", {"rank": each, **turned}) for each in ranks if each >= _MATRIX),
        *(("Reshape", {"rank": each}) for each in (3, *ranks) if each),
        *(("Slice", {"rank": len(term), **slices}) for term, own in zip(terms, written, strict=True) if term != own),
        *((("MatMul", {"rank": rank, **product}) for rank in sorted(products)) if len(terms) > 1 else ()),
        *((("Mul", {"gate-second": False}),) if _meets_a_number(terms, gives) else ()),
        *((("ReduceSum", reduction_traits("ReduceSum", site.opset, [0])),) if _sums(terms, gives) else ()),
    )
    yield Form("products of matrices", operators, write, lengths if isinstance(lengths, Refusal) else None)


def _lengths(site: Site, terms: Sequence[str], gives: str) -> Lengths | Refusal:
    """Return the length of each letter; 0, which a Reshape copies, of those that are left open.

    That is one that comes first of all; or any where nothing is reshaped, since each product has one axis of each kind.
    """
    if not terms:
        return Refusal("what its dots stand for is not known")
    if len(terms) == 1 and terms[0].isalpha() and len(set(terms[0])) == len(terms[0]) and site.elem_type(0) in FLOATS:
        return {}  # nothing is reshaped
    found: dict[str, int] = {}
    for place, term in enumerate(terms):
        known = site.input_type(place)
        shape = None if known is None else known.shape
        if not term.isalpha():
            return Refusal("it is of a number")
        if shape is None or len(shape) != len(term) or 0 in shape:
            return Refusal("it needs the lengths of its input (--shape)")
        told = [each if isinstance(each, int) else 0 for each in shape]
        if any(found.setdefault(*pair) != pair[1] for pair in zip(term, told, strict=True)):
            return Refusal("it takes one element for several, or may do so")
    left_open = {letter for letter, length in found.items() if not length}
    is_first = len(left_open) < _MATRIX and all(_comes_first(each, left_open) for each in (*terms, gives))
    if left_open and not is_first and not _is_plain(terms, gives):
        return Refusal("it needs the lengths of its input (--shape)")
    return found if site.elem_type(0) in FLOATS else Refusal("its data are no floats")


def _comes_first(term: str, left_open: set[str]) -> bool:
    """Whether a term has the letter that is left open once, and as its first, or not at all."""
    return not left_open & set(term) or (term[0] in left_open and term.count(term[0]) == 1)


def _is_plain(terms: Sequence[str], gives: str) -> bool:
    """Whether two data are multiplied along one axis of both, and have one of their own each."""
    if len(terms) != _MATRIX or any(len(set(each)) != len(each) for each in terms) or set(gives) - set("".join(terms)):
        return False
    return _kinds(terms, set(gives)) == (1, 1, 1)


def _kinds(terms: Sequence[str], needed: set[str]) -> tuple[int, int, int]:
    """Return how many axes are rows, summed over and columns of a product."""
    first, second = map(set, terms)
    summed = len((first & second) - needed)
    own = [each & needed for each in (first - second, second - first)]
    dropped = (first ^ second) - needed
    return (len(own[0]), summed, len(own[1])) if not dropped else (0, 0, 0)


def _first_open(lengths: Lengths) -> str:
    """Return the letter whose length is left open, if there is one alone."""
    left_open = [letter for letter, length in lengths.items() if not length]
    return left_open[0] if len(left_open) == 1 else ""


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


def _meets_a_number(terms: Sequence[str], gives: str) -> bool:
    """Whether nothing is left of the axes of one data, or of what some gave together, where the next are joined."""
    have = set(terms[0]) if terms else set()
    for place, term in enumerate(terms[1:], 1):
        later = set(gives).union(*terms[place + 1 :])
        left, own = have & (later | set(term)), set(term) & (later | have)
        if not left or not own:
            return True
        have = (left | own) & later
    return False


def _product(
    builder: FragmentBuilder, values: Sequence[Any], terms: Sequence[str], needed: set[str], lengths: Lengths
) -> tuple[Any, str]:
    """Return the product of two data along what they share and nothing needs any more, and its letters."""
    first, have = _summed(builder, values[0], terms[0], needed | set(terms[1]))
    second, others = _summed(builder, values[1], terms[1], needed | set(terms[0]))
    if not have or not others:
        return builder.op("Mul", [first, second]), have + others
    inner = [each for each in have if each in others and each not in needed]
    images = [each for each in have if each in others and each in needed]
    rows = [each for each in have if each not in others]
    columns = [each for each in others if each not in have]
    if 0 in lengths.values() and [len(each) for each in (rows, inner, columns)] == [1, 1, 1]:
        left = _turned(builder, first, have, [*images, *rows, *inner])
        right = _turned(builder, second, others, [*images, *inner, *columns])
        return builder.op("MatMul", [left, right]), "".join([*images, *rows, *columns])
    first_open = _first_open(lengths)
    images, rows, columns = ([each for each in group if each != first_open] for group in (images, rows, columns))
    kept = [[first_open] if first_open and first_open in letters else [] for letters in (have, others)]
    sizes = [math.prod(lengths[each] for each in group) for group in (images, rows, inner, columns)]
    # Beside an open length that stays the first of all, a single image is no axis.
    image = [] if first_open and not images else [sizes[0]]
    left_sizes = [*[0] * len(kept[0]), *image, sizes[1], sizes[2]]
    left = builder.reshaped(_turned(builder, first, have, [*kept[0], *images, *rows, *inner]), left_sizes)
    right_sizes = [*[0] * len(kept[1]), *image, sizes[2], sizes[3]]
    turned = _turned(builder, second, others, [*kept[1], *images, *inner, *columns])
    right = builder.reshaped(turned, right_sizes)
    result = [*(kept[0] or kept[1]), *images, *rows, *columns]
    product = builder.op("MatMul", [left, right])
    return builder.reshaped(product, [lengths[each] for each in result]), "".join(result)


def _summed(builder: FragmentBuilder, value: Any, have: str, needed: set[str]) -> tuple[Any, str]:
    """Return the sum along what nothing needs, one axis after the other from the last."""
    for axis in reversed(range(len(have))):
        if have[axis] not in needed:
            value = reduced(builder, "ReduceSum", value, [axis], kept=False)
    return value, "".join(each for each in have if each in needed)


def _turned(builder: FragmentBuilder, value: Any, have: Sequence[str], wanted: Sequence[str]) -> Any:
    order = [have.index(each) for each in wanted]
    return value if order == list(range(len(have))) else builder.op("Transpose", [value], {"perm": order})
