"""What an If is like (what decides which branch is run, whether they give alike values), and a Scan."""

from __future__ import annotations

from onnx import NodeProto, ValueInfoProto

from padfix.graph import attributes
from padfix.graph.scopes import Scope, ValueType, bodies_of, outer_names_of
from padfix.operators.constant_chains import has_chain, is_constant
from padfix.operators.counted_images import computes_with_count
from padfix.operators.decided_bodies import decided_body
from padfix.targets.traits import Trait, Traits

_FEW = 3
"""As many nodes without names as one that gives a constant is lost among."""


def branch_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return what decides an If, how branches differ, what they read, and whether the number of images decides."""
    return {
        "by-number-of-images": computes_with_count(scope, node),
        "decided-by": _what_decides(scope, node.input[0]),
        "branches": _difference(scope, node),
        "constants-from-outside": any(is_constant(scope, name) for name in outer_names_of(node)),
        "holds-constants": _holds_constants(scope, node),
        "reads-from-outside": not outer_names_of(node) <= scope.root.inputs,
    }


def loop_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return whether a Loop is told nothing but how often to turn: it has no condition, and hands nothing on."""
    return {"counts-alone": not any(node.input[1:])}


def _holds_constants(scope: Scope, node: NodeProto) -> bool:
    """Whether the branch that is taken has initializers, or a Constant and two nodes and more without names.

    Where it is not known which one that is, either counts.
    """
    decided = decided_body(scope, node)
    taken = [graph for name, graph in bodies_of(node) if decided is None or name == decided.attribute]
    nameless = [[each.op_type for each in graph.node if not each.name] for graph in taken]
    return any(graph.initializer or graph.sparse_initializer for graph in taken) or any(
        "Constant" in each and len(each) >= _FEW for each in nameless
    )


def scan_traits(scope: Scope, node: NodeProto) -> Traits:
    """Return what the body of a Scan leaves to its readers: types of what it is given, axes to count from the end of.

    The latter are of slices of which it does not tell how many axes they have.
    """
    given = [value for _, graph in bodies_of(node) for value in graph.input]
    sides = [value for axes in scan_axes(node) for axis, value in axes if axis < 0]
    return {
        "untyped-body": any(not value.type.HasField("tensor_type") for value in given),
        "axes-from-untold-end": any(not value.type.tensor_type.HasField("shape") for value in sides),
    }


def scan_axes(node: NodeProto) -> tuple[list[tuple[int, ValueInfoProto]], list[tuple[int, ValueInfoProto]]]:
    """Return the axes that a Scan goes along and joins along, each with the body's own input or output."""
    bodies = [graph for _, graph in bodies_of(node)]
    count = attributes.integer(node, "num_scan_inputs", 0)
    slices = list(bodies[0].input)[-count:] if bodies and count else []
    gives = list(bodies[0].output)[len(node.input) - count :] if bodies else []
    read = attributes.integers(node, "scan_input_axes") or [0] * len(slices)
    joined = attributes.integers(node, "scan_output_axes") or [0] * len(gives)
    return list(zip(read, slices, strict=False)), list(zip(joined, gives, strict=False))


def _what_decides(scope: Scope, name: str) -> Trait:
    if scope.constant(name) is not None:
        return "constants"
    producer = scope.own_producer(name)
    if producer is None:
        return "data"
    if has_chain(scope, producer):
        return "constants"
    return "lengths" if has_chain(scope, producer, open_lengths=True) else "data"


def _difference(scope: Scope, node: NodeProto) -> Trait | None:
    """Return the worst difference between what the branches give; None where it is not known."""
    given = [_given(scope, graph) for _, graph in bodies_of(node)]
    pairs = [_between(first, second) for first, second in zip(*given, strict=False)]
    for kind in ("ranks-differ", "lengths-differ", None):
        if kind in pairs:
            return kind
    return "alike"


def _given(scope: Scope, graph: object) -> list[ValueType | None]:
    body = next((each for each in scope.bodies if each.container is graph), None)
    return [] if body is None else [body.type_of(name) for name in body.outputs]


def _between(first: ValueType | None, second: ValueType | None) -> Trait | None:
    shapes = [None if each is None else each.shape for each in (first, second)]
    if shapes[0] is None or shapes[1] is None:
        return None
    if len(shapes[0]) != len(shapes[1]):
        return "ranks-differ"
    pairs = list(zip(*shapes, strict=True))
    if any(isinstance(one, int) and isinstance(other, int) and one != other for one, other in pairs):
        return "lengths-differ"
    return "alike" if all(one == other and one is not None for one, other in pairs) else None
