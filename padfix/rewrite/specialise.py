"""Copies of model-local functions for calls that need different bodies.

A function whose pads depend on what a call gives it (an attribute such as ``auto_pad``, or the size of its input) can't
be made explicit in one body. Calls that agree share a body; the others get copies of the function, and are pointed to
them. Functions that call such functions are copied in turn where they only hand the attribute on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, helper

from padfix.files.model import Model
from padfix.graph import attributes
from padfix.graph.scopes import Scope, ValueType, all_nodes, normal_domain
from padfix.operators.inference import infer

FunctionKey = tuple[str, str, str]
"""Normalised domain, name and overload."""

Binding = tuple[tuple[str, bytes | None], ...]
"""What a call gives the attributes that matter, as serialised AttributeProtos; None where it leaves one out."""

_TEMPORARY = "::padfix::"
_MAXIMUM_PASSES = 8
_MAXIMUM_COPIES = 64
"""Of one function; more kinds of call than that are left alone."""


def function_key(function: FunctionProto) -> FunctionKey:
    """Return what a call of ``function`` names."""
    return (normal_domain(function.domain), function.name, function.overload)


def call_key(node: NodeProto) -> FunctionKey:
    """Return the key of the function that ``node`` would call."""
    return (normal_domain(node.domain), node.op_type, node.overload)


def function_of(scope: Scope) -> FunctionProto | None:
    """Return the function that a scope is (inside of), or None."""
    while scope.parent is not None:
        scope = scope.parent
    return scope.container if isinstance(scope.container, FunctionProto) else None


Refused = Callable[[Sequence[Scope]], Iterable[tuple[Scope, NodeProto]]]
"""Returns the nodes that a rule has something to say of and can't rewrite as they stand, with their scopes."""


def specialise(model: Model, scopes: Sequence[Scope], refused: Refused) -> tuple[list[Scope], list[str]]:
    """Copy functions where no single body can be rewritten, and point their calls to the copies.

    A body with attributes that its calls give gets their values. A body that has to know the size of its input (a
    run-time form is refused) is copied for each size, and only if that makes a refused node rewritable.

    Args:
        model: The model, edited in place.
        scopes: All its scopes, with types.
        refused: The rules' opinion.

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
    queue, seen = [key], {key}
    while queue:
        current = queue.pop(0)
        said, copies = split_by_types(proto, scopes, current)
        if said is not None:
            origins.update(dict.fromkeys(copies, origins[current]))
            return said
        for scope in scopes:
            caller = function_of(scope)
            if caller is not None and any(call_key(node) == current for node in scope.nodes):
                found = function_key(caller)
                if found not in seen:
                    seen.add(found)
                    queue.append(found)
    return None


def bind_attributes(proto: ModelProto, wanted: Mapping[FunctionKey, Iterable[str]]) -> list[str]:
    """Give the attributes ``wanted`` of functions the values of their calls, with a copy for each set of values.

    Args:
        proto: The model, edited in place.
        wanted: For each function the attributes whose value its body has to know.

    Returns:
        One sentence for each function that was edited.
    """
    return _Binder(proto, wanted).run()


def split_by_types(
    proto: ModelProto, scopes: Sequence[Scope], key: FunctionKey
) -> tuple[str | None, list[FunctionKey]]:
    """Give each group of calls of a function that pass the same types a copy of its own; the first keeps the function.

    Args:
        proto: The model, edited in place.
        scopes: All scopes, with types.
        key: The function.

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
    functions = {function_key(function): function for function in proto.functions}
    original, taken = functions[key], {(domain, name) for domain, name, _ in functions}
    copies = []
    for calls in list(groups.values())[1:]:
        copy = proto.functions.add()
        copy.CopyFrom(original)
        copy.name = _unique(original, taken)
        copies.append(function_key(copy))
        for node in calls:
            node.op_type = copy.name
    names = ", ".join([original.name, *(name for _, name, _ in copies)])
    return f"The calls of function {_title(original)} pass other shapes, so each has a body: {names}.", copies


