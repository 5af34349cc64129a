"""What puts elements into some rows alone, as what puts them into all of a part that is cut off and joined again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from padfix.graph import attributes
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site
from padfix.rules.build.explicit_pads import copied
from padfix.rules.build.forms import Form
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder


def part_alone(site: Site) -> Form:
    """Return a ScatterElements into the rows that have indices, and the others joined to what it gives."""
    known, indices = site.input_type(0), site.input_type(1)
    shape = () if known is None or known.shape is None else known.shape
    listed = () if indices is None or indices.shape is None else indices.shape
    axis = (attributes.integer(site.node, "axis", 0) or 0) % max(len(shape), 1)
    cut = [each for each, pair in enumerate(zip(shape, listed, strict=False)) if each != axis and pair[0] != pair[1]]
    pairs = [(shape[each], listed[each]) for each in cut]
    sizes = [(here, there) for here, there in pairs if isinstance(here, int) and isinstance(there, int)]

    def put(builder: FragmentBuilder, given: list[Any], left: list[tuple[int, tuple[int, int]]]) -> Any:
        if not left:
            node = copied(site.node)
            attributes.set_integer(node, "axis", axis)
            return builder.original(node, given)
        (at, (length, end)), *others = left
        part, rest = builder.split(given[0], at, [end, length - end])
        return builder.op("Concat", [put(builder, [part, *given[1:]], others), rest], {"axis": at})

    def write() -> Rewrite:
        builder = site.builder()
        given = [builder.input(name) for name in site.node.input]
        builder.output(site.node.output[0], put(builder, given, list(zip(cut, sizes, strict=True))))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    why_not = None
    if not cut or len(sizes) < len(cut) or any(not 0 < end < length for length, end in sizes):
        why_not = Refusal("it has indices for all rows, or lengths are left open (--shape)")
    own = {**(traits_of(site.scope, site.node) or {}), "of-fewer-rows": False}
    parts = {"pieces-told": True, "axis-written": True, "split-evenly": True, "rank": len(shape)}
    operators: Operators = (("Split", parts), (site.node.op_type, own), ("Concat", {"axes": len(shape)}))
    return Form("the rows that have indices, cut off and joined again", operators, write, why_not)
