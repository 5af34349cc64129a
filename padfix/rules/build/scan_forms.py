"""A Scan whose axes are counted from the begin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import NodeProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope, outer_names_of
from padfix.operators.branches import scan_axes
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import declared
from padfix.rules.build.objections import worst_objection
from padfix.targets import Target


def scan_forms(site: Site) -> Iterator[Form]:
    """Yield a Scan with all axes counted from the begin, where that takes how many axes its slices have."""
    own = traits_of(site.scope, site.node) or {}
    if not own.get("axes-from-untold-end"):
        return
    node = site.node
    read, joined = scan_axes(node)
    told = {
        "scan_input_axes": _from_begin(site, node.input[len(node.input) - len(read) :], [axis for axis, _ in read]),
        "scan_output_axes": _from_begin(
            site, node.output[-len(joined) :] if joined else (), [axis for axis, _ in joined]
        ),
    }

    names = [*node.input, *sorted(outer_names_of(node))]

    def write() -> Rewrite:
        written = copied(node)
        for name, axes in told.items():
            if axes:
                attributes.set_integers(written, name, axes)
        return Rewrite(site.only(written), (declared(site.scope, names),), exact=True)

    why_not = None if None not in told.values() else Refusal("how many axes it goes along one of is not known")
    yield Form("its axes counted from the begin", (("Scan", {**own, "axes-from-untold-end": False}),), write, why_not)


def counts_from_end_alone(scope: Scope, node: NodeProto, target: Target) -> bool:
    """Whether a target has nothing against a Scan but axes that are counted from the end, so that its turns stay."""
    own = traits_of(scope, node) or {}
    told = {**own, "axes-from-untold-end": False}
    return bool(own.get("axes-from-untold-end")) and worst_objection(target, node.op_type, scope.opset, told) is None


def _from_begin(site: Site, names: Sequence[str], axes: list[int]) -> list[int] | None:
    """Return the axes of these tensors, counted from the begin; None where one can't be told."""
    types = [site.scope.type_of(name) if name else None for name in names]
    ranks = [None if known is None else known.rank for known in types]
    if any(axis < 0 and rank is None for axis, rank in zip(axes, ranks, strict=False)):
        return None
    return [axis + (rank or 0) if axis < 0 else axis for axis, rank in zip(axes, ranks, strict=False)]