class _Binder:
    def __init__(self, proto: ModelProto, wanted: Mapping[FunctionKey, Iterable[str]]) -> None:
        self.proto = proto
        self.originals = {
            function_key(function): FunctionProto.FromString(function.SerializeToString())
            for function in proto.functions
        }
        self.wanted = {key: set(names) for key, names in wanted.items() if key in self.originals}
        self.copies: dict[FunctionKey, dict[Binding, FunctionProto]] = {}
        self.taken = {(domain, name) for domain, name, _ in self.originals}

    def run(self) -> list[str]:
        self._spread()
        before = list(self.proto.functions)
        self._visit(self.proto.graph.node)
        for function in before:
            if function_key(function) not in self.wanted:
                self._visit(function.node)
        return self._settle(before)

    def _spread(self) -> None:
        """Add the attributes that functions only hand on to the functions they call."""
        changed = True
        while changed:
            changed = False
            for key, function in self.originals.items():
                for node in all_nodes(function.node):
                    inner = self.wanted.get(call_key(node), set())
                    handed = {
                        each.ref_attr_name for each in node.attribute if each.name in inner and each.ref_attr_name
                    }
                    if not handed <= self.wanted.get(key, set()):
                        self.wanted.setdefault(key, set()).update(handed)
                        changed = True

    def _visit(self, nodes: Iterable[NodeProto]) -> None:
        """Point the calls among ``nodes`` to copies that know what they give."""
        for node in list(all_nodes(nodes)):
            key = call_key(node)
            names = self.wanted.get(key)
            if not names:
                continue
            given = {each.name: each for each in node.attribute}
            if any(name in given and given[name].ref_attr_name for name in names):
                continue  # the caller of a caller that nothing calls
            defaults = {each.name: each for each in self.originals[key].attribute_proto}
            binding = tuple(
                (name, None if value is None else value.SerializeToString())
                for name in sorted(names)
                for value in (given.get(name, defaults.get(name)),)
            )
            copy = self._copy(key, binding)
            if copy is not None:
                node.op_type = copy.name
                attributes.remove(node, *names)

    def _copy(self, key: FunctionKey, binding: Binding) -> FunctionProto | None:
        copies = self.copies.setdefault(key, {})
        if binding not in copies:
            if len(copies) >= _MAXIMUM_COPIES:
                return None
            original = self.originals[key]
            copy = copies[binding] = self.proto.functions.add()
            copy.CopyFrom(original)
            copy.name = f"{original.name}{_TEMPORARY}{len(copies)}"
            names = self.wanted[key]
            kept = [name for name in original.attribute if name not in names]
            defaults = [each for each in original.attribute_proto if each.name not in names]
            del copy.attribute[:]
            copy.attribute.extend(kept)
            del copy.attribute_proto[:]
            copy.attribute_proto.extend(defaults)
            values = {name: None if value is None else AttributeProto.FromString(value) for name, value in binding}
            for node in all_nodes(copy.node):
                _bind(node, values)
            self._visit(copy.node)
        return copies[binding]

    def _settle(self, before: Sequence[FunctionProto]) -> list[str]:
        """Give the copies their names, the first the original's where nothing calls that any more; return the notes."""
        unused = self._unused()
        renamed: dict[FunctionKey, str] = {}
        replaced: set[FunctionKey] = set()
        notes = []
        for function in before:
            copies = self.copies.get(function_key(function), {})
            described = []
            for number, (binding, copy) in enumerate(copies.items()):
                temporary, name = function_key(copy), function.name
                if number or function_key(function) not in unused:
                    copy.name = name = _unique(function, self.taken)
                else:
                    function.CopyFrom(copy)
                    function.name = name
                    replaced.add(temporary)
                renamed[temporary] = name
                described.append(f"{name} ({_words(binding)})")
            if described:
                title = _title(function)
                notes.append(f"Function {title} has what its calls give written out: {'; '.join(described)}.")
        for nodes in self._node_lists():
            for node in all_nodes(nodes):
                node.op_type = renamed.get(call_key(node), node.op_type)
        for index in reversed(range(len(self.proto.functions))):
            if function_key(self.proto.functions[index]) in replaced:
                del self.proto.functions[index]
        return notes

    def _unused(self) -> set[FunctionKey]:
        """Return the copied functions that only each other's originals call, if anything does."""
        unused = {key for key, copies in self.copies.items() if copies}
        while True:
            called = {call_key(node) for node in all_nodes(self.proto.graph.node)}
            for function in self.proto.functions:
                if function_key(function) not in unused:
                    called |= {call_key(node) for node in all_nodes(function.node)}
            if not unused & called:
                return unused
            unused -= called

    def _node_lists(self) -> Iterator[Sequence[NodeProto]]:
        yield self.proto.graph.node
        for function in self.proto.functions:
            yield function.node


def _bind(node: NodeProto, values: Mapping[str, AttributeProto | None]) -> None:
    for index in reversed(range(len(node.attribute))):
        attribute = node.attribute[index]
        if attribute.ref_attr_name not in values:
            continue
        value = values[attribute.ref_attr_name]
        if value is None:
            del node.attribute[index]
        else:
            name = attribute.name
            attribute.CopyFrom(value)
            attribute.name = name


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
