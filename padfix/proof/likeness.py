"""Whether two stretches of ONNX graphs are the same, node by node and weight by weight: such need no run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import count

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, defs

from padfix.graph.scopes import FunctionKey, bodies_of, call_key, function_key, names_of, normal_domain, weights_of
from padfix.proof.constants import Constants
from padfix.proof.graph_view import GraphView, NodeView


class Meanings:
    """What the nodes of one model mean, as values that are equal where the meaning is.

    Two nodes with equal operators and attributes compute one function of their inputs; the version of the operator's
    definition is part of it, and so is the body of a model-local function.

    Args:
        model: The model.
        versioned: Whether two versions of an operator's definition are two operators.
    """

    def __init__(self, model: ModelProto, *, versioned: bool = True) -> None:
        self._versioned = versioned
        self._versions = {normal_domain(entry.domain): entry.version for entry in model.opset_import}
        self._functions = {function_key(each): each for each in model.functions}
        self._operators: dict[FunctionKey, Hashable] = {}
        self._defaults: dict[FunctionKey, frozenset[bytes]] = {}

    def operator(self, node: NodeProto) -> Hashable:
        """Return which operator ``node`` is, in which version."""
        key = call_key(node)
        if key not in self._operators:
            self._operators[key] = (*key, self._definition(key))
        return self._operators[key]

    def attributes(self, node: NodeProto) -> Hashable:
        """Return the attributes of ``node``, whatever their order, bodies included, without what is the default."""
        return self._attributes(node, {}, {})

    def body(self, graph: GraphProto) -> tuple[Hashable, list[str]]:
        """Return what a body means, whatever its own names are, and the names that it reads from outside."""
        outer: dict[str, int] = {}
        return self._body(graph, {}, outer), list(outer)

    def _attributes(self, node: NodeProto, names: Mapping[str, int], outer: dict[str, int]) -> Hashable:
        """Return the attributes of a node, ``names`` being those that are known around it, by number.

        The names that bodies read from farther outside get numbers in ``outer``, in the order of ``outer_reads_of``.
        """
        key = call_key(node)
        if key not in self._defaults:
            self._defaults[key] = self._default_attributes(key)
        bodies = sorted(bodies_of(node), key=lambda body: body[0])
        plain = [each for each in node.attribute if each.type not in (AttributeProto.GRAPH, AttributeProto.GRAPHS)]
        own = frozenset(_attribute(each) for each in plain) - self._defaults[key]
        return own, tuple((name, self._body(graph, names, outer)) for name, graph in bodies)

    def _body(self, graph: GraphProto, names: Mapping[str, int], outer: dict[str, int]) -> Hashable:
        """Return what a body means, whatever its own names are."""
        weights = weights_of(graph)
        given = (*names_of(graph.input), *names_of(weights), *(name for node in graph.node for name in node.output))
        known = {**names, **dict(zip(given, count(1 + max(names.values(), default=0)), strict=False)), "": -1}

        def read(name: str) -> Hashable:
            return known[name] if name in known else ("outer", outer.setdefault(name, len(outer)))

        nodes = tuple(
            (
                self.operator(node),
                tuple(map(read, node.input)),
                self._attributes(node, known, outer),
                tuple(map(bool, node.output)),
            )
            for node in graph.node
        )
        return len(graph.input), tuple(map(_content, weights)), nodes, tuple(map(read, names_of(graph.output)))

    def _default_attributes(self, key: FunctionKey) -> frozenset[bytes]:
        domain, op_type, _ = key
        try:
            schema = defs.get_schema(op_type, self._versions.get(domain, 1), domain)
        except defs.SchemaError:
            return frozenset()
        values = (each.default_value for each in schema.attributes.values() if each.default_value.name)
        return frozenset(_attribute(value) for value in values)

    def _definition(self, key: FunctionKey) -> Hashable:
        function = self._functions.get(key)
        if function is not None:
            own = [self.operator(node) for node in function.node]
            return bytes(function.SerializeToString(deterministic=True)), tuple(own)
        domain, op_type, _ = key
        version = self._versions.get(domain, 1)
        if not self._versioned:
            return 0
        try:
            return int(defs.get_schema(op_type, version, domain).since_version)
        except defs.SchemaError:
            return int(version)


def _content(tensor: TensorProto) -> bytes:
    plain = TensorProto()
    plain.CopyFrom(tensor)
    plain.ClearField("name")
    plain.ClearField("doc_string")
    return bytes(plain.SerializeToString(deterministic=True))


def _attribute(attribute: AttributeProto) -> bytes:
    if attribute.doc_string:
        plain = AttributeProto()
        plain.CopyFrom(attribute)
        plain.ClearField("doc_string")
        attribute = plain
    return bytes(attribute.SerializeToString(deterministic=True))


class Likeness:
    """Compares stretches of two ONNX graphs; each pair of names is looked at once.

    ``partners`` is a live mapping: the candidate's name of each tensor of the reference that is paired with one.
    """

    def __init__(
        self,
        views: tuple[GraphView, GraphView],
        meanings: tuple[Meanings, Meanings],
        constants: tuple[Constants, Constants],
        partners: Mapping[str, str],
    ) -> None:
        self._views = views
        self._meanings = meanings
        self._constants = constants
        self._partners = partners
        self._known: dict[tuple[str, str], bool] = {}

    def forget(self) -> None:
        """Forget what was found: pairs were taken apart."""
        self._known.clear()

    def attributes(self, node: NodeProto) -> Hashable:
        """Return the attributes of a node of the reference; see :meth:`Meanings.attributes`."""
        return self._meanings[0].attributes(node)

    def same(self, ours: str, theirs: str) -> bool:
        """Whether the stretches that end with two tensors are the same."""
        rest = [(ours, theirs)]
        seen: set[tuple[str, str]] = set()
        while rest:
            pair = rest.pop()
            if pair in seen or self._known.get(pair):
                continue
            seen.add(pair)
            above = None if self._known.get(pair) is False else self._alike(*pair)
            if above is None:
                self._known[pair] = False
                self._known[ours, theirs] = False
                return False
            rest.extend(above)
        self._known.update(dict.fromkeys(seen, True))
        return True

    def _alike(self, ours: str, theirs: str) -> list[tuple[str, str]] | None:
        """Return the pairs that must be the same for these two to be; None where they differ themselves."""
        node, twin = self._views[0].producers.get(ours), self._views[1].producers.get(theirs)
        if node is None or twin is None or not self._same_node(node, twin):
            return None
        if node.outputs.index(ours) != twin.outputs.index(theirs):
            return None
        above = []
        for one, other in zip(node.inputs, twin.inputs, strict=True):
            if self._partners.get(one) == other and one:
                continue
            if not one or not other:
                if one != other:
                    return None
                continue
            ours_constant, theirs_constant = (
                name in each for name, each in zip((one, other), self._constants, strict=True)
            )
            if ours_constant or theirs_constant:
                if not (ours_constant and theirs_constant) or not self.same_constant(one, other):
                    return None
                continue
            above.append((one, other))
        return above

    def same_body(self, ours: GraphProto, theirs: GraphProto) -> bool:
        """Whether two bodies are the same, and what they read from outside is."""
        (meaning, read), (other, partners) = self._meanings[0].body(ours), self._meanings[1].body(theirs)
        return meaning == other and all(self._same_outside(*pair) for pair in zip(read, partners, strict=True))

    def _same_outside(self, ours: str, theirs: str) -> bool:
        if ours in self._constants[0] or theirs in self._constants[1]:
            return ours in self._constants[0] and theirs in self._constants[1] and self.same_constant(ours, theirs)
        return self._partners.get(ours) == theirs or self.same(ours, theirs)

    def same_constant(self, ours: str, theirs: str) -> bool:
        """Whether two constants hold the same bits."""
        return self._constants[0].digest(ours) == self._constants[1].digest(theirs)

    def _same_node(self, node: NodeView, twin: NodeView) -> bool:
        if node.proto is None or twin.proto is None or len(node.inputs) != len(twin.inputs):
            return False
        first, second = self._meanings
        if first.operator(node.proto) != second.operator(twin.proto):
            return False
        return first.attributes(node.proto) == second.attributes(twin.proto)
