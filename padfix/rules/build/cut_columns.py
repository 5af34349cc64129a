"""Columns added before those that a Slice or a Split leaves to images, as to volumes of one image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Site
from padfix.rules.build.forms import Form
from padfix.rules.build.one_volume import IMAGES, as_one_volume
from padfix.rules.build.pad_node import padded_by
from padfix.targets.traits import Traits

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder


def joined_as_volumes(site: Site) -> Iterator[Form]:
    """Yield a Concat of images along their last axis as one of volumes."""
    own, known = traits_of(site.scope, site.node) or {}, site.input_type(0)
    if not own.get("joins-cut-columns") or known is None or known.rank != IMAGES:
        return

    def write(builder: FragmentBuilder, *volumes: Any) -> Any:
        return builder.op("Concat", list(volumes), {"axis": IMAGES})

    yield as_one_volume(site, site.node.input, {**own, "joins-cut-columns": False}, write)


def padded_as_volumes(
    site: Site, plain: Traits, added: Sequence[int], cut: Sequence[int], value: Any
) -> Iterator[Form]:
    """Yield a Pad of images with a constant ``value`` (None where it is computed) as one of volumes."""
    half = len(added) // 2
    if not plain.get("pads-cut-columns") or half != IMAGES:
        return
    dtype = helper.tensor_dtype_to_np_dtype(site.elem_type(0))

    def write(builder: FragmentBuilder, volumes: Any) -> Any:
        filling = builder.constant(np.asarray(value, dtype), "value") if np.any(value) else None
        return padded_by(builder, volumes, [0, *added[:half], 0, *added[half:]], filling)

    why_not = Refusal("it takes elements away, or its value is not constant") if any(cut) or value is None else None
    yield as_one_volume(site, site.node.input[:1], {**plain, "pads-cut-columns": False}, write, why_not)
