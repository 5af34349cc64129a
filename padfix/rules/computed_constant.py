"""PF305: a constant that the model computes, where the target takes such a one for another, or refuses it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from padfix.operators.constant_chains import COMPUTED, chain_of, is_read_by_data, leaves_of, lengths_given
from padfix.operators.refusal import Refusal
from padfix.operators.traits import computed_traits
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.forms import Form
from padfix.rules.build.objections import Objection, worst_objection
from padfix.rules.build.target_rule import TargetRule

LARGEST = 1 << 22
"""Elements of a constant that is written into the file; more would make it large for nothing."""


class ComputedConstant(TargetRule):
    """A constant that the model computes from others and from lengths, which the target gets wrong or refuses.

    Exporters write the anchors of a detector, or the grid of an attention, as they are programmed: Shape, Gather,
    Range, Expand, Concat. With fixed lengths (`--shape`) all of that is one constant, and most runtimes work it out
    when they load the model. Some importers do so with arrays of their own that know no list of one dimension.

    padfix writes the constant in place of what computes it, as far as data does not enter into it. What is read as it
    is meant stays, as shapes and indices mostly are, and so does what is computed from long weights.

    Refused: constants of more than four million elements, and those that depend on a length which is left open.

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

    def objection(self, site: Site) -> Objection | None:
        """Return the worst that a fact says of what computes a constant, where data meets it."""
        if not any("of-constants" in fact.where for fact in site.target.facts):
            return None
        is_open = chain_of(site.scope, site.node) is None
        chain = chain_of(site.scope, site.node, open_lengths=True)
        if chain is None or not is_read_by_data(site.scope, site.node, open_lengths=is_open):
            return None
        found = [
            worst_objection(site.target, each.op_type, site.opset, computed_traits(site.scope, each)) for each in chain
        ]
        objections = [each for each in found if each is not None and "of-constants" in each.fact.where]
        return max(objections, key=lambda each: (not each.unknown, each.severity.rank), default=None)

    def forms(self, site: Site) -> Iterator[Form]:
        """Yield the constant."""
        known = site.scope.type_of(site.node.output[0])
        lengths = None if known is None else known.lengths
        why_not = None
        if chain_of(site.scope, site.node) is None:
            why_not = Refusal("it depends on a length that is left open (--shape)")
        elif lengths is not None and math.prod(lengths) > LARGEST:
            why_not = Refusal("it is very large")
        yield Form("a constant", (), partial(_worked_out, site), why_not)


def _worked_out(site: Site) -> Rewrite | Refusal:
    """Return the node's value as a Constant."""
    from onnx.reference import ReferenceEvaluator  # imported late: linting never needs it

    scope, output = site.scope, site.node.output[0]
    chain = chain_of(scope, site.node)
    if chain is None:
        return Refusal("What it reads is not constant any more.")
    constants, measured = leaves_of(scope, chain)
    values = {name: value for name in constants if (value := scope.constant(name)) is not None}
    values |= {each.output[0]: value for each in chain if (value := lengths_given(scope, each)) is not None}
    graph = helper.make_graph(
        [each for each in chain if each.output[0] not in values],
        "constant",
        [],
        [helper.make_tensor_value_info(output, TensorProto.UNDEFINED, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()],
    )
    imports = [helper.make_opsetid("", scope.opset)]
    try:
        (found,) = ReferenceEvaluator(helper.make_model(graph, opset_imports=imports)).run(None, {})
    except Exception as error:
        return Refusal(f"What computes it can't be run: {error}")
    trial = {name: TrialInput.of(values[name]) for name in constants}
    for name in measured:
        known = scope.type_of(name)
        trial[name] = TrialInput(known.lengths or (), known.elem_type) if known is not None else TrialInput(())
    node = helper.make_node("Constant", [], [output], value=numpy_helper.from_array(np.asarray(found)))
    return Rewrite(site.only(node), (trial,), replaces=tuple(chain[:-1]))
