"""What an activation is like: an operator that computes each element from one, along with what is before it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope
from padfix.operators.clip import clip_bounds, cuts_relu_off, cuts_window_off_zero
from padfix.operators.data_order import is_behind_depthwise_volume, is_cut_off_volume
from padfix.operators.fused_layers import (
    follows_convolution,
    is_before_softmax,
    is_within_celu,
    spreads_norm,
    spreads_other_norm,
)
from padfix.operators.gates import angle_traits, erf_traits, falls_far, gate_traits, is_behind_product, softplus_traits
from padfix.operators.numbers import is_narrow_integer
from padfix.operators.picking_traits import ranked
from padfix.operators.quantizers import (
    cuts_one_end_of_bytes,
    cuts_quantized,
    is_between_bytes_of_caller,
    joins_between_bytes,
)
from padfix.targets.traits import Traits

_FACTORS = ("alpha", "beta", "gamma")

_OF_RELU6 = (0.0, 6.0)
"""The bounds of a Clip that frameworks call Relu6."""


def _curve(own: Callable[[Scope, NodeProto], Traits]) -> Callable[[Scope, NodeProto], Traits]:
    """Return what reads the traits of an activation: its own, and what all of them have."""

    def read(scope: Scope, node: NodeProto) -> Traits:
        return {
            **own(scope, node),
            "behind-convolution": follows_convolution(scope, node),
            "behind-depthwise-volume": is_behind_depthwise_volume(scope, node.input[0]),
        }

    return read


def _zeros(node: NodeProto) -> Traits:
    """Return whether a factor or term is written as 0, which some take for none, and so for the usual one."""
    return {"zero-factor": any(each.name in _FACTORS and each.f == 0 for each in node.attribute)}


ACTIVATIONS: Mapping[str, Callable[[Scope, NodeProto], Traits]] = {
    "Clip": _curve(
        lambda scope, node: {
            "spreads-norm": spreads_norm(scope, node),
            "spreads-other-norm": spreads_other_norm(scope, node),
            "bounds-computed": any(name and scope.constant(name) is None for name in node.input[1:]),
            "bounds-one-side": len(node.input) == 2 or (len(node.input) == 3 and not all(node.input)),
            "one-bound-inside": scope.parent is not None and sum(map(bool, node.input[1:])) == 1,
            "bounds-none": not any(node.input[1:]) and not node.attribute,
            "bounds-exchanged": operator.gt(*clip_bounds(scope, node)),
            "bounds-equal": operator.eq(*clip_bounds(scope, node)),
            "cuts-volume-off": clip_bounds(scope, node) == _OF_RELU6 and is_cut_off_volume(scope, node),
            "cuts-relu-off": cuts_relu_off(scope, node),
            "cuts-window-off-zero": cuts_window_off_zero(scope, node),
            "cuts-quantized": cuts_quantized(scope, node),
            "cuts-one-end-of-bytes": cuts_one_end_of_bytes(scope, node),
        }
    ),
    **dict.fromkeys(("Cos", "Sin"), angle_traits),
    "Elu": _curve(lambda scope, node: {"within-celu": is_within_celu(scope, node)}),
    "Erf": _curve(erf_traits),
    "Exp": lambda scope, node: {"falls-far": falls_far(scope, node)},
    "Gelu": _curve(lambda scope, node: {"approximate": attributes.text(node, "approximate", "none") or "none"}),
    "HardSigmoid": _curve(lambda scope, node: {**gate_traits(scope, node), **_zeros(node)}),
    "HardSwish": _curve(lambda scope, node: {}),
    "LeakyRelu": _curve(
        lambda scope, node: {
            "between-bytes": is_between_bytes_of_caller(scope, node),
            "joins-between-bytes": joins_between_bytes(scope, node),
        }
    ),
    "Mish": _curve(lambda scope, node: {**ranked(scope, node), "falls-far": falls_far(scope, node)}),
    "Neg": lambda scope, node: {
        "before-softmax": is_before_softmax(scope, node),
        "narrow-integers": is_narrow_integer(scope, node.input[0]),
    },
    "Relu": _curve(
        lambda scope, node: {
            "cuts-volume-off": is_cut_off_volume(scope, node),
            "joins-between-bytes": joins_between_bytes(scope, node),
        }
    ),
    "Selu": _curve(
        lambda scope, node: {
            **_zeros(node),
            "other-factors": any(attributes.find(node, each) for each in ("alpha", "gamma")),
        }
    ),
    "Sigmoid": _curve(lambda scope, node: {"behind-product": is_behind_product(scope, node)}),
    "Softplus": _curve(softplus_traits),
    "Tanh": _curve(gate_traits),
}
"""What reads the traits of each."""
