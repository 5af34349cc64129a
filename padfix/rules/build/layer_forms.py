"""Equal forms of dense layers, of what normalises a layer, and of what picks elements."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.graph import attributes
from padfix.operators.data_order import CHANNELS
from padfix.operators.other_traits import OTHERS
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import multiplied, multiplying, selection, why_not_multiplied
from padfix.rules.build.computed_norms import computed_batch_norm, computed_instance_norm
from padfix.rules.build.elementary_forms import reduced, reduction_traits
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_forms import as_node
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.norm_weights import in_whole
from padfix.rules.build.objections import Operators
from padfix.rules.build.written_forms import EPSILON, epsilon_forms
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_LINES = 3
"""Axes of lines with their batch and channels."""

_MOMENTUM = 0.9
"""How much of the numbers before BatchNormalization keeps where it trains and does not say."""

_RUNNING = 2
"""Which output of a BatchNormalization is the running variance, the last one since opset 14."""

_BIAS = 2
"""Which input is added, of a Gemm and of a LayerNormalization."""


def dense_forms(site: Site) -> Iterator[Form]:
    """Yield a Gemm apart from the DequantizeLinear before it, and as a dense layer: with factors in turned weights."""
    own = {**(traits_of(site.scope, site.node) or {}), "between-bytes": False}

    def write_apart() -> Rewrite:
        builder = site.builder()
        data, *rest = (builder.input(name) for name in site.node.input)
        node = builder.original(copied(site.node), [builder.op("Identity", [data]), *rest])
        builder.output(site.node.output[0], node)
        return Rewrite(builder.build(), trials_of(site))

    yield Form("an Identity before it", (("Gemm", own),), write_apart)
    yield _turned(site, own)
    weights, bias = site.constant(1), site.constant(_BIAS)
    alpha, beta = (attributes.find(site.node, name) for name in ("alpha", "beta"))
    if bias is not None and beta is not None and beta.f == 0 and np.isfinite(bias).all():
        bias = None
    is_matrix = bias is not None and bias.ndim > 1 and len(bias) > 1
    plain = {"plain": True, "turned-first": False, "has-factors": False, "adds-nothing": False}
    why_not = None
    if weights is None or (site.constant(_BIAS) is None and site.input_name(_BIAS)):
        why_not = Refusal("its weights are not constant, or very long")
    elif attributes.integer(site.node, "transA", 0):
        why_not = Refusal("its data is turned as well")

    def write() -> Rewrite:
        assert weights is not None
        builder = site.builder()
        turned = weights if attributes.integer(site.node, "transB", 0) else np.ascontiguousarray(weights.T)
        given = np.zeros(len(turned), weights.dtype) if bias is None else _as_list(bias, len(turned))
        parts = [
            (each * weights.dtype.type(1 if factor is None else factor.f)).astype(weights.dtype)
            for each, factor in ((turned, alpha), (given, beta))
        ]
        inputs = [builder.input(site.input_name(0)), *(builder.constant(each, "weights") for each in parts)]
        result = builder.op("Gemm", inputs, {"alpha": 1.0, "beta": 1.0, "transB": 1}, name=site.node.name)
        builder.output(site.node.output[0], result)
        return Rewrite(builder.build(), trials_of(site))

    yield Form(
        "weights with the factors in them",
        (("Gemm", {**own, **plain, "bias-spread": is_matrix}),),
        write,
        why_not,
    )
    yield _by_product(site)


def _as_list(bias: np.ndarray, columns: int) -> np.ndarray:
    """Return what is added to every row as a list, and a matrix of several rows as it is."""
    if bias.ndim > 1 and len(bias) > 1:
        return bias
    return np.ascontiguousarray(np.broadcast_to(bias.reshape(-1), (columns,)))


def _by_product(site: Site) -> Form:
    """Return a Gemm as the product that it is, with its factor, and what is added with its own."""

    def write() -> Rewrite:
        builder = site.builder()
        dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))

        def scaled(value: Any, name: str) -> Any:
            factor = attributes.find(site.node, name)
            if factor is None or factor.f == 1:
                return value
            return builder.op("Mul", [value, builder.constant(np.array(factor.f, dtype), name)])

        sides = [builder.input(name) for name in site.node.input[:2]]
        for place, name in enumerate(("transA", "transB")):
            if attributes.integer(site.node, name, 0):
                sides[place] = builder.op("Transpose", [sides[place]], {"perm": [1, 0]})
        result = scaled(builder.op("MatMul", sides), "alpha")
        if site.input_name(_BIAS):
            result = builder.op("Add", [result, scaled(builder.input(site.input_name(_BIAS)), "beta")])
        builder.output(site.node.output[0], result)
        return Rewrite(builder.build(), trials_of(site))

    turns = any(attributes.integer(site.node, name, 0) for name in ("transA", "transB"))
    operators: Operators = (("MatMul", {"rank": 2}), ("Mul", {"gate-second": False}), ("Add", {}))
    if turns:
        operators = (*operators, ("Transpose", {"rank": 2, "turned-back": False, "turned-back-alike": False}))
    return Form("a product and a sum", operators, write)


def flattening_forms(site: Site) -> Iterator[Form]:
    """Yield a Flatten as the Reshape that it is."""
    known, axis = site.input_type(0), attributes.integer(site.node, "axis", 1) or 0
    shape = () if known is None or known.shape is None else known.shape
    axis += len(shape) if axis < 0 else 0
    before = [each for each in shape[:axis] if isinstance(each, int)]
    behind = [each for each in shape[axis:] if isinstance(each, int)]
    is_known = bool(shape) and (axis in (0, 1, len(shape)) or len(before) == axis)

    def write() -> Rewrite:
        builder = site.builder()
        # A length that is told suits an empty batch as well.
        second = math.prod(behind) if len(behind) == len(shape) - axis else -1
        first = math.prod(before) if len(before) == axis != 1 else 0 if axis == 1 < len(shape) else -1
        builder.output(site.node.output[0], builder.reshaped(builder.input(site.input_name(0)), [first, second]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    why_not = None if is_known else Refusal("an equal form needs the lengths before its axis (--shape)")
    mixes = bool((traits_of(site.scope, site.node) or {}).get("across-images"))
    yield Form("a Reshape", (("Reshape", {"rank": 2, "across-images": mixes}),), write, why_not)


def listed_first(site: Site) -> Iterator[Form]:
    """Yield a Reshape of an image behind a Flatten."""
    own = traits_of(site.scope, site.node) or {}

    def write() -> Rewrite:
        builder = site.builder()
        data, shape = (builder.input(name) for name in site.node.input)
        flat = builder.op("Flatten", [data], {"axis": 1})
        builder.output(site.node.output[0], builder.original(copied(site.node), [flat, shape]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    told, known = site.constant(1), site.input_type(0)
    why_not = None if own.get("of-thin-image") else Refusal("it is of no such image")
    if told is None or 0 in told[1:] or known is None or known.rank is None:
        why_not = Refusal("its shape is not constant, or it copies lengths")
    changed = {"of-thin-image": False, "copies-channels": False}
    yield Form("a Flatten before it", (("Flatten", {}), ("Reshape", {**own, **changed})), write, why_not)


def _turned(site: Site, traits: Traits) -> Form:
    """Return a Gemm whose data is turned before it."""

    def write() -> Rewrite:
        builder = site.builder()
        data, *rest = (builder.input(name) for name in site.node.input)
        turned = builder.op("Transpose", [data], {"perm": [1, 0]})
        node = builder.original(copied(site.node, without=("transA",)), [turned, *rest])
        builder.output(site.node.output[0], node)
        return Rewrite(builder.build(), trials_of(site))

    why_not = None if traits.get("turned-first") else Refusal("its data is as it is")
    turns = ("Transpose", {"rank": 2, "turned-back": False, "turned-back-alike": False})
    return Form("a Transpose before it", (turns, ("Gemm", {**traits, "turned-first": False})), write, why_not)


def layer_norm_forms(site: Site) -> Iterator[Form]:
    """Yield the norm with its mean and deviation beside it, with a bias of zeros, and of all axes as of a list."""
    yield from _beside_statistics(site)
    yield _counted_from_end(site)
    known = site.input_type(0)
    weighed = site.input_type(1)
    weights = None if weighed is None else weighed.lengths
    shape = () if known is None or known.shape is None else known.shape
    lengths = [each for each in shape[1:] if isinstance(each, int)]
    traits = {**OTHERS["LayerNormalization"](site.scope, site.node), "biased": True}
    axis = (attributes.integer(site.node, "axis", -1) or 0) % max(len(shape), 1) - 1
    is_flat = len(lengths) == len(shape) - 1 > 0 and axis >= 0
    scale, bias = (
        in_whole(told, lengths[axis:]) if is_flat and told is not None else told
        for told in map(site.constant, (1, _BIAS))
    )

    def write(*, flat: bool) -> Rewrite:
        assert weights is not None
        builder = site.builder()
        data, factor, *others = (builder.input(name) for name in site.node.input)
        own = weights if scale is None or not flat else scale.shape
        added = np.zeros(own, helper.tensor_dtype_to_np_dtype(site.elem_type(1))) if bias is None else bias
        inputs = [data, factor, others[0] if site.input_name(_BIAS) else builder.constant(added)]
        node = copied(site.node)
        if flat:
            assert scale is not None
            attributes.set_integer(node, "axis", 2)
            listed = builder.reshaped(data, [0, math.prod(lengths) // scale.size, scale.size])
            inputs = [listed, *(builder.constant(each.reshape(-1), "weights") for each in (scale, added))]
        result = builder.original(node, inputs)
        builder.output(site.node.output[0], builder.reshaped(result, [0, *lengths]) if flat else result)
        return Rewrite(builder.build(), trials_of(site))

    why_not = None
    if weights is None:
        why_not = Refusal("the shape of its scale is not known")
    elif len([name for name in site.node.output if name]) > 1:
        why_not = Refusal("its mean and deviation are read")
    yield Form("a bias of zeros", (("LayerNormalization", traits),), lambda: write(flat=False), why_not)
    if scale is None or (bias is None and site.input_name(_BIAS)):
        why_not = why_not or Refusal("its scale is not constant, or very long")
    elif scale.size != math.prod(lengths[axis:]) or (bias is not None and bias.size != scale.size):
        why_not = why_not or Refusal("its scale is no longer than a part of the axes")
    elif not is_flat:
        why_not = why_not or Refusal("it needs the lengths behind the batch (--shape)")
    plain = dict.fromkeys(("behind-batch", "weights-spread", "weights-of-fewer-axes"), False)
    told = {**traits, **plain, "reduced-axes": 1, "rank": 3}
    operators = (("LayerNormalization", told), ("Reshape", {"rank": len(shape)}))
    yield Form("the norm of a list", operators, lambda: write(flat=True), why_not)


def _counted_from_end(site: Site) -> Form:
    """Return the norm with its axis counted from the end."""
    known, axis = site.input_type(0), attributes.integer(site.node, "axis", -1)
    rank = 0 if known is None or known.rank is None else known.rank

    def write() -> Rewrite:
        node = copied(site.node)
        attributes.set_integer(node, "axis", axis - rank)
        return as_node(site, node, exact=False)

    why_not = Refusal("it is, or how many axes its data have is not known") if axis < 0 or not rank else None
    own = {**OTHERS["LayerNormalization"](site.scope, site.node), "axis-from-end": True}
    return Form("its axis counted from the end", (("LayerNormalization", own),), write, why_not)


def _beside_statistics(site: Site) -> Iterator[Form]:
    """Yield the norm with the mean that it takes and one over the deviation computed beside it, or as made of these."""
    known, axis = site.input_type(0), attributes.integer(site.node, "axis", -1) or 0
    rank = 0 if known is None or known.rank is None else known.rank
    axes = list(range(axis % max(rank, 1), rank))
    found, dtype = attributes.find(site.node, "epsilon"), helper.tensor_dtype_to_np_dtype(site.elem_type(0))

    def write(*, kept: bool) -> Rewrite:
        builder = site.builder()
        data, *weights = (builder.input(name) for name in site.node.input if name)
        middle = reduced(builder, "ReduceMean", data, axes)
        away = builder.op("Sub", [data, middle])
        square = reduced(builder, "ReduceMean", builder.op("Mul", [away, away]), axes)
        least = builder.constant(np.array(EPSILON if found is None else found.f, dtype), "epsilon")
        inverse = builder.op("Reciprocal", [builder.op("Sqrt", [builder.op("Add", [square, least])])])
        node = copied(site.node)
        del node.output[1:]
        if kept:
            result = builder.original(node, [data, *weights])
        else:
            result = builder.op("Mul", [away, inverse])
            for op_type, each in zip(("Mul", "Add"), weights, strict=False):
                result = builder.op(op_type, [result, each])
        for name, value in zip(site.node.output, (result, middle, inverse), strict=False):
            if name:
                builder.output(name, value)
        return Rewrite(builder.build(), trials_of(site))

    own = {**OTHERS["LayerNormalization"](site.scope, site.node), "gives-mean": False}
    why_not = None if any(site.node.output[1:]) else Refusal("it gives the norm alone")
    if not rank or dtype != np.float32:
        why_not = why_not or Refusal("how many axes it has is not known, or its data are no floats of 32 bits")
    kept = {"rank": rank, "keeps-axis": True, "reduces-all": len(axes) == rank}
    mean_traits: Traits = {**reduction_traits("ReduceMean", site.opset, axes), **kept}
    operators: Operators = (
        ("ReduceMean", mean_traits),
        *((each, {}) for each in ("Sub", "Add", "Sqrt", "Reciprocal")),
        ("Mul", {"gate-second": False}),
    )
    beside = (("LayerNormalization", own), *operators)
    yield Form("its mean and deviation beside it", beside, lambda: write(kept=True), why_not)
    yield Form("a product with its deviation", operators, lambda: write(kept=False), why_not)


def instance_norm_forms(site: Site) -> Iterator[Form]:
    """Yield the norm with its epsilon written, and that of lines or of a volume as that of a plane."""
    yield from epsilon_forms(site)
    known = site.input_type(0)
    shape = () if known is None or known.shape is None else known.shape
    lengths = [each for each in shape[1:] if isinstance(each, int)]
    own = {**(traits_of(site.scope, site.node) or {}), "rank": 4}

    def write(builder: FragmentBuilder, value: Any, *weights: Any) -> Any:
        if len(shape) == _LINES:
            return builder.unsqueezed(
                builder.original(copied(site.node), [builder.unsqueezed(value, 2), *weights]), 2, back=True
            )
        plane = builder.reshaped(value, [0, *lengths[:2], math.prod(lengths[2:])])
        return builder.reshaped(builder.original(copied(site.node), [plane, *weights]), [0, *lengths])

    def rewrite() -> Rewrite:
        builder = site.builder()
        inputs = [builder.input(name) for name in site.node.input]
        builder.output(site.node.output[0], write(builder, *inputs))
        return Rewrite(builder.build(), trials_of(site))

    why_not = None
    if len(shape) == _LINES:
        operators: Operators = (("Unsqueeze", {}), ("Squeeze", {}))
    else:
        reshape = {"copies-channels": False, "copies-behind-reshape": False}
        operators = (("Reshape", {"rank": 4, **reshape}), ("Reshape", {"rank": len(shape), **reshape}))
        if len(shape) <= _LINES + 1:
            why_not = Refusal("it is the norm of a plane, or of how many axes is not known")
        elif len(lengths) < len(shape) - 1:
            why_not = Refusal("it needs the lengths behind the batch (--shape)")
    yield Form("the norm of a plane", ((site.node.op_type, own), *operators), rewrite, why_not)
    yield computed_instance_norm(site)


def batch_norm_forms(site: Site) -> Iterator[Form]:
    """Yield the norm with its epsilon written, behind an Identity, and as a product and a sum."""
    yield from epsilon_forms(site)
    own = {**(traits_of(site.scope, site.node) or {}), "behind-activation": False}

    def write_apart() -> Rewrite:
        builder = site.builder()
        data, *rest = (builder.input(name) for name in site.node.input)
        builder.output(
            site.node.output[0], builder.original(copied(site.node), [builder.op("Identity", [data]), *rest])
        )
        return Rewrite(builder.build(), trials_of(site))

    several = Refusal("it trains") if len([name for name in site.node.output if name]) > 1 else None
    yield Form("an Identity before it", (("BatchNormalization", own),), write_apart, several)
    known = site.input_type(0)
    rank = None if known is None else known.rank
    constants = [site.constant(position) for position in range(1, 5)]
    given = [each for each in constants if each is not None]
    why_not = None
    if len(given) < len(constants) or not rank or len([name for name in site.node.output if name]) > 1:
        why_not = Refusal("its numbers are not constant, how many axes it has is not known, or it trains")

    def write() -> Rewrite:
        scale, bias, mean, variance = (each.astype(np.float64) for each in given)
        epsilon = attributes.find(site.node, "epsilon")
        factor = scale / np.sqrt(variance + (EPSILON if epsilon is None else epsilon.f))
        builder = site.builder()
        dtype: Any = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
        shape = [-1, *[1] * ((rank or 0) - 2)]
        factors, terms = (
            builder.constant(each.reshape(shape).astype(dtype), name)
            for each, name in ((factor, "factors"), (bias - mean * factor, "terms"))
        )
        product = builder.op("Mul", [builder.input(site.input_name(0)), factors])
        builder.output(site.node.output[0], builder.op("Add", [product, terms]))
        return Rewrite(builder.build(), trials_of(site))

    yield Form("a product and a sum", (("Mul", {}), ("Add", {})), write, why_not)
    yield computed_batch_norm(site)
    if own.get("trains"):
        yield _trained(site)


def _trained(site: Site) -> Form:
    """Return a BatchNormalization that trains as the norm of its batch, and what is left of the numbers before.

    Its means are for the rule about reductions to judge.
    """
    known = site.input_type(0)
    rank = 0 if known is None or known.rank is None else known.rank
    axes = [axis for axis in range(rank) if axis != CHANNELS]
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))
    told = [(each := attributes.find(site.node, name)) and each.f for name in ("epsilon", "momentum")]
    epsilon, kept = (usual if each is None else each for each, usual in zip(told, (EPSILON, _MOMENTUM), strict=True))

    def write() -> Rewrite:
        builder = site.builder()
        data, *rest = (builder.input(name) for name in site.node.input)
        scale, bias = (builder.reshaped(each, [-1, *[1] * (rank - 2)]) for each in rest[:2])
        mean = reduced(builder, "ReduceMean", data, axes)
        apart = builder.op("Sub", [data, mean])
        variance = reduced(builder, "ReduceMean", builder.op("Mul", [apart, apart]), axes)
        least = builder.constant(np.array(epsilon, dtype), "epsilon")
        root = builder.op("Sqrt", [builder.op("Add", [variance, least])])
        product = builder.op("Mul", [builder.op("Div", [apart, root]), scale])
        builder.output(site.node.output[0], builder.op("Add", [product, bias]))
        shares = [builder.constant(np.array(each, dtype), "share") for each in (kept, 1 - kept)]
        for place, (now, before) in enumerate(zip((mean, variance), rest[2:], strict=True), 1):
            if place < len(site.node.output) and site.scope.is_used(site.node.output[place]):
                terms = (
                    builder.op("Mul", list(each))
                    for each in zip((before, builder.reshaped(now, [-1])), shares, strict=True)
                )
                builder.output(site.node.output[place], builder.op("Add", list(terms)))
        return Rewrite(builder.build(), trials_of(site))

    operators: Operators = (
        ("Sub", {}),
        ("Mul", {}),
        ("Add", {}),
        ("Sqrt", {}),
        ("Div", {}),
        ("Reshape", {"rank": rank}),
    )
    why_not = None if rank > 1 else Refusal("how many axes it has is not known")
    if any(site.scope.is_used(name) for name in site.node.output[_RUNNING + 1 :] if name):
        why_not = Refusal("the mean of the batch itself is read")
    return Form("the norm of its batch", operators, write, why_not)


def picking_forms(site: Site) -> Iterator[Form]:
    """Yield what picks several elements of an axis as a product with a matrix of 0 and 1."""
    known, indices = site.input_type(0), site.constant(1)
    shape = () if known is None or known.shape is None else known.shape
    axis = (attributes.integer(site.node, "axis", 0) or 0) % max(len(shape), 1)
    size = shape[axis] if shape else None
    picked: list[int] = []
    why_not = None
    if not isinstance(size, int) or indices is None or indices.ndim != 1:
        why_not = Refusal("what it picks, or the length that it picks from, is not known")
    else:
        picked = [int(each) % size for each in indices]
        why_not = why_not_multiplied(site.elem_type(0), [(size, len(picked))])

    def write() -> Rewrite:
        assert isinstance(size, int)
        builder = site.builder()
        matrix = selection(picked, size).astype(helper.tensor_dtype_to_np_dtype(site.elem_type(0)))
        result = multiplied(builder, builder.input(site.input_name(0)), {axis: matrix}, shape)
        builder.output(site.node.output[0], result)
        return Rewrite(builder.build(), trials_of(site), exact=True)

    yield Form("a product with a matrix", multiplying([axis], shape) if shape else (), write, why_not)
