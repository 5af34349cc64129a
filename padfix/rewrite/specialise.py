"""Copies of model-local functions for calls that need different bodies.

A function whose pads depend on what a call gives it (an attribute such as ``auto_pad``, or the size of its input) can't
be made explicit in one body. Calls that agree share a body; the others get copies of the function, and are pointed to
them. Functions that call such functions are copied in turn where they only hand the attribute on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, helper

from padfix.files.model import Model
from padfix.graph import attributes
from padfix.graph.bindings import give
from padfix.graph.scopes import FunctionKey, Scope, ValueType, all_nodes, call_key, function_key, normal_domain
from padfix.operators.inference import infer

Binding = tuple[tuple[str, bytes | None], ...]
"""What a call gives the attributes that matter, as serialised AttributeProtos; None where it leaves one out."""

_MAXIMUM_PASSES = 8
_MAXIMUM_COPIES = 64
"""Of one function; more kinds of call than that are left alone."""


def function_of(scope: Scope) -> FunctionProto | None:
    """Return the function that a scope is (inside of), or None."""
    container = scope.root.container
    return container if isinstance(container, FunctionProto) else None


Refused = Callable[[Sequence[Scope]], Iterable[tuple[Scope, NodeProto]]]
"""Returns the nodes that a rule has something to say of and can't rewrite as they stand, with their scopes."""


def specialise(model: Model, scopes: Sequence[Scope], refused: Refused) -> tuple[list[Scope], list[str]]:
    """Copy functions where no single body can be rewritten, and point their calls to the copies.

    A body with attributes that its calls give gets their values. A body that has to know the size of its input (a
    run-time form is refused) is copied for each size, and only if that makes a refused node rewritable.

    The model is edited in place; ``refused`` gives the rules' opinion.

    Returns:
        The scopes as they are now, and one sentence for each function that was edited.
    """
    wanted: dict[FunctionKey, set[str]] = {}
    for scope, node in refused(scopes):
        function = function_of(scope)
        names = {each.ref_attr_name for each in node.attribute if each.ref_attr_name}
        if function is not None and names:
            wanted.setdefault(function_key(function), set()).update(names)
    notes = bind_attributes(model.proto, wanted) if wanted else []
    current = infer(model) if notes else list(scopes)
    if not model.proto.functions:
        return current, notes
    backup = ModelProto.FromString(model.proto.SerializeToString())
    start = stuck = _stuck(refused(current))
    origins = {key: key for key in map(function_key, model.proto.functions)}
    split_notes: list[str] = []
    for _ in range(_MAXIMUM_PASSES):
        said = next(filter(None, (_split(model.proto, current, key, origins) for key in stuck)), None)
        if said is None:
            break
        split_notes.append(said)
        current = infer(model)
        stuck = _stuck(refused(current))
    if split_notes and not any(stuck.get(key, 0) < start.get(origin, 0) for key, origin in origins.items()):
        model.proto.CopyFrom(backup)
        return infer(model), notes
    return current, [*notes, *split_notes]


def _stuck(refused: Iterable[tuple[Scope, NodeProto]]) -> Counter[FunctionKey]:
    """Return how many nodes of each function can't be rewritten for another reason than attributes of its calls."""
    functions = [
        function_of(scope) for scope, node in refused if not any(each.ref_attr_name for each in node.attribute)
    ]
    return Counter(function_key(function) for function in functions if function is not None)


def _split(
    proto: ModelProto, scopes: Sequence[Scope], key: FunctionKey, origins: dict[FunctionKey, FunctionKey]
) -> str | None:
    """Split a function, or else the nearest of those that call it, by the types that calls pass; None if all agree."""
    asked = [key]
    for current in asked:  # which grow
        said, copies = split_by_types(proto, scopes, current)
        if said is not None:
            origins.update(dict.fromkeys(copies, origins[current]))
            return said
        around = [function_of(scope) for scope in scopes if any(call_key(node) == current for node in scope.nodes)]
        callers = dict.fromkeys(function_key(each) for each in around if each is not None)
        asked += [caller for caller in callers if caller not in asked]
    return None


def bind_attributes(proto: ModelProto, wanted: Mapping[FunctionKey, Iterable[str]]) -> list[str]:
    """Give the attributes ``wanted`` of functions the values of their calls, with a body for each set of values.

    The model is edited in place. Returns one sentence for each function that was edited.
    """
    names = _with_handed_on(proto, wanted)
    rest = [key for key in map(function_key, proto.functions) if names.get(key)]
    order, notes = list(rest), dict[FunctionKey, str]()
    while rest:
        functions = {function_key(function): function for function in proto.functions}
        # Callers first: what they hand on is known once each of their own calls has a body.
        called = {(key, call_key(node)) for key in rest for node in all_nodes(functions[key].node)}
        current = next(
            (key for key in rest if not any((other, key) in called for other in rest if other != key)), rest[0]
        )
        rest.remove(current)
        original, described = functions[current], []
        groups, has_others = _calls_by_binding(proto, original, sorted(names[current]))
        for (binding, calls), body in zip(
            groups.items(), _bodies(proto, original, len(groups), keeps_original=has_others), strict=True
        ):
            _bind_body(body, dict(binding))
            own = [node for node in all_nodes(body.node) if call_key(node) == current]  # what calls itself, for ever
            for node in (*calls, *own):
                node.op_type = body.name
                attributes.remove(node, *names[current])
            described.append(f"{body.name} ({_words(binding)})")
        if described:
            title = _title(original)
            notes[current] = f"Function {title} has what its calls give written out: {'; '.join(described)}."
    return [notes[key] for key in order if key in notes]


