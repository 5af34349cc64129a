"""What the equation of an Einsum says."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope
from padfix.operators.batches import images_at_once
from padfix.operators.fused_layers import MATRIX
from padfix.operators.lists import depends_on_data
from padfix.operators.shape_questions import is_by_a_number
from padfix.targets.traits import COUNT, Traits

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


def sums_alone(factors: Sequence[str], result: str) -> bool:
    """Whether an axis of one factor among several is neither in the others nor in the result."""
    counted = Counter("".join(map("".join, map(sorted, map(set, factors)))))
    return len(factors) > 1 and any(times == 1 and each not in result for each, times in counted.items())


def equation_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return of an Einsum how its equation is written, how many axes it has at most, and what it is of and gives."""
    text = attributes.text(node, "equation", "") or ""
    types = [scope.type_of(name) for name in (*node.input, node.output[0])]
    ranks = [0 if each is None or each.rank is None else each.rank for each in types]
    keeps = keeps_all(scope, node)
    return {
        **told_by(text),
        "plain": text.replace(" ", "") == spelled_out(scope, node),
        "rank": min(max(ranks), COUNT[-1]) if all(types) else None,
        "by-a-number": is_by_a_number(scope, node),
        "of-input": node.input[0] in scope.inputs,
        "keeps-all": keeps,
        "keeps-one-of-several": keeps and _is_one_of_several(scope, node.input[0]),
        **_orders_of(*(letters_of(scope, node) or ([], ""))),
        "numbers-images": _gives_each_image_its_own(scope, node),
        "open-lengths": any(each is not None and each.rank and each.lengths is None for each in types[:-1]),
    }


def keeps_all(scope: Scope, node: NodeProto) -> bool:
    """Whether an Einsum gives its data as they are: one term, which is the result."""
    found = letters_of(scope, node)
    return found is not None and found[0] == [found[1]] and len(set(found[1])) == len(found[1])


def _is_one_of_several(scope: Scope, name: str) -> bool:
    producer = scope.own_producer(name)
    return producer is not None and len(producer.output) > 1


def _gives_each_image_its_own(scope: Scope, node: NodeProto) -> bool:
    """Whether a constant factor, be it computed, has other numbers for each of several images of another factor."""
    found, batch = letters_of(scope, node), images_at_once(scope)
    if found is None or batch is None:
        return False
    of_data = [depends_on_data(scope, name) for name in node.input]
    images = {term[0] for term, is_data in zip(found[0], of_data, strict=True) if is_data and term}
    for name, term, is_data in zip(node.input, found[0], of_data, strict=True):
        known = scope.type_of(name)
        shape = () if is_data or known is None or known.shape is None else known.shape
        if any(letter in images and length == batch for letter, length in zip(term, shape, strict=False)):
            return True
    return False


def told_by(text: str) -> Traits:
    """Return what an equation tells by itself."""
    factors, result = parts_of(text)
    return {
        "of-matrices": _is_of_matrices(text),
        "capital-letters": text != text.lower(),
        "implicit-result": result is None,
        "gives-a-number": not result_of(text),
        "inputs": min(len(factors), COUNT[-1]),
        "sums-alone": sums_alone(factors, result_of(text)),
        "multiplies-lines": _multiplies_lines(factors, result_of(text)),
        "repeats-axis": any(len(set(each.replace(_REST, ""))) < len(each.replace(_REST, "")) for each in factors),
        "of-lists": any(len(each) == 1 for each in factors),
        "sums-otherwise": len(factors) == 1 and _sums_otherwise(factors[0], result_of(text)),
        "dotted": any(_REST in each for each in factors),
        "dots-within": any(each.find(_REST) > 0 for each in factors),
        "some-dots": len({_REST in each for each in factors}) > 1,
    }


def _sums_otherwise(term: str, gives: str) -> bool:
    """Whether an axis before another that stays is summed, where the result is turned; or the last three are."""
    order = [term.find(each) for each in gives]
    summed = [place for place, each in enumerate(term) if each not in gives]
    if not summed or -1 in order or _REST in term:
        return False
    is_turned = order != sorted(order) and summed[0] < max(order)
    return is_turned or (len(summed) > MATRIX and summed == list(range(len(gives), len(term))))


