"""What dense layers and layers that normalise are like, in the words that targets state their facts in."""

from __future__ import annotations

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Dimension, Scope
from padfix.operators.constant_chains import is_constant
from padfix.operators.data_order import CHANNELS
from padfix.operators.fused_layers import adds_as_many
from padfix.operators.lent_rows import lent_row
from padfix.operators.loaded_lengths import counted_lengths_differ
from padfix.operators.picking_traits import is_weight, ranked
from padfix.operators.quantizers import is_between_bytes
from padfix.operators.shape_questions import is_spread
from padfix.targets.traits import COUNT, Traits

_SCALE_OF_CHANNELS_SINCE = 21
"""The first opset whose GroupNormalization has a scale for each channel, not for each group."""


def dense_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return of a Gemm whether it is what a dense layer is: weights that are turned, and no factors."""
    factors = [attributes.find(node, name) for name in ("alpha", "beta")]
    are_one = all(each is None or each.f == 1 for each in factors)
    is_biased = len(node.input) > 2 and bool(node.input[2])
    bias = scope.type_of(node.input[2]) if is_biased else None
    gives = scope.type_of(node.output[0])
    columns = None if gives is None or not gives.shape else gives.shape[-1]
    is_turned = attributes.integer(node, "transB", 0) != 0 and attributes.integer(node, "transA", 0) == 0
    return {
        "turned-first": attributes.integer(node, "transA", 0) != 0,
        "plain": is_turned and are_one,
        "has-factors": not are_one,
        "biased": is_biased,
        "adds-nothing": is_biased and factors[1] is not None and factors[1].f == 0,
        "spreads-computed-bias": is_biased and not is_constant(scope, node.input[2]) and is_spread(scope, node, 2),
        "bias-spread": bias is not None and (bias.rank != 1 or (bias.shape == (1,) and columns != 1)),
        "between-bytes": is_between_bytes(scope, node),
        "adds-as-many": adds_as_many(scope, node),
        "adds-lent-row": bool(lent_row(scope, node)),
        "counts-differ": counted_lengths_differ(scope, node),
    }


def group_norm_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return of a GroupNormalization whether each of several groups has a scale, and if its numbers are computed."""
    groups, data = attributes.integer(node, "num_groups", 1), scope.type_of(node.input[0])
    channels = data.shape[CHANNELS] if data is not None and len(data.shape or ()) > CHANNELS and data.shape else None
    return {
        **ranked(scope, node),
        "of-groups": scope.opset < _SCALE_OF_CHANNELS_SINCE and groups != channels,
        "numbers-computed": not all(is_weight(scope, name) for name in node.input[1:]),
    }


def normalised_shape(scope: Scope, node: NodeProto) -> tuple[Dimension, ...]:
    """Return the lengths of the axes that a LayerNormalization takes together; none where they are not known."""
    known, axis = scope.type_of(node.input[0]), attributes.integer(node, "axis", -1)
    return () if known is None or not known.shape or axis is None else tuple(known.shape[axis % len(known.shape) :])


def layer_norm_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return what a LayerNormalization or RMSNormalization normalises, adds and gives."""
    known, axis = scope.type_of(node.input[0]), attributes.integer(node, "axis", -1)
    rank = None if known is None else known.rank
    normalised = normalised_shape(scope, node)
    weights = [scope.type_of(name) for name in node.input[1:3] if name]
    shapes = [each.shape for each in weights if each is not None and each.shape is not None]
    are_weights = [is_weight(scope, name) for name in node.input[1:3] if name]
    return {
        "rank": rank,
        "weights-spread": bool(normalised) and any(tuple(each) != normalised for each in shapes),
        "weights-of-fewer-axes": any(len(each) < len(normalised) for each in shapes),
        "biased": len(node.input) > 2 and bool(node.input[2]),
        "behind-batch": None if rank is None else rank > 2 and axis in (1, 1 - rank),
        "gives-mean": any(node.output[1:]),
        "numbers-computed": not all(are_weights),
        "one-constant-alone": any(are_weights) and not all(are_weights),
        "axis-from-end": axis < 0,
        "takes-batch": None if rank is None else axis in (0, -rank),
        "reduced-axes": None if rank is None or axis is None else min(rank - axis % rank, COUNT[-1]),
    }