def _with_handed_on(proto: ModelProto, wanted: Mapping[FunctionKey, Iterable[str]]) -> dict[FunctionKey, set[str]]:
    """Return ``wanted`` with the attributes that functions only hand on to the functions they call."""
    found = {key: set(names) for key, names in wanted.items()}
    changed = True
    while changed:
        changed = False
        for function in proto.functions:
            own = found.setdefault(function_key(function), set())
            before = len(own)
            for node in all_nodes(function.node):
                inner = found.get(call_key(node), set())
                own |= {each.ref_attr_name for each in node.attribute if each.name in inner and each.ref_attr_name}
            changed |= len(own) > before
    return found


def _calls_by_binding(
    proto: ModelProto, function: FunctionProto, names: Sequence[str]
) -> tuple[dict[Binding, list[NodeProto]], bool]:
    """Return the calls of a function by what they give ``names``, and whether there are others beside these."""
    groups: dict[Binding, list[NodeProto]] = {}
    has_others = False
    defaults = {each.name: each for each in function.attribute_proto}
    for container in (proto.graph, *proto.functions):
        for node in all_nodes(container.node):
            if call_key(node) != function_key(function):
                continue
            given = {**defaults, **{each.name: each for each in node.attribute}}
            binding = tuple((name, given[name].SerializeToString() if name in given else None) for name in names)
            # The caller of a caller that nothing calls only hands the attribute on.
            unknown = any(name in given and given[name].ref_attr_name for name in names)
            if unknown and container is function:
                continue
            if unknown or (binding not in groups and len(groups) >= _MAXIMUM_COPIES):
                has_others = True
            else:
                groups.setdefault(binding, []).append(node)
    return groups, has_others


def _bodies(proto: ModelProto, original: FunctionProto, count: int, *, keeps_original: bool) -> list[FunctionProto]:
    """Return so many functions like ``original``: itself, unless it is to stay what it is, and copies."""
    taken = {(normal_domain(each.domain), each.name) for each in proto.functions}
    bodies = [] if keeps_original or not count else [original]
    while len(bodies) < count:
        copy = proto.functions.add()
        copy.CopyFrom(original)
        copy.name = _unique(original, taken)
        bodies.append(copy)
    return bodies


def _bind_body(function: FunctionProto, binding: Mapping[str, bytes | None]) -> None:
    """Give the attributes of a function their values in its body; they are no attributes of it any more."""
    kept = [name for name in function.attribute if name not in binding]
    defaults = [each for each in function.attribute_proto if each.name not in binding]
    del function.attribute[:], function.attribute_proto[:]
    function.attribute.extend(kept)
    function.attribute_proto.extend(defaults)
    values = {name: None if value is None else AttributeProto.FromString(value) for name, value in binding.items()}
    for node in all_nodes(function.node):
        give(node, values)


def split_by_types(
    proto: ModelProto, scopes: Sequence[Scope], key: FunctionKey
) -> tuple[str | None, list[FunctionKey]]:
    """Give each group of calls of a function that pass the same types a body of its own; the first keeps the function.

    Returns:
        A sentence and the keys of the copies when calls differ in their types; else None, and nothing is edited.
    """
    groups: dict[tuple[ValueType | None, ...], list[NodeProto]] = {}
    for scope in scopes:
        for node in scope.nodes:
            if call_key(node) == key:
                types = tuple(scope.type_of(name) if name else None for name in node.input)
                groups.setdefault(types, []).append(node)
    if not 1 < len(groups) <= _MAXIMUM_COPIES:
        return None, []
    original = next(each for each in proto.functions if function_key(each) == key)
    bodies = _bodies(proto, original, len(groups), keeps_original=False)
    for calls, body in zip(groups.values(), bodies, strict=True):
        for node in calls:
            node.op_type = body.name
    names = ", ".join(each.name for each in bodies)
    said = f"The calls of function {_title(original)} pass other shapes, so each has a body: {names}."
    return said, [function_key(each) for each in bodies[1:]]


def _unique(function: FunctionProto, taken: set[tuple[str, str]]) -> str:
    domain, count = normal_domain(function.domain), 2
    while (domain, f"{function.name}_{count}") in taken:
        count += 1
    taken.add((domain, f"{function.name}_{count}"))
    return f"{function.name}_{count}"


def _title(function: FunctionProto) -> str:
    return ":".join(part for part in (function.domain, function.name, function.overload) if part)


def _words(binding: Binding) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in binding)


def _value(serialised: bytes | None) -> str:
    if serialised is None:
        return "left out"
    value = helper.get_attribute_value(AttributeProto.FromString(serialised))
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
