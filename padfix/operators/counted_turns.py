"""How often a Loop runs that goes on by numbers of its own, as converters write the loops of programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from padfix.graph.scopes import Scope, bodies_of, normal_domain
from padfix.operators.constant_chains import COMPUTED, worked_out

_GOES_ON, _FIRST_CARRIED = 1, 2
"""Positions among the inputs of a body: whether it goes on, and the first value that is handed from turn to turn."""

_MOST_ELEMENTS = 64
"""Of a value by which a loop counts."""

_MOST_DECIDING = 100
"""Nodes that say together whether a loop goes on."""


@dataclass
class _Deciding:
    """What says whether a Loop goes on: nodes, the constants that they read, and what is handed on, by its position."""

    nodes: dict[int, NodeProto] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    carried: dict[int, np.ndarray] = field(default_factory=dict)


def turns_of(scope: Scope, node: NodeProto, body: Scope, most: int) -> int | None:
    """Return the turns of a Loop that constants and what it counts decide; None for all else and more than ``most``.

    ``body`` is the scope of its body.
    """
    given = [*node.input, "", ""]
    limit, goes_on = (None if not name else worked_out(scope, name) for name in given[:_FIRST_CARRIED])
    if any(name and (value is None or value.size != 1) for name, value in zip(given, (limit, goes_on), strict=False)):
        return None
    deciding = _deciding(scope, node, body)
    if deciding is None:
        return None
    last = most + 1 if limit is None else min(int(limit.reshape(-1)[0]), most + 1)
    try:
        turns = _counted(body, deciding, last, goes_on is None or bool(goes_on.reshape(-1)[0]))
    except Exception:  # whatever the evaluator raises of a model that can't be run
        return None
    return turns if turns <= most else None


def _deciding(scope: Scope, node: NodeProto, body: Scope) -> _Deciding | None:
    """Return what says whether a Loop goes on; None where that is more than numbers of its own."""
    found, inputs = _Deciding(), [each.name for each in body.container.input]
    waiting, seen = [body.outputs[0]], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen or name in inputs[:_FIRST_CARRIED]:
            continue
        seen.add(name)
        if name in inputs:
            place = inputs.index(name)
            value = worked_out(scope, node.input[place]) if place < len(node.input) else None
            if value is None or value.size > _MOST_ELEMENTS:
                return None
            found.carried[place] = value
            waiting.append(body.outputs[place - 1])
            continue
        producer = body.own_producer(name)
        value = body.constant(name)
        if value is None and producer is None:
            value = worked_out(scope, name)
        if value is not None:
            found.constants[name] = value
        elif producer is None or not _is_told(producer) or len(found.nodes) == _MOST_DECIDING:
            return None
        else:
            found.nodes[id(producer)] = producer
            waiting += filter(None, producer.input)
    return found


def _is_told(node: NodeProto) -> bool:
    return normal_domain(node.domain) == "" and node.op_type in COMPUTED and not any(bodies_of(node))


def _counted(body: Scope, deciding: _Deciding, last: int, goes_on: bool) -> int:
    """Return after how many turns a Loop ends, ``last`` at the latest."""
    from onnx.reference import ReferenceEvaluator  # imported late, as few models need it

    inputs = [each.name for each in body.container.input]
    handed = {place: body.outputs[place - 1] for place in deciding.carried} | {_GOES_ON: body.outputs[0]}
    nodes = [each for each in body.nodes if id(each) in deciding.nodes]
    made = {name for each in nodes for name in each.output}
    results = [name for name in dict.fromkeys(handed.values()) if name in made]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in deciding.constants.items()]
    untyped = [_untyped(inputs[place]) for place in (0, *handed)]
    graph = helper.make_graph(nodes, "turn", untyped, [_untyped(name) for name in results], tensors)
    evaluator = ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", body.opset)]))
    state = {_GOES_ON: np.array(goes_on), **deciding.carried}
    for turn in range(max(last, 0)):
        if not state[_GOES_ON].reshape(-1)[0]:
            return turn
        fed = {inputs[place]: value for place, value in state.items()} | {inputs[0]: np.array(turn, np.int64)}
        found = dict(zip(results, evaluator.run(results, fed) if results else (), strict=True))
        known: Mapping[str, np.ndarray] = {**deciding.constants, **fed, **found}
        state = {place: np.asarray(known[name]) for place, name in handed.items()}
    return max(last, 0)


def _untyped(name: str) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None)
