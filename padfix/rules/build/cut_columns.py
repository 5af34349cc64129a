"""Columns added before those that a Slice or a Split leaves to images, as to volumes of one image."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from onnx import helper

from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators
from padfix.rules.build.pad_node import padded_by
from padfix.targets.traits import Traits

_RANK = 4
"""The axes of images."""


def joined_as_volumes(site: Site) -> Iterator[Form]:
    """Yield a Concat of images along their last axis as one of volumes."""
    own = traits_of(site.scope, site.node) or {}
    known = site.input_type(0)
    if not own.get("joins-cut-columns") or known is None or known.rank != _RANK:
        return

    def write() -> Rewrite:
        builder = site.builder()
        given = [builder.unsqueezed(builder.input(name), 0) for name in site.node.input]
        joined = builder.op("Concat", given, {"axis": _RANK})
        builder.output(site.node.output[0], builder.unsqueezed(joined, 0, back=True))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    yield _as_volumes("Concat", {**own, "joins-cut-columns": False}, write)


def padded_as_volumes(
    site: Site, plain: Traits, added: Sequence[int], cut: Sequence[int], value: Any
) -> Iterator[Form]:
    """Yield a Pad of images with a constant ``value`` (None where it is computed) as one of volumes."""
    half = len(added) // 2
    if not plain.get("pads-cut-columns") or half != _RANK:
        return

    def write() -> Rewrite:
        builder = site.builder()
        volumes = builder.unsqueezed(builder.input(site.input_name(0)), 0)
        filling = (
            builder.constant(np.asarray(value, helper.tensor_dtype_to_np_dtype(site.elem_type(0))), "value")
            if np.any(value)
            else None
        )
        padded = padded_by(builder, volumes, [0, *added[:half], 0, *added[half:]], filling)
        builder.output(site.node.output[0], builder.unsqueezed(padded, 0, back=True))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    why_not = Refusal("it takes elements away, or its value is not constant") if any(cut) or value is None else None
    yield _as_volumes("Pad", {**plain, "pads-cut-columns": False}, write, why_not)


def _as_volumes(op_type: str, traits: Traits, write: Callable[[], Rewrite], why_not: Refusal | None = None) -> Form:
    own = {**traits, "rank": _RANK + 1}
    operators: Operators = (("Unsqueeze", {"rank": _RANK}), (op_type, own), ("Squeeze", {"rank": _RANK + 1}))
    return Form("volumes of one image", operators, write, why_not)
