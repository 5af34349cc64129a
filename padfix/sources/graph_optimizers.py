"""tf2onnx's graph optimisers, without what they do wrong.

tf2onnx 1.17 multiplies a constant factor behind a convolution into its weights, and turns a constant term into its
bias, where the convolution "has a single consumer". It looks for consumers in the graph at hand only: a convolution
whose result the two branches of a condition use has one in each, and the factor of one branch would go into both. Nor
does it look whether another convolution uses the same weights.

It also gives a Reshape a constant shape, with a Squeeze behind it for whoever reads the result where axes shift. An
output of the model is read by nobody in the graph, and would keep the axis that the Squeeze removes. A shape that
keeps one length and leaves another one open means nothing where the first is 0: an empty batch.

Which of several equal nodes stays, and with it the name, tf2onnx leaves to the order of sets.

Behind each optimiser tf2onnx writes every node into its protobuf, weights and all, and a protobuf keeps the room of
what it held before: two dozen copies of the weights. Nothing reads them before the model is made, which writes them
itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from padfix.files.model import Model
    from padfix.sources.source import Source

_WEIGHTED = frozenset({"Conv", "ConvTranspose"})


_OFTEN_WRONG = ("optimize_transpose", "reshape_optimizer", "remove_back_to_back")
"""What breaks an attention whose keys come from a convolution, where the batch is open."""


def passes() -> list[str]:
    """Return the names of the optimisers, those that break models first."""
    from tf2onnx import optimizer

    return sorted(optimizer._get_optimizers(), key=lambda name: name not in _OFTEN_WRONG)


def with_passes_to_leave_out(source: Source, again: Callable[[Sequence[str]], Model]) -> Source:
    """Return a source that can be imported once more, by ``again``, without some of the passes, and says so."""

    def without(left_out: Sequence[str]) -> Source:
        which = f"pass {left_out[0]} was" if len(left_out) == 1 else "passes were all"
        told = f"tf2onnx's optimiser {which} left out, because what it made of the graph was not equal to the original."
        return replace(source, model=again(left_out), notes=[*source.notes, told])

    source.passes, source.without = passes(), without
    return source


def optimizers(left_out: Collection[str] = ()) -> dict[str, Any]:
    """Return the optimisers by name but for some, in tf2onnx's order, as its ``optimize_graph`` takes them."""
    from tf2onnx import optimizer

    class CarefulTransposeOptimizer(optimizer.TransposeOptimizer):  # type: ignore[misc]
        """Folds only what no other graph and no other convolution sees, and no scalar, on which it fails."""

        def _nodes_has_single_consumer_node(self, nodes: list[Any]) -> bool:
            alone: bool = super()._nodes_has_single_consumer_node(nodes)
            return alone and not any(self._is_seen_elsewhere(node) for node in nodes)

        def _is_seen_elsewhere(self, node: Any) -> bool:
            if node.graph is not self._g:
                return True
            if node.type not in _WEIGHTED:
                return False
            consumers = node.graph.find_output_consumers(node.input[1])
            return len({id(consumer) for consumer in consumers}) > 1

        def _add_handler(self, trans: Any, node: Any) -> bool:
            term = node.inputs[1]
            if term.is_const() and not term.get_tensor_value(as_list=False).shape:
                return bool(self._handle_node_having_branches(trans, node))
            return bool(super()._add_handler(trans, node))

    class CarefulReshapeOptimizer(optimizer.ReshapeOptimizer):  # type: ignore[misc]
        """Leaves a Reshape alone that is an output, or whose open length could be any without rows."""

        def _optimize_reshape(self, node: Any, graph: Any) -> bool:
            result, before = node.output[0], list(node.input)
            readers, shape = graph.find_output_consumers(result), graph.get_shape(result)
            if result in graph.outputs or not super()._optimize_reshape(node, graph):
                return False
            lengths = node.inputs[1].get_tensor_value()
            if 0 not in lengths or -1 not in lengths:
                return True
            for squeeze in graph.find_output_consumers(result):
                if squeeze not in readers:
                    graph.replace_all_inputs(squeeze.output[0], result)
                    graph.remove_node(squeeze.name)
                    graph.set_shape(result, shape)
            graph.replace_inputs(node, before)
            return False

    class SteadyMergeOptimizer(optimizer.MergeDuplicatedNodesOptimizer):  # type: ignore[misc]
        """Keeps the source's own node, or the one that was made first."""

        def _group_nodes_by_type_inputs(self, graph: Any) -> dict[Any, list[Any]]:
            groups: dict[Any, list[Any]] = super()._group_nodes_by_type_inputs(graph)
            return {key: sorted(nodes, key=lambda node: _age(node.name)) for key, nodes in groups.items()}

    careful = {
        optimizer.MergeDuplicatedNodesOptimizer: SteadyMergeOptimizer,
        optimizer.TransposeOptimizer: CarefulTransposeOptimizer,
        optimizer.ReshapeOptimizer: CarefulReshapeOptimizer,
    }
    kept = {name: made for name, made in optimizer._get_optimizers().items() if name not in left_out}
    return {name: _without_writing(careful.get(made, made)) for name, made in kept.items()}


def _without_writing(made: Any) -> Any:
    class Optimizer(made):  # type: ignore[misc]
        """Does all that an optimiser of tf2onnx does but for the protobufs."""

        def optimize(self, graph: Any, iteration: int) -> Any:
            self.opt_iteration = iteration
            optimised = self._optimize(graph)
            optimised.delete_unused_nodes(optimised.outputs)
            return optimised

    return Optimizer


def _age(name: str) -> tuple[int, str]:
    """Return a key by which names of the source come first, and then those with the lower number of tf2onnx's."""
    number = re.search(r"__(\d+)$", name)
    return (int(number[1]) if number else -1, name)
