"""A determinant of two or three rows as the products and differences that it is."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.graph.lengths import filled
from padfix.operators.axis_order import alike_axes
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_forms import of_inputs
from padfix.rules.build.objections import Operators
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_MOST_ROWS = 3

_MATRICES = 3
"""Axes of matrices one behind the other."""

_TRIED = 3
"""Matrices of a trial where their number is open."""

_OPERATORS: Operators = (
    ("Split", {"axis-written": True, "split-evenly": True, "pieces-told": True}),
    ("Mul", {"gate-second": False}),
    ("Sub", {"from-constant": False}),
    ("Add", {}),
    ("Squeeze", {"axes-written": True}),
)


def determinant_forms(site: Site) -> Iterator[Form]:
    """Yield the determinant of matrices of up to three rows, developed along the first."""
    known = site.input_type(0)
    shape = () if known is None or known.shape is None else known.shape
    rank, size = len(shape), shape[-1] if shape else None
    why_not = None
    if rank < 2 or not isinstance(size, int) or shape[-2] != size or not 1 < size <= _MOST_ROWS:
        why_not = Refusal(f"its matrices are not known to have two or {_MOST_ROWS} rows")
    elif site.elem_type(0) not in FLOATS:
        why_not = Refusal("its data are no floats")

    def write(builder: FragmentBuilder, value: Any) -> Any:
        assert isinstance(size, int)
        rows = builder.split(value, rank - 2, [1] * size)
        elements = [builder.split(row, rank - 1, [1] * size) for row in rows]
        return builder.unsqueezed(_determinant(builder, elements), rank - 2, rank - 1, back=True)

    def written() -> Rewrite:
        assert isinstance(size, int)
        assert known is not None
        found = of_inputs(site, write, exact=False)
        # Of matrices without an inverse ONNX Runtime's elimination leaves what rounding does.
        data = np.random.default_rng(0).standard_normal(filled(known.shape, _TRIED)) + 3 * np.eye(size)
        dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
        trial = {site.input_name(0): TrialInput.of(data.astype(dtype), constant=False)}
        return dataclasses.replace(found, trials=(trial,))

    yield _of_fewer_axes(site)
    yield Form("products and differences", _OPERATORS, written, why_not)


def _of_fewer_axes(site: Site) -> Form:
    """Return the determinants of matrices one behind the other."""
    known, result = site.input_type(0), site.scope.type_of(site.node.output[0])
    lengths = () if known is None or known.lengths is None else known.lengths
    given = () if result is None or result.lengths is None else result.lengths
    why_not = None if given and 0 not in lengths else Refusal("it needs the lengths of its data (--shape)")
    if why_not is None and len(lengths) <= _MATRICES:
        why_not = Refusal("it has few axes already")
    row = [math.prod(given), *lengths[-2:]]

    def write(builder: FragmentBuilder, value: Any) -> Any:
        return builder.reshaped(builder.original(copied(site.node), [builder.reshaped(value, row)]), given)

    own: Traits = {
        **(traits_of(site.scope, site.node) or {}),
        "axes": _MATRICES,
        "rank": _MATRICES,
        "channels-last": False,
        "alike": alike_axes([row]),
    }
    operators: Operators = (("Reshape", {"rank": _MATRICES}), ("Det", own), ("Reshape", {"rank": len(given)}))
    return Form("three axes in place of more", operators, lambda: of_inputs(site, write, exact=False), why_not)


def _determinant(builder: FragmentBuilder, rows: list[list[Any]]) -> Any:
    """Append the determinant of elements that are tensors."""
    if len(rows) == 1:
        return rows[0][0]
    first, *below = rows
    found = None
    for column, value in enumerate(first):
        minor = _determinant(builder, [[*row[:column], *row[column + 1 :]] for row in below])
        term = builder.op("Mul", [value, minor])
        found = term if found is None else builder.op("Sub" if column % 2 else "Add", [found, term])
    return found
