"""An Einsum with small letters, a written result, and an axis more where something is a list or a number."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterator, Sequence

from padfix.graph import attributes
from padfix.operators.equations import (
    is_element_by_element,
    keeps_all,
    letters_of,
    parts_of,
    result_of,
    spelled_out,
    sums_alone,
    told_by,
    turns_second,
)
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site, Trial, TrialInput
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators
from padfix.rules.build.space_forms import kept

_PAIR = 2

_TRIED = 3
"""The length of an axis that is left open, where a form is tried."""

_MARKS = ("capital-letters", "gives-a-number", "implicit-result", "of-lists")


def equation_forms(site: Site) -> Iterator[Form]:
    """Yield an Einsum as every importer reads it."""
    if keeps_all(site.scope, site.node):
        yield kept(site)
    yield from _multiplied(site)
    own = traits_of(site.scope, site.node) or {}
    text = site.text("equation")
    terms, result = parts_of(text)[0], result_of(text)
    shapes = [None if (known := site.input_type(place)) is None else known.lengths for place in range(len(terms))]
    used = Counter("".join([*terms, result]))
    spare = [each for each in string.ascii_lowercase if each not in used]
    small = {ord(each): spare.pop() for each in sorted(used) if each.isupper() and len(spare) > 1}
    more = spare[-1] if spare else ""
    terms, result = [each.translate(small) for each in terms], result.translate(small)
    lists = [place for place, each in enumerate(terms) if len(each) == 1]
    widened = lists or ([] if result else [0])
    why_not = None if more else Refusal("it has no letter left")
    if any(shapes[place] is None for place in widened):
        why_not = Refusal("it needs the lengths of its inputs (--shape)")

    factors = [f"{more}{each}" if place in widened else each for place, each in enumerate(terms)]
    right = result or more

    def write() -> Rewrite:
        builder = site.builder()
        given = [builder.input(name) for name in site.node.input]
        for place in widened:
            given[place] = builder.reshaped(given[place], [1, *(shapes[place] or ())])
        value = builder.op("Einsum", given, {"equation": f"{','.join(factors)}->{right}"})
        builder.output(site.node.output[0], value if result else builder.op("ReduceMax", [value], {"keepdims": 0}))
        return Rewrite(builder.build(), trials_of(site))

    reshapes: Operators = tuple(("Reshape", {"rank": len(shapes[place] or ()) + 1}) for place in widened)
    told = {**own, **dict.fromkeys(_MARKS, False), "sums-alone": sums_alone(factors, right)}
    operators: Operators = (*reshapes, ("Einsum", told))
    yield Form("small letters, and axes for what has none", operators, write, why_not)
    yield _spelled(site)
    yield _stepwise(site, by_products=False)
    yield _stepwise(site, by_products=True)


def _multiplied(site: Site) -> Iterator[Form]:
    """Yield an Einsum that sums nothing as a product, element by element, each factor turned to the result's axes."""
    terms, gives = letters_of(site.scope, site.node) or ([], "")
    if len(terms) < _PAIR or not gives or not is_element_by_element(terms, gives):
        return
    orders = [[term.index(letter) for letter in gives] for term in terms]

    def write() -> Rewrite:
        builder = site.builder()
        factors = [
            builder.input(name)
            if order == sorted(order)
            else builder.op("Transpose", [builder.input(name)], {"perm": order})
            for name, order in zip(site.node.input, orders, strict=True)
        ]
        product = factors[0]
        for factor in factors[1:]:
            product = builder.op("Mul", [product, factor])
        builder.output(site.node.output[0], product)
        return Rewrite(builder.build(), (_trial(site, terms),))

    back = {"turned-back": False, "turned-back-alike": False, "about-a-product": False}
    moves = [order[0] != 0 for order in orders if order != sorted(order)]
    turned: Operators = tuple(("Transpose", {"rank": len(gives), "moves-batch": each, **back}) for each in moves)
    operators: Operators = (*turned, ("Mul", {"gate-second": False, "inputs": 2, "broadcasts": False}))
    yield Form("a product, element by element", operators, write)


