"""Constants that are laid out for as many images as a model is given: class tokens, masks and states."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from onnx import NodeProto, TensorProto, numpy_helper

from padfix.graph import attributes
from padfix.graph.scopes import Dimension
from padfix.operators.constant_chains import chain_of, leaves_of, worked_out
from padfix.operators.refusal import Refusal
from padfix.operators.told_lengths import told_lengths
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.elementary_forms import reduced, zeros_of
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import chain_trial
from padfix.rules.build.objections import Operators

_COPYING = ("ConstantOfShape", "Expand", "Tile")


def beside_images(site: Site) -> Iterator[Form]:
    """Yield a constant, copied for each image, as the sum of itself and zeros that are made of the images."""
    if site.node.op_type not in _COPYING or site.node.domain:
        return
    chain = chain_of(site.scope, site.node, open_lengths=True)
    told = told_lengths(site.scope, site.node.input[site.node.op_type != "ConstantOfShape"]) or [None]
    one, measured = _of_one_image(site, told), _images(site, chain or [], told[0])
    rank, (name, elements) = 0 if one is None else one.ndim, measured or ("", 0)
    operators: Operators = (
        ("Reshape", {"rank": 2}),
        ("ReduceMax", {"rank": 2, "reduced-axes": 1, "reduces-all": False, "axes-listed": True, "keeps-axis": True}),
        ("Equal", {"rank": 2, "broadcasts": False}),
        ("Cast", {"rank": 2, "gives": "single"}),
        ("Mul", {"rank": 2, "broadcasts": True}),
        ("Reshape", {"rank": rank}),
        ("Add", {"rank": rank, "broadcasts": True}),
    )
    why_not = None
    if one is None or chain is None:
        why_not = Refusal("it is no constant of floats that is copied for each image alone")
    elif measured is None:
        why_not = Refusal("no data with known lengths but for the images tell how many there are")

    def write() -> Rewrite:
        assert one is not None
        assert chain is not None
        builder = site.builder()
        rows = builder.reshaped(builder.input(name), [0, elements])
        largest = reduced(builder, "ReduceMax", rows, [1])
        zeros = builder.reshaped(zeros_of(builder, largest), [0, *[1] * (rank - 1)])
        builder.output(site.node.output[0], builder.op("Add", [zeros, builder.constant(one, "one")]))
        return Rewrite(builder.build(), (chain_trial(site.scope, chain),), exact=True, replaces=tuple(chain[:-1]))

    yield Form("a sum with zeros of as many images", operators, write, why_not)


def _of_one_image(site: Site, told: Sequence[Dimension]) -> np.ndarray | None:
    """Return what the node gives for one image by lengths so ``told``; None unless it gives that for each."""
    scope, node = site.scope, site.node
    if not isinstance(told[0], str) or not all(isinstance(each, int) for each in told[1:]):
        return None
    rest = [each for each in told[1:] if isinstance(each, int)]
    if node.op_type == "ConstantOfShape":
        filling = attributes.find(node, "value")
        held: np.ndarray | None = np.zeros(1, np.float32) if filling is None else numpy_helper.to_array(filling.t)
    else:
        held = worked_out(scope, node.input[0])
    if held is None or held.dtype != np.float32 or held.ndim > len(told) or (held.ndim == len(told) and len(held) != 1):
        return None
    row = held.reshape([1] * (len(told) - held.ndim) + list(held.shape))
    if node.op_type == "Tile":
        return np.tile(row, [1, *rest]) if held.ndim == len(told) and 0 not in rest else None
    try:
        copies = np.broadcast_shapes(row.shape, (1, *rest))
    except ValueError:
        return None
    return np.ascontiguousarray(np.broadcast_to(row, copies)) if 0 not in copies else None


def _images(site: Site, chain: list[NodeProto], batch: Dimension) -> tuple[str, int] | None:
    """Return floats whose first length is that of the images, and how many elements each has, where that is known."""
    _, measured = leaves_of(site.scope, chain)
    for name in measured:
        known = site.scope.type_of(name)
        shape: Sequence[Dimension] = () if known is None or known.shape is None else known.shape
        rest = [each for each in shape[1:] if isinstance(each, int) and each > 0]
        is_whole = len(shape) > 1 and len(rest) == len(shape) - 1
        if known is not None and known.elem_type == TensorProto.FLOAT and is_whole:
            return (name, math.prod(rest)) if shape[0] == batch else None
    return None
