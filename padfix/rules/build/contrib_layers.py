"""What the layers of transformers in ONNX Runtime's own domain are in operators of ONNX."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto

from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.rules.base import Site
from padfix.rules.build.contrib_parts import (
    LAYER_NORM_SINCE,
    Write,
    is_there,
    last_length,
    like,
    number,
    numbers,
    there,
)

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_FILTER = -10000.0
"""What is added to products that a mask leaves out, where the node says nothing else."""


def _embedded(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    """Return the rows of words, places and segments, added up and normed; how many words are no filling; the sum."""
    ids, segments, words, places, kinds, gamma, beta = inputs[:7]
    mask, told = there(inputs, 7), there(inputs, 8)
    total = builder.op("Gather", [words, ids])
    total = builder.op("Add", [total, _places(site, builder, ids, places, told)])
    if segments is not None and kinds is not None:
        total = builder.op("Add", [total, builder.op("Gather", [kinds, segments])])
    norm = {"axis": -1, "epsilon": number(site.node, "epsilon", 1e-12)}
    result = builder.op("LayerNormalization", [total, gamma, beta], norm)
    count = None
    if mask is not None and len(site.node.output) > 1 and site.scope.is_used(site.node.output[1]):
        kept = builder.op("Equal", [mask, builder.constant(np.array(1, np.int32), "kept")])
        ones = builder.op("Cast", [kept], {"to": TensorProto.INT32})
        count = builder.op("ReduceSum", [ones, builder.integers([1])], {"keepdims": 0})
    return result, count, total


def _places(site: Site, builder: FragmentBuilder, ids: Any, places: Any, told: Any) -> Any:
    """Return the rows of the places, which are told, or all from the first on."""
    if told is not None:
        return builder.op("Gather", [places, told])
    table, length = site.constant(3), last_length(site, 0)
    if table is not None and length is not None:
        return builder.constant(table[:length], "places")
    end = builder.op("Slice", [builder.op("Shape", [ids]), *(builder.integers([each]) for each in (1, 2, 0))])
    first = builder.integers([0])
    return builder.op("Slice", [places, first, end, first])


def _skipped_norm(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    total = _sum(builder, [*inputs[:2], there(inputs, 4)])
    factors = [each for each in inputs[2:4] if each is not None]
    told = {"axis": -1, "epsilon": number(site.node, "epsilon", 1e-12)}
    return builder.op("LayerNormalization", [total, *factors], told), None, None, total


def _skipped_root_norm(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    total = _sum(builder, [*inputs[:2], there(inputs, 3)])
    square = builder.op("Mul", [total, total])
    if builder.opset >= 18:
        mean = builder.op("ReduceMean", [square, builder.integers([-1])], {"keepdims": 1})
    else:
        mean = builder.op("ReduceMean", [square], {"axes": [-1], "keepdims": 1})
    least = like(site, builder, number(site.node, "epsilon", 1e-12))
    root = builder.op("Sqrt", [builder.op("Add", [mean, least])])
    return builder.op("Mul", [builder.op("Div", [total, root]), inputs[2]]), None, None, total


def _sum(builder: FragmentBuilder, terms: Sequence[Any]) -> Any:
    total, *others = [each for each in terms if each is not None]
    for each in others:
        total = builder.op("Add", [total, each])
    return total


def _self_attention(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    """Return the attention of data to themselves, of which one product makes queries, keys and values."""
    return _attention_of(site, builder, inputs[0], inputs[1], (there(inputs, 2), there(inputs, 3), there(inputs, 5)))


def _quantized_attention(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    data = numbers(builder, [inputs[0], inputs[3], there(inputs, 6)])
    packed, scale, zero = (site.constant(place) for place in (1, 4, 7))
    assert packed is not None
    assert scale is not None
    # Weights of bytes beside data of floats are multiplied as bytes by ONNX Runtime's optimiser.
    values = (packed.astype(np.float32) - (0 if zero is None else zero.astype(np.float32))) * scale
    weights = builder.constant(values.astype(np.float32), "weights")
    return _attention_of(site, builder, data, weights, (inputs[2], there(inputs, 5), None))


def _attention_of(site: Site, builder: FragmentBuilder, data: Any, weights: Any, others: Sequence[Any]) -> Any:
    bias, mask, added = others
    product = builder.op("MatMul", [data, weights])
    product = product if bias is None else builder.op("Add", [product, bias])
    sizes = _sizes(site)
    parts = builder.split(product, 2, sizes)
    masks = [each for each in (_mask(site, builder, mask), _causal(site, builder, data), added) if each is not None]
    return _attended(site, builder, parts, sizes, masks)


def _sizes(site: Site) -> list[int]:
    """Return how long queries, keys and values are, of all heads together."""
    told = attributes.integers(site.node, "qkv_hidden_sizes")
    return list(told) if told else [(last_length(site, 1) or 0) // 3] * 3


def _cross_attention(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    sizes = [last_length(site, position) or 0 for position in range(3)]
    parts, bias, values = inputs[:3], there(inputs, 3), site.constant(3)
    if values is not None:
        pieces = np.split(values, np.cumsum(sizes)[:2])
        parts = [
            builder.op("Add", [part, builder.constant(each, "bias")]) for part, each in zip(parts, pieces, strict=True)
        ]
    elif bias is not None:
        parts = [builder.op("Add", list(each)) for each in zip(parts, builder.split(bias, 0, sizes), strict=True)]
    masks = [_mask(site, builder, there(inputs, 4), 4), _causal(site, builder, inputs[0]), there(inputs, 5)]
    return _attended(site, builder, parts, sizes, [each for each in masks if each is not None])


def _attended(
    site: Site, builder: FragmentBuilder, parts: Sequence[Any], sizes: Sequence[int], masks: Sequence[Any]
) -> Any:
    """Return the values, weighed by the Softmax of the products of queries and keys, head by head."""
    heads = attributes.integer(site.node, "num_heads", 1) or 1
    query, key, value = (
        builder.reshaped(each, [0, 0, heads, size // heads]) for each, size in zip(parts, sizes, strict=True)
    )
    query, value = (builder.op("Transpose", [each], {"perm": [0, 2, 1, 3]}) for each in (query, value))
    key = builder.op("Transpose", [key], {"perm": [0, 2, 3, 1]})
    scale = number(site.node, "scale", 0) or 1 / math.sqrt(sizes[0] // heads)
    products = builder.op("Mul", [builder.op("MatMul", [query, key]), _number(site, builder, scale)])
    shares = builder.op("Softmax", [_sum(builder, [products, *masks])], {"axis": -1})
    result = builder.op("Transpose", [builder.op("MatMul", [shares, value])], {"perm": [0, 2, 1, 3]})
    return builder.reshaped(result, [0, 0, sizes[2]])


def _number(site: Site, builder: FragmentBuilder, value: float) -> Any:
    if site.elem_type(0) in (TensorProto.INT8, TensorProto.UINT8):
        return builder.constant(np.array(value, np.float32), "number")
    return like(site, builder, value)


def _mask(site: Site, builder: FragmentBuilder, mask: Any, position: int = 3) -> Any:
    """Return what is added where a mask of 0 and 1, or the number of words, leaves words out."""
    rank = _rank(site, _mask_at(site, position))
    if mask is None or rank is None:
        return None
    zero, left_out = (_number(site, builder, each) for each in (0, number(site.node, "mask_filter_value", _FILTER)))
    if rank == 1:
        every = _every_place(site, builder)
        ends = builder.reshaped(builder.op("Cast", [mask], {"to": TensorProto.FLOAT}), [-1, 1, 1, 1])
        return builder.op("Where", [builder.op("Less", [every, ends]), zero, left_out])
    wide = builder.unsqueezed(mask, *((1, 2) if rank == 2 else (1,)))
    kept = builder.op("Greater", [wide, builder.constant(np.array(0, np.int32), "none")])
    return builder.op("Where", [kept, zero, left_out])


def _every_place(site: Site, builder: FragmentBuilder) -> Any:
    """Return the places of all words, along the last of four axes."""
    length = _length(site, 0, 1)
    if length is not None:
        return builder.constant(np.arange(length, dtype=np.float32).reshape(1, 1, 1, length), "places")
    lengths = builder.op("Shape", [builder.input(site.input_name(0))])
    count = builder.op("Gather", [lengths, builder.integers(1)], {"axis": 0})
    every = builder.op("Range", [builder.integers(0), count, builder.integers(1)])
    return builder.reshaped(builder.op("Cast", [every], {"to": TensorProto.FLOAT}), [1, 1, 1, -1])


def _causal(site: Site, builder: FragmentBuilder, data: Any) -> Any:
    """Return what is added so that no word attends to later ones; None where all do."""
    length = _length(site, 0, 1)
    if not attributes.integer(site.node, "unidirectional", 0) or length is None:
        return None
    lowest = np.finfo(np.float32).min
    return builder.constant(np.triu(np.full((1, 1, length, length), lowest, np.float32), 1), "later")


def _rotated(site: Site, builder: FragmentBuilder, inputs: list[Any]) -> Any:
    """Return data of which pairs of elements are turned by the angle that belongs to their place."""
    data, places, *tables = inputs[:4]
    rank = _rank(site, 0) or 0
    half, size = last_length(site, 2) or 0, _head_size(site) or 0
    count = (last_length(site, 0) or 0) // max(size, 1) if rank == 3 else 0
    heads = builder.reshaped(data, [0, 0, count, size]) if rank == 3 else data
    length = _length(site, 0, rank - 2)
    if _length(site, 1, 0) == 1 and _rank(site, 1) == 1:
        places = builder.op("Add", [places, builder.integers(list(range(length or 0)))])
        axes = (1,) if rank == 3 else ()
    else:
        axes = (2,) if rank == 3 else (1,)
    cosine, sine = (builder.op("Gather", [each, places]) for each in tables)
    if axes:
        cosine, sine = (builder.unsqueezed(each, *axes) for each in (cosine, sine))
    turned, *rest = builder.split(heads, 3, [2 * half, size - 2 * half] if size > 2 * half else [size])
    is_paired = attributes.integer(site.node, "interleaved", 0) != 0
    if is_paired:
        pairs = builder.reshaped(turned, [0, 0, count, half, 2])
        first, second = (builder.unsqueezed(each, 4, back=True) for each in builder.split(pairs, 4, [1, 1]))
    else:
        first, second = builder.split(turned, 3, [half, half])
    real = builder.op("Sub", [builder.op("Mul", [first, cosine]), builder.op("Mul", [second, sine])])
    other = builder.op("Add", [builder.op("Mul", [first, sine]), builder.op("Mul", [second, cosine])])
    if is_paired:
        joined = builder.op("Concat", [builder.unsqueezed(each, 4) for each in (real, other)], {"axis": 4})
        result = builder.reshaped(joined, [0, 0, 0, 2 * half])
        result = builder.op("Concat", [result, *rest], {"axis": 3}) if rest else result
    else:
        result = builder.op("Concat", [real, other, *rest], {"axis": 3})
    return builder.reshaped(result, [0, 0, last_length(site, 0) or 0]) if rank == 3 else result


def _head_size(site: Site) -> int | None:
    """Return how many elements each head of a RotaryEmbedding has; None where that is not known."""
    last, half = last_length(site, 0), last_length(site, 2)
    if _rank(site, 0) == 4:
        return last
    if not attributes.integer(site.node, "rotary_embedding_dim", 0):
        return None if half is None else 2 * half
    heads = attributes.integer(site.node, "num_heads", 0)
    return last // heads if last is not None and heads else None


def _rank(site: Site, position: int) -> int | None:
    known = site.input_type(position)
    return None if known is None else known.rank


def _length(site: Site, position: int, axis: int) -> int | None:
    """Return how long an axis of an input is; None where that is not known."""
    known = site.input_type(position)
    shape = () if known is None or known.shape is None else known.shape
    length = shape[axis] if -len(shape) <= axis < len(shape) else None
    return length if isinstance(length, int) else None


def _mask_at(site: Site, position: int) -> int:
    return 5 if site.node.op_type == "QAttention" else position


def _why_no_embedding(site: Site) -> Refusal | None:
    is_counted = len(site.node.output) > 1 and site.scope.is_used(site.node.output[1])
    return Refusal("it counts words that no mask tells") if is_counted and not is_there(site, 7) else None


def _why_no_attention(site: Site) -> Refusal | None:
    position = _mask_at(site, 3)
    if is_there(site, *((8,) if position == 5 else (4, 6))) or attributes.integer(site.node, "do_rotary", 0):
        return Refusal("it reads what came before, or turns its data")
    if position == 5 and any(site.constant(place) is None for place in (1, 4, *((7,) if is_there(site, 7) else ()))):
        return Refusal("its weights are no constants")
    if last_length(site, 1) is None or _rank(site, 0) is None:
        return Refusal("the lengths of its weights, or of its data, are not known")
    return _why_no_mask(site, position)


def _why_no_mask(site: Site, position: int) -> Refusal | None:
    data, mask = site.input_type(0), site.input_type(position)
    if attributes.integer(site.node, "unidirectional", 0) and _length(site, 0, 1) is None:
        return Refusal("it needs the number of words (--shape)")
    if not is_there(site, position):
        return None
    if mask is None or mask.shape is None or not 1 <= len(mask.shape) <= 3:
        return Refusal("its mask has a shape of its own")
    assert data is not None
    if len(mask.shape) == 1 and (data.shape is None or mask.shape[0] != data.shape[0]):
        return Refusal("its mask may count the words that come first as well (--shape)")
    return None


def _why_no_cross_attention(site: Site) -> Refusal | None:
    if any(_rank(site, position) != 3 or last_length(site, position) is None for position in range(3)):
        return Refusal("its queries, keys and values are no three inputs of known lengths")
    if is_there(site, 6, 7, 8, 9):
        return Refusal("it reads what came before")
    if attributes.integer(site.node, "unidirectional", 0) and site.input_type(0) != site.input_type(1):
        return Refusal("it is causal, of other lengths")
    return (
        Refusal("its mask has a shape of its own")
        if is_there(site, 4) and _rank(site, 4) != 2
        else _why_no_mask(site, 4)
    )


def _why_no_rotation(site: Site) -> Refusal | None:
    rank = _rank(site, 0)
    if rank not in (3, 4) or _head_size(site) is None or last_length(site, 0) is None or last_length(site, 2) is None:
        return Refusal("the lengths of its data, its heads or its tables are not known")
    is_offset = _rank(site, 1) == 1 and _length(site, 1, 0) == 1
    if not is_offset and _rank(site, 1) != 2:
        return Refusal("the shape of its places is not known")
    if is_offset and _length(site, 0, rank - 2) is None:
        return Refusal("it needs the number of words (--shape)")
    return Refusal("it takes sequences together") if attributes.integer(site.node, "is_packed_batching", 0) else None


LAYERS: Mapping[str, Write] = {
    "Attention": _self_attention,
    "EmbedLayerNormalization": _embedded,
    "MultiHeadAttention": _cross_attention,
    "QAttention": _quantized_attention,
    "RotaryEmbedding": _rotated,
    "SkipLayerNormalization": _skipped_norm,
    "SkipSimplifiedLayerNormalization": _skipped_root_norm,
}
"""By the type of an operator: what writes it."""

WHY_NO_LAYER: Mapping[str, Callable[[Site], Refusal | None]] = {
    "Attention": _why_no_attention,
    "EmbedLayerNormalization": _why_no_embedding,
    "MultiHeadAttention": _why_no_cross_attention,
    "QAttention": _why_no_attention,
    "RotaryEmbedding": _why_no_rotation,
}
"""By the type of an operator: what of it these forms don't say."""

LAYERS_SINCE: Mapping[str, int] = {
    "Attention": 13,
    "EmbedLayerNormalization": LAYER_NORM_SINCE,
    "MultiHeadAttention": 13,
    "QAttention": 13,
    "RotaryEmbedding": 13,
    "SkipLayerNormalization": LAYER_NORM_SINCE,
    "SkipSimplifiedLayerNormalization": 13,
}
"""The first opset that has what an operator is written with."""
