"""Indices that are computed, counted from the begin; and parts of matrices, as constants tell them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import as_declared, trials_of
from padfix.rules.build.objections import Operators

_REST_SINCE = 10
"""The first opset with a Mod."""

_LARGEST = 1 << 22
"""Elements of a constant that tells what is kept, or that is written in place of a node."""


def rest_forms(site: Site) -> Iterator[Form]:
    """Yield what picks by computed indices as what picks by their rest of a division by the length of the axis."""
    known, indices = site.input_type(0), site.input_type(1)
    shape = () if known is None or known.shape is None else known.shape
    depth = indices.shape[-1] if indices is not None and indices.shape else None
    if site.node.op_type.endswith("ND"):
        first = attributes.integer(site.node, "batch_dims", 0)
        lengths = shape[first : first + depth] if isinstance(depth, int) else ()
        is_told = isinstance(depth, int) and len(lengths) == depth
    else:
        axis = attributes.integer(site.node, "axis", 0) or 0
        lengths = (shape[axis],) if -len(shape) <= axis < len(shape) else ()
        is_told = bool(lengths)
    divisors = [each for each in lengths if isinstance(each, int) and each > 0]
    why_not = None
    if not is_told or len(divisors) < len(lengths):
        why_not = Refusal("it needs the lengths of its input (--shape)")
    elif site.elem_type(1) not in (TensorProto.INT32, TensorProto.INT64) or site.opset < _REST_SINCE:
        why_not = Refusal("its indices are no integers, or this opset has no Mod")

    def write() -> Rewrite:
        dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(1))
        builder = site.builder()
        data, given, *others = (builder.input(name) for name in site.node.input)
        divisor = np.array(divisors if len(divisors) > 1 else divisors[0], dtype)
        counted = builder.op("Mod", [given, builder.constant(divisor, "lengths")])
        return Rewrite(builder.ending_in(copied(site.node), [data, counted, *others]), trials_of(site), exact=True)

    own = {**(traits_of(site.scope, site.node) or {}), "maybe-from-end": False}
    operators: Operators = (("Mod", {"cuts-off": False}), (site.node.op_type, own))
    yield Form("the rest of its indices", operators, write, why_not)


def triangle_forms(site: Site) -> Iterator[Form]:
    """Yield a Trilu as the choice of what a constant tells, and zeros elsewhere."""
    known, diagonal = site.input_type(0), site.constant(1)
    lengths = () if known is None or known.shape is None else known.shape[-2:]
    sizes = [each for each in lengths if isinstance(each, int)]
    offset = 0 if diagonal is None else int(diagonal.reshape(-1)[0])
    is_upper = attributes.integer(site.node, "upper", 1) != 0
    why_not = None
    if len(sizes) < 2:
        why_not = Refusal("it needs the lengths of its last two axes (--shape)")
    elif site.input_name(1) and diagonal is None:
        why_not = Refusal("its diagonal is not constant")
    elif np.prod(sizes) > _LARGEST:
        why_not = Refusal("its matrices are very large")

    def write() -> Rewrite:
        builder = site.builder()
        whole = np.ones(sizes, np.bool_)
        kept = builder.constant(np.triu(whole, offset) if is_upper else np.tril(whole, offset), "kept")
        zero = builder.constant(np.zeros((), helper.tensor_dtype_to_np_dtype(site.elem_type(0))), "zero")
        chosen = builder.op("Where", [kept, builder.input(site.input_name(0)), zero])
        builder.output(site.node.output[0], chosen)
        return Rewrite(builder.build(), (as_declared(site),), exact=True)

    yield Form("what a constant tells, and zeros", (("Where", {"broadcasts": False}),), write, why_not)


def diagonal_forms(site: Site) -> Iterator[Form]:
    """Yield an EyeLike as the constant that it is, whatever its data."""
    known, gives = site.input_type(0), site.scope.type_of(site.node.output[0])
    lengths = None if known is None else known.lengths
    elem_type = attributes.integer(site.node, "dtype", 0) or (0 if gives is None else gives.elem_type)
    why_not = None
    if lengths is None or len(lengths) != 2 or not elem_type:
        why_not = Refusal("it needs the lengths of its input (--shape)")
    elif np.prod(lengths) > _LARGEST:
        why_not = Refusal("it is very large")

    def write() -> Rewrite:
        assert lengths is not None
        dtype = helper.tensor_dtype_to_np_dtype(elem_type)
        value = np.eye(lengths[0], lengths[1], attributes.integer(site.node, "k", 0) or 0).astype(dtype)
        node = helper.make_node("Constant", [], [site.node.output[0]], value=numpy_helper.from_array(value))
        return Rewrite(site.only(node), (as_declared(site),), exact=True)

    yield Form("a constant", (("Constant", {"of-tensor": True}),), write, why_not)
