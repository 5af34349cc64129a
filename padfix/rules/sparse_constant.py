"""PF311: a constant that the model keeps sparse, for a target that reads no such ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial

from onnx import FunctionProto, GraphProto, NodeProto, helper, numpy_helper

from padfix.graph import attributes
from padfix.graph.scopes import Scope
from padfix.rules.base import Correction, ScopeRule
from padfix.rules.build.objections import worst_objection
from padfix.targets import SPARSE, Target


class SparseConstant(ScopeRule):
    """The model lists only the elements of a constant that are not 0, and the target reads no such constants.

    Weights of pruned networks are kept like that: the elements that are left, and their places. Most importers look for
    `initializer` and never for `sparse_initializer`: they find no weights, or take whatever lies in memory. Many know
    no `sparse_value` of a Constant either.

    padfix writes all elements out.

    Refused: constants of more than 67 million elements, and those that can't be read.

    Before, opset 17, for openvino, with `sparse` in `sparse_initializer`:

        main (float[1,4] X) => (float[1,4] Y) <float[4] sparse = {0, 2, 0, 0}> {
          Y = Add (X, sparse)
        }

    After:

        Y = Add (X, sparse)

    References:

    - Sparse tensors in the ONNX specification: <https://github.com/onnx/onnx/blob/main/docs/IR.md>
    """

    code = "PF311"
    name = "sparse-constant"
    example_target = "openvino"

    def has_a_say(self, target: Target) -> bool:
        """Whether the target is known to read no sparse constants."""
        return target.knows_of(SPARSE)

    def examine(self, scope: Scope, target: Target) -> Iterator[Correction]:
        """Yield the finding of each constant that is kept sparse."""
        graph = scope.container
        if not isinstance(graph, FunctionProto):
            for name in [each.values.name for each in graph.sparse_initializer]:
                yield from self._corrected(scope, target, name, partial(_write_out, scope, graph, name), by_node=False)
        for node in graph.node:
            if node.op_type == "Constant" and attributes.find(node, "sparse_value") is not None:
                write = partial(_write_value, scope, node)
                yield from self._corrected(scope, target, node.output[0], write, by_node=True)

    def _corrected(
        self, scope: Scope, target: Target, name: str, write: Callable[[], None], *, by_node: bool
    ) -> Iterator[Correction]:
        objection = worst_objection(target, SPARSE, scope.opset, {"by-node": by_node})
        if objection is None:
            return
        says = f"The model keeps {name!r} sparse. {objection.sentence(target, SPARSE)}"
        hint = f"padfix convert --target {target.name} writes all its elements out."
        found = self.scope_finding(scope, name, says, hint, SPARSE)
        is_read = scope.constant(name) is not None
        yield Correction(
            dataclasses.replace(found, severity=objection.severity, fixable=is_read), write if is_read else None
        )


def _write_out(scope: Scope, graph: GraphProto, name: str) -> None:
    """Put all elements of a sparse initializer in its place."""
    whole = scope.constant(name)
    assert whole is not None
    kept = [each for each in graph.sparse_initializer if each.values.name != name]
    del graph.sparse_initializer[:]
    graph.sparse_initializer.extend(kept)
    graph.initializer.append(numpy_helper.from_array(whole, name))
    scope.refresh()


def _write_value(scope: Scope, node: NodeProto) -> None:
    """Let a Constant hold all elements of its sparse tensor."""
    whole = scope.constant(node.output[0])
    assert whole is not None
    del node.attribute[:]
    node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(whole)))
    scope.refresh()
