"""What tells a runtime that guesses the batch from the layers of a model which axis of a volume it is."""

from __future__ import annotations

from collections.abc import Iterator

from padfix.operators.batches import is_of_another_batch
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of, window_traits
from padfix.operators.window import Window
from padfix.operators.written import Written
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators

_SPATIAL = 3
"""Axes of a volume without its batch and channels."""

_ONE = (1,) * _SPATIAL


def pooled_forms(site: Site) -> Iterator[Form]:
    """Yield what makes or turns a volume with the maximum of each of its elements behind it: a layer of images."""
    own, known = traits_of(site.scope, site.node) or {}, site.scope.type_of(site.node.output[0])
    shape = () if known is None or known.shape is None else known.shape
    why_not = None
    if len(shape) != _SPATIAL + 2:
        why_not = Refusal("it gives no volume")
    elif site.elem_type(0) not in FLOATS:
        why_not = Refusal("pools are of floats")
    elif own.get("moves-batch") or is_of_another_batch(site.scope, site.node.output[0]) is not False:
        why_not = Refusal("its first axis is another than the batch")

    def write() -> Rewrite:
        builder = site.builder()
        given = [builder.input(name) for name in site.node.input]
        volume = builder.original(copied(site.node), given)
        pooled = builder.op("MaxPool", [volume], {"kernel_shape": list(_ONE), "strides": list(_ONE)})
        builder.output(site.node.output[0], pooled)
        return Rewrite(builder.build(), trials_of(site), exact=True)

    written = Written(kernel_shape=_ONE, strides=_ONE)
    pool = Window("", "MaxPool", written, _ONE, _ONE, _ONE, shape[-_SPATIAL:], site.elem_type(0))
    operators: Operators = (
        ()
        if why_not is not None
        else ((site.node.op_type, {**own, "batch-told": True}), ("MaxPool", window_traits(pool)))
    )
    yield Form("a pool of single elements behind it", operators, write, why_not)