def _stepwise(site: Site, *, by_products: bool) -> Form:
    """Return an Einsum of several data as one after another of two, which keep the axes that are still needed.

    Those that are products of matrices are written as such where that is asked for, whatever their lengths are.
    """
    terms, gives = letters_of(site.scope, site.node) or ([], "")
    equations, have = list[str](), terms[0] if terms else ""
    for place in range(1, len(terms)):
        later = "".join([gives, *terms[place + 1 :]])
        result = "".join(each for each in dict.fromkeys(have + terms[place]) if each in later)
        result = gives if place == len(terms) - 1 else result
        equations.append(f"{have},{terms[place]}->{result}")
        have = result
    turns = [turns_second(*_sides(each)) if by_products else None for each in equations]

    def write() -> Rewrite:
        builder = site.builder()
        value, *others = (builder.input(name) for name in site.node.input)
        for place, (other, equation, is_turned) in enumerate(zip(others, equations, turns, strict=True), 1):
            if is_turned is None:
                value = builder.op("Einsum", [value, other], {"equation": equation})
                continue
            second = builder.turned(other, len(terms[place])) if is_turned else other
            value = builder.op("MatMul", [value, second])
        builder.output(site.node.output[0], value)
        return Rewrite(builder.build(), (_trial(site, terms),))

    own = traits_of(site.scope, site.node) or {}
    operators: Operators = ()
    for equation, is_turned in zip(equations, turns, strict=True):
        (first, second), result = _sides(equation)
        if is_turned is None:
            told = {**own, **told_by(equation), "plain": True, "rank": max(map(len, (first, second, result)))}
            operators = (*operators, ("Einsum", told))
            continue
        back = {"turned-back": False, "turned-back-alike": False, "about-a-product": False}
        product = {"list-first": False, "list-second": False, "by-a-matrix": len(second) == _PAIR}
        turned: Operators = (("Transpose", {"rank": len(second), **back}),) if is_turned else ()
        operators = (*operators, *turned, ("MatMul", {"rank": len(first), **product}))
    why_not = None if terms else Refusal("what its dots stand for is not known")
    if by_products and set(turns) <= {None}:
        why_not = why_not or Refusal("it is no product of matrices in order")
    elif not by_products and len(terms) <= _PAIR:
        why_not = why_not or Refusal("it is of no more than two data")
    name = "products of matrices in order" if by_products else "two data at a time"
    return Form(name, operators, write, why_not)


def _sides(equation: str) -> tuple[list[str], str]:
    """Return the letters of each factor of a written equation, and those of the result."""
    return parts_of(equation)[0], result_of(equation)


def _trial(site: Site, terms: Sequence[str]) -> Trial:
    """Return the data with a length for each letter: the one that some data tell, if any."""
    told: dict[str, int] = {}
    shapes = {
        place: known.shape or ()
        for place in range(len(terms))
        if (known := site.input_type(place)) is not None and known.shape is not None
    }
    for place, shape in shapes.items():
        for letter, length in zip(terms[place], shape, strict=False):
            told[letter] = max(told.get(letter, 0), length) if isinstance(length, int) else told.get(letter, 0)
    trial = {}
    for place, term in enumerate(terms):
        constant, open_lengths = site.constant(place), [None] * len(term)
        pairs = zip(term, shapes.get(place, open_lengths), strict=False)
        lengths = tuple(each if isinstance(each, int) else told.get(letter, 0) or _TRIED for letter, each in pairs)
        found = TrialInput(lengths, site.elem_type(place)) if constant is None else TrialInput.of(constant)
        trial[site.input_name(place)] = found
    return trial


def _spelled(site: Site) -> Form:
    """Return an Einsum with a letter for every axis, and what it gives."""
    equation = spelled_out(site.scope, site.node)

    def write() -> Rewrite:
        assert equation is not None
        node = copied(site.node)
        attributes.set_text(node, "equation", equation)
        return Rewrite(site.only(node), trials_of(site))

    written = dict.fromkeys(("implicit-result", "some-dots", "dotted", "dots-within"), False)
    own = {**(traits_of(site.scope, site.node) or {}), **written, "plain": True}
    why_not = None if equation else Refusal("a term has an axis twice, or how many axes there are is not known")
    return Form("its equation spelled out", (("Einsum", own),), write, why_not)
