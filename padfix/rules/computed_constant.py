"""PF305: a constant that the model computes, where the target takes such a one for another, or refuses it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from onnx import NodeProto

from padfix.operators.computed_traits import computed_traits
from padfix.operators.constant_chains import COMPUTED, STEERED, chain_of, has_chain, is_read_by_data, is_worked_out
from padfix.operators.counted_rows import GIVING_ROWS, counted_rows
from padfix.operators.traits import traits_of
from padfix.results import Finding
from padfix.rules.base import Site
from padfix.rules.build.counted_places import counted_places
from padfix.rules.build.forms import Form
from padfix.rules.build.image_constants import beside_images
from padfix.rules.build.objections import Objection, objections
from padfix.rules.build.target_rule import TargetRule

_TOLD = {**STEERED, "Gather": (1,)}
"""Operators that may want constants to be written, and the positions of those."""


class ComputedConstant(TargetRule):
    """A constant that the model computes from others and from lengths, which the target gets wrong or refuses.

    Exporters write the anchors of a detector, or the grid of an attention, as they are programmed: Shape, Gather,
    Range, Expand, Concat. With fixed lengths (`--shape`) all of that is one constant, and most runtimes work it out
    when they load the model. Some importers do so with arrays of their own that know no list of one dimension.

    padfix writes the constant in place of what computes it, as far as data does not enter into it. What is read as it
    is meant stays, as shapes and indices mostly are, and so does what is computed from long weights. The amounts of a
    Pad, the scales of a Resize and the bounds of a Slice, which PyTorch and TensorFlow compute too, are written where
    the target wants to see them.

    Refused: constants of more than four million elements, and those that depend on a length which is left open, unless
    that is how many images there are, each of which has them once, or how many of its rows are taken, as of the places
    of words.

    Before, opset 17, for opencv:

        main (float[1,3] X) => (float[1,3] Y) <float[3] left = {0, 2, 4}, float[3] half = {1, 1, 1}> {
          places = Add (left, half)
          Y = Add (X, places)
        }

    After:

        places = Constant <value: tensor = float[3] {1, 3, 5}> ()
        Y = Add (X, places)

    References:

    - The ONNX specification of Constant: <https://onnx.ai/onnx/operators/onnx__Constant.html>
    """

    code = "PF305"
    name = "computed-constant"
    operators = frozenset(("", op_type) for op_type in COMPUTED)
    example_target = "opencv"

    def match(self, site: Site) -> Finding | None:
        """Return a finding where the target gets the constant wrong, or a Pad or Resize whose amounts it is."""
        told = _steered(site) if site.target.facts else None
        if told is None:
            return super().match(site)
        reader, about, objection = told
        says = f"It computes a constant that is read where the target takes written ones: {reader.op_type}. "
        hint = f"padfix convert --target {site.target.name} writes the constant."
        found = self.finding(site, says + objection.sentence(site.target, about.op_type), hint)
        return dataclasses.replace(found, severity=objection.severity)

    def objection(self, site: Site) -> Objection | None:
        """Return the worst that a fact says of what computes a constant, where data meets it."""
        is_asked = "of-constants" in site.target.asked
        if not is_asked and (site.node.op_type not in GIVING_ROWS or not site.target.facts):
            return None
        is_open = not has_chain(site.scope, site.node)
        if not is_read_by_data(site.scope, site.node, open_lengths=is_open):
            return None
        chain = chain_of(site.scope, site.node, open_lengths=True)
        if chain is None:
            return None
        found = [
            one
            for each in chain
            for one in objections(site.target, each.op_type, site.opset, computed_traits(site.scope, each))
            if "of-constants" in one.fact.where
        ]
        if not found and counted_rows(site.scope, site.node) is not None:  # of which the lengths may be what is refused
            found = [one for each in chain for _, one in _against(site, each)]
        return max(found, key=lambda each: (not each.unknown, each.severity.rank), default=None)

    def forms(self, site: Site) -> Iterator[Form]:
        """Yield the constant for each image, or its first rows; that of known lengths every rule about a target has."""
        yield from beside_images(site)
        yield from counted_places(site)


def _steered(site: Site) -> tuple[NodeProto, NodeProto, Objection] | None:
    """Return what reads the constant as its amounts, scales or sizes, and what the target has against which node.

    That is what reads it; or a Shape whose lengths are not all known, of which some that are make the constant.
    """
    names = set(filter(None, site.node.output))
    readers = [each for name in sorted(names) for each in site.scope.consumers(name)]
    if not readers or not has_chain(site.scope, site.node):
        return None
    for reader in readers:
        places = _TOLD.get(reader.op_type, ())
        if names & {reader.input[place] for place in places if place < len(reader.input)}:
            found = _against(site, reader) or [
                one
                for each in chain_of(site.scope, site.node) or []
                if _measures_open(site, each)
                for one in _against(site, each)
            ]
        elif is_worked_out(site.scope, reader):
            continue
        else:
            found = [each for each in _against(site, reader) if "by-number-of-images" in each[1].fact.where]
        if found:
            return reader, *max(found, key=lambda each: (not each[1].unknown, each[1].severity.rank))
    return None


def _against(site: Site, node: NodeProto) -> list[tuple[NodeProto, Objection]]:
    traits = traits_of(site.scope, node) or {}
    return [(node, each) for each in objections(site.target, node.op_type, site.opset, traits)]


def _measures_open(site: Site, node: NodeProto) -> bool:
    known = site.scope.type_of(node.input[0]) if node.op_type == "Shape" else None
    return known is not None and known.lengths is None