def is_element_by_element(factors: Sequence[str], gives: str) -> bool:
    """Whether every factor has each axis of the result, and nothing is summed."""
    return all(sorted(each) == sorted(gives) and len(set(each)) == len(each) for each in factors)


def _multiplies_lines(factors: Sequence[str], gives: str) -> bool:
    """Whether two of three axes are multiplied element by element, whose first axis is that of the result."""
    is_of_two = len(factors) == MATRIX and is_element_by_element(factors, gives)
    return is_of_two and len(gives) == MATRIX + 1 and {each[0] for each in factors} == {gives[0]}


def _orders_of(factors: Sequence[str], gives: str) -> Traits:
    """Return how the result of a product of matrices, one for each image, is ordered: columns first, or as the data.

    None of them where something else than one axis of each factor is left, and one of both summed.
    """
    is_of_two = len(factors) == MATRIX and all(len(set(each)) == len(each) for each in (*factors, gives))
    first, second = factors if is_of_two else ("", "")
    images = [each for each in first if each in second and each in gives]
    rows, columns = [each for each in first if each not in second], [each for each in second if each not in first]
    is_product = len(rows) == len(columns) == 1 and len(first) == len(second) == len(images) + MATRIX
    rest = [each for each in first if each in rows or each in images]
    is_led_by_images = first[:-MATRIX] == second[:-MATRIX] == "".join(images)
    return {
        "columns-first": is_product and is_led_by_images and gives == "".join([*images, *columns, *rows]),
        "ordered-alike": is_product
        and len(images) == MATRIX
        and gives == "".join([*rest, *columns])
        and not (is_led_by_images and gives.startswith(first[:-MATRIX])),
    }


def spelled_out(scope: Scope, node: NodeProto) -> str | None:
    """Return the equation with a letter for every axis, and what it gives; None where a term has one twice.

    And where it can't be told what the dots stand for.
    """
    found = letters_of(scope, node)
    if found is None:
        return None
    terms, gives = found
    if any(len(set(term)) < len(term) for term in (*terms, gives)):
        return None
    return f"{','.join(terms)}->{gives}"


def letters_of(scope: Scope, node: NodeProto) -> tuple[list[str], str] | None:
    """Return a letter for every axis of each factor, and of the result; None where the dots may stand for any."""
    equation = (attributes.text(node, "equation", "") or "").replace(" ", "")
    terms, gives = parts_of(equation)[0], result_of(equation)
    if len(terms) != len(node.input):
        return None
    if _REST not in equation:
        return terms, gives
    known = [scope.type_of(name) for name in node.input]
    ranks = [None if each is None else each.rank for each in known]
    dots = {
        rank - len(term) + len(_REST)
        for term, rank in zip(terms, ranks, strict=True)
        if rank is not None and _REST in term
    }
    if len(dots) != 1 or None in ranks:
        return None
    free = [each for each in string.ascii_letters if each not in equation]
    named = "".join(free[: dots.pop()])
    return [term.replace(_REST, named) for term in terms], gives.replace(_REST, named)


def _is_of_matrices(equation: str) -> bool:
    """Whether an Einsum is a product of matrices in order, the second of which may be turned."""
    factors, gives = parts_of(equation)
    is_alike = len(factors) == MATRIX and len(factors[0]) == len(factors[1])
    return is_alike and turns_second(factors, gives or "") is not None


def turns_second(factors: Sequence[str], gives: str) -> bool | None:
    """Return whether a product of matrices turns the second, which may be one for all images; None for no product."""
    if len(factors) != MATRIX or min(map(len, factors)) < MATRIX or not "".join(factors).isalpha():
        return None
    (*images, row, inner), (*others, top, column) = map(list, factors)
    is_turned = top != inner
    if is_turned:
        top, column = column, top
    is_plain = others in ([], images) and top == inner and gives == "".join([*images, row, column])
    return is_turned if is_plain and len({*images, row, inner, column}) == len(images) + 3 else None
