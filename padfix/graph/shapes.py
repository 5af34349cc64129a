"""Types of every value in every scope: onnx.shape_inference, corrected where it is wrong and widened where it guesses.

Nothing that a file merely *claims* about an intermediate value is believed: ``value_info``, declared shapes of outputs
and of the inputs of bodies may be stale, and pads derived from them would be wrong without a sound. Believed are the
types of the model's inputs (a runtime enforces them) and, for operators that have no schema, ``value_info``, as nothing
else knows. Bodies and functions are inferred as graphs of their own with the types that flow into them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from onnx import (
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    defs,
    numpy_helper,
    shape_inference,
)
from onnx.helper import make_tensor_value_info

from padfix.files.model import Model
from padfix.files.views import array_of
from padfix.graph import attributes
from padfix.graph.bindings import Bindings, bind, digest_of, given_by_call, refers, strip_bodies
from padfix.graph.inference_forms import rewrite_for_inference
from padfix.graph.pinning import PINNED_DOMAIN, pin, tainted_by
from padfix.graph.scopes import (
    DEFAULT_DOMAIN,
    FunctionKey,
    Scope,
    ValueType,
    bodies_of,
    call_key,
    function_key,
    iterate_scopes,
    names_of,
    normal_domain,
    outer_names_of,
    weights_of,
)
from padfix.graph.types import (
    OperatorTypes,
    TypeOf,
    Types,
    as_seen_outside,
    common_type,
    declared_types,
    improvement_of,
    is_lasting,
    is_more_static,
    scalar,
    slice_of,
    tensor_type,
    value_type,
    without_shape,
)

_MAXIMUM_PASSES = 64
_MAXIMUM_CALL_SITES = 8
_MAXIMUM_LOOP_PASSES = 4
_SCHEMA_DOMAINS = frozenset({"", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training"})


def infer_types(
    model: Model, operators: OperatorTypes, input_shapes: Mapping[str, Sequence[int]] | None = None
) -> list[Scope]:
    """Return every scope of ``model`` with ``types`` filled as far as anything is known for certain.

    Never fails for an odd model: what can't be inferred stays unknown. The model is not changed.

    Args:
        model: The model; its weights are not needed.
        operators: What is known of operators.
        input_shapes: Shapes of data that inputs of the main graph are fed; they count, whatever the model declares.
    """
    scopes = list(iterate_scopes(model.proto, partial(array_of, model)))
    inference = _Inference(model.proto, scopes, operators)
    main = scopes[0]
    inputs = declared_types(model.proto.graph.input)
    for name, shape in (input_shapes or {}).items():
        known = value_type(inputs[name])
        if known is not None:
            inputs[name] = tensor_type(ValueType(known.elem_type, tuple(shape)))
    inference.record(inference.tree(main, inputs, {}))
    inference.record_functions()
    return scopes


Tree = dict[Scope, Types]
"""The types of a scope and of every scope inside it."""


class _Inference:
    """Infers scopes on demand, each with the types that flow into it."""

    def __init__(self, proto: ModelProto, scopes: Sequence[Scope], operators: OperatorTypes) -> None:
        self._proto = proto
        self._operators = operators
        self._functions: dict[FunctionKey, Scope] = {
            function_key(scope.container): scope for scope in scopes if isinstance(scope.container, FunctionProto)
        }
        self._calls: dict[FunctionKey, dict[bytes, Tree]] = {key: {} for key in self._functions}
        self._bodies: dict[tuple[Scope, bytes], Tree] = {}
        self._running: set[FunctionKey] = set()

    def record(self, tree: Tree) -> None:
        """Write the types of ``tree`` into its scopes."""
        for scope, types in tree.items():
            for name, proto in types.items():
                known = value_type(proto)
                if known is not None:
                    scope.types[name] = known
            scope.chained.clear()  # what went by lengths that were not known yet
            scope.root.traits.clear()

    def record_functions(self) -> None:
        """Write into each function's scopes what all of its calls agree on."""
        for key, scope in self._functions.items():
            trees = list(self._calls[key].values())
            if not trees:
                trees = [self.tree(scope, {}, None)]
            merged = trees[0]
            for tree in trees[1:]:
                merged = {
                    each: {
                        name: common
                        for name, proto in merged[each].items()
                        if (common := common_type(proto, tree.get(each, {}).get(name))) is not None
                    }
                    for each in merged
                }
            self.record(merged)

    def tree(self, scope: Scope, inputs: Mapping[str, TypeProto], bindings: Bindings) -> Tree:
        """Infer ``scope`` and the bodies in it; ``inputs`` are the types of its inputs and of the names it captures."""
        graph = self._graph(scope, inputs, bindings)
        pinned: dict[str, TypeProto] = {}
        types: Types = {}
        bodies: Tree = {}
        for _ in range(_MAXIMUM_PASSES):
            types = self._run(scope, graph)
            bodies = {}
            found = self._disagreements(scope, graph, types, bindings, bodies)
            if not found:
                break
            pinned.update(found)
            pin(graph, found)
        else:
            # Still moving: whatever was disputed, and all that follows from it, is better unknown than wrong.
            for name in tainted_by(graph.node, pinned):
                if name in types:
                    types[name] = without_shape(types[name])
        return {scope: types, **bodies}

    def _graph(self, scope: Scope, inputs: Mapping[str, TypeProto], bindings: Bindings) -> GraphProto:
        """Return a stand-alone copy of the scope without any claim about intermediate values."""
        container = scope.container
        graph = GraphProto(name="scope")
        graph.node.extend(container.node)
        declared: dict[str, TypeProto] = {}
        if isinstance(container, GraphProto):
            # From IR version 4 on a caller may give an input another value than its initializer's.
            graph.initializer.extend(tensor for tensor in container.initializer if scope.is_fixed(tensor.name))
            # As inputs: of sparse constants ONNX's inference takes the listed elements for all.
            sparse = [each for each in container.sparse_initializer if scope.is_fixed(each.values.name)]
            graph.input.extend(
                make_tensor_value_info(each.values.name, each.values.data_type, each.dims) for each in sparse
            )
            declared = declared_types((*container.value_info, *container.output))
        else:
            declared = declared_types(container.value_info)
        initializers = {tensor.name for tensor in graph.initializer}
        for name in names_of(container.input):
            if name not in initializers:  # before IR version 4, inputs list what is constant as well
                graph.input.append(ValueInfoProto(name=name, type=inputs.get(name)))
        own = {value.name for value in graph.input} | initializers
        own |= {name for node in graph.node for name in node.output}
        for name, proto in inputs.items():
            if name not in own:
                constant = None if scope.parent is None else scope.parent.constant(name)
                if constant is not None and constant.size <= 64:
                    graph.initializer.append(numpy_helper.from_array(constant, name))
                else:
                    graph.input.append(ValueInfoProto(name=name, type=proto))
        for node in graph.node:
            if scope.bodies:
                strip_bodies(node)
            if refers(node) and not bind(node, bindings):
                node.domain = PINNED_DOMAIN
                del node.attribute[:]
            if self._function_of(node) is None:
                outputs = list(node.output)
                if self._operators.put_stand_in(node):
                    del outputs[:1]
                elif normal_domain(node.domain) in _SCHEMA_DOMAINS:
                    continue
                graph.value_info.extend(
                    ValueInfoProto(name=name, type=declared[name]) for name in outputs if name and name in declared
                )
        believed = {value.name for value in graph.value_info}
        for name in scope.outputs:
            claim = declared.get(name)
            if name in inputs:
                claim = inputs[name]  # or inference takes what is passed on for what has no shape
            elif claim is not None and name not in believed:
                claim = without_shape(claim)
            graph.output.append(ValueInfoProto(name=name, type=claim))
        return graph

    def _run(self, scope: Scope, graph: GraphProto) -> Types:
        # Before IR version 4, inference takes no constant for one that the inputs do not list.
        model = ModelProto(ir_version=max(self._proto.ir_version, 4))
        model.graph.CopyFrom(graph)
        model.functions.extend(self._proto.functions)
        # Inference of some operators ends the process where they leave out all that they name.
        for node in [each for each in model.graph.node if each.input and not any((*each.input, *bodies_of(each)))]:
            model.graph.node.remove(node)
        newest = {DEFAULT_DOMAIN: defs.onnx_opset_version()}  # what runtimes take where nothing is imported
        opsets = {**newest, **scope.opsets, PINNED_DOMAIN: 1}
        opsets[DEFAULT_DOMAIN] = rewrite_for_inference(model.graph, opsets[DEFAULT_DOMAIN])
        for domain, version in opsets.items():
            model.opset_import.add(domain=domain, version=version)
        inferred = graph
        for data_propagation in (True, False):
            try:
                inferred = shape_inference.infer_shapes(model, data_prop=data_propagation).graph
                break
            except Exception:  # the library raises many kinds, none of them about this scope's other values
                continue
        types: Types = {}
        for value in (*inferred.output, *inferred.value_info, *inferred.input):
            if value.HasField("type") and value.type.WhichOneof("value") is not None:
                types[value.name] = value.type
        held = set(names_of(weights_of(graph)))
        for value in scope.container.value_info:
            if value.name not in types and value.name not in held and value.HasField("type"):
                types[value.name] = without_shape(value.type)
        return types

    def _disagreements(
        self, scope: Scope, graph: GraphProto, types: Types, bindings: Bindings, bodies: Tree
    ) -> dict[str, TypeProto]:
        """Return better types for outputs whose inferred ones are wrong or poorer; fill ``bodies`` on the way."""
        found: dict[str, TypeProto] = {}
        tainted: set[str] = set()
        fresh: dict[str, TypeProto] = {}  # what is found, and what follows from that without another pass
        children = iter(scope.bodies)

        def lookup(name: str) -> ValueType | None:
            proto = fresh.get(name) or types.get(name)
            return value_type(proto) if proto is not None else scope.type_of(name)

        def raw(name: str) -> TypeProto | None:
            proto = types.get(name)
            if proto is not None:
                return as_seen_outside(proto)
            known = scope.type_of(name) if name else None
            return None if known is None else tensor_type(known)

        for node, original in zip(graph.node, scope.nodes, strict=True):
            holders = [(name, next(children)) for name, _ in bodies_of(original)] if scope.bodies else []
            function = self._function_of(original)
            covered = self._is_covered(original)
            if not (holders or function or covered or tainted):
                continue
            used = {*original.input, *outer_names_of(original)} if tainted or holders else set()
            outdated = used & tainted
            if outdated and (holders or function or not outdated <= fresh.keys()):
                tainted.update(original.output)
                continue
            better: Sequence[TypeProto | None] = ()
            if holders:
                captured = {name: raw(name) for name in used}
                better = self._through_bodies(original, holders, captured, bindings, bodies)
            elif function is not None:
                better = self._through_call(function, original, raw, bindings)
            else:
                result = self._result(scope, node, original, lookup) if covered else None
                better = () if result is None else (result,)
                if result is None and outdated:
                    fresh.update(self._alone(scope, node, lookup))
                    tainted.update(original.output)
                    continue
            is_pinned = node.domain == PINNED_DOMAIN
            for name, proto in zip(original.output, better, strict=False):
                improved = improvement_of(types.get(name), proto) if name and proto is not None else None
                # What was set by hand gives way to numbers alone: the names of open lengths change with every pass.
                if improved is not None and (not is_pinned or is_more_static(improved, types.get(name))):
                    found[name] = fresh[name] = improved
                    tainted.add(name)
            if found.keys() & set(original.output):
                # The node as a whole is pinned, so its other outputs keep what is known of them.
                found.update({name: types[name] for name in original.output if name in types and name not in found})
                tainted.update(original.output)
        return found

    def _is_covered(self, node: NodeProto) -> bool:
        key = normal_domain(node.domain), node.op_type
        return bool(node.output) and self._function_of(node) is None and key in self._operators.covered

    def _result(self, scope: Scope, node: NodeProto, original: NodeProto, lookup: TypeOf) -> TypeProto | None:
        """Return the type of a node's first output as far as its reading tells."""
        if refers(original) and node.domain == PINNED_DOMAIN:
            return None
        result = self._operators.result(scope, original, node if refers(original) else original, lookup)
        if result is None:
            return None
        inferred = lookup(node.output[0])
        return tensor_type(ValueType(result.elem_type if inferred is None else inferred.elem_type, result.shape))

    def _alone(self, scope: Scope, node: NodeProto, lookup: TypeOf) -> Types:
        """Return the types of what a node gives where all its lengths are numbers, or named by the model itself."""
        if normal_domain(node.domain) or refers(node):
            return {}
        given = self._operators.alone(scope, node, lookup)
        whole = all(
            known is not None and known.shape is not None and all(map(is_lasting, known.shape)) for known in given
        )
        return {
            name: tensor_type(known) for name, known in zip(node.output, given, strict=True) if whole and known and name
        }

    def _through_bodies(
        self,
        node: NodeProto,
        holders: Sequence[tuple[str, Scope]],
        captured: Mapping[str, TypeProto | None],
        bindings: Bindings,
        bodies: Tree,
    ) -> list[TypeProto | None]:
        """Infer the bodies of ``node``; return the types of its outputs as far as the bodies tell."""
        outer = {name: proto for name, proto in captured.items() if proto is not None}
        results: list[list[TypeProto | None]] = []
        for _, body in holders:
            free = {name: proto for name, proto in outer.items() if name not in names_of(body.container.input)}
            trees, outputs = self._body(node, body, free, [outer.get(name) for name in node.input], bindings)
            for scope, types in trees.items():
                bodies[scope] = types
            results.append(outputs)
        if node.op_type == "If" and len(results) == 2:
            return [common_type(first, second) for first, second in zip(*results, strict=False)]
        if node.op_type == "Loop" and len(results) == 1:
            return list(results[0][1 : 1 + max(0, len(node.input) - 2)])
        if node.op_type == "Scan" and len(results) == 1:
            states = len(node.input) - attributes.integer(node, "num_scan_inputs", len(node.input))
            return list(results[0][:states])
        return []

    def _body(
        self,
        node: NodeProto,
        body: Scope,
        free: Mapping[str, TypeProto],
        arguments: Sequence[TypeProto | None],
        bindings: Bindings,
    ) -> tuple[Tree, list[TypeProto | None]]:
        names = names_of(body.container.input)
        declared = {value.name: without_shape(value.type) for value in body.container.input}
        formal: dict[str, TypeProto] = dict(declared)
        carried: list[tuple[str, int]] = []
        if node.op_type == "Loop":
            formal.update(zip(names[:2], (scalar(TensorProto.INT64), scalar(TensorProto.BOOL)), strict=False))
            for position, name in enumerate(names[2:]):
                argument = arguments[2 + position] if 2 + position < len(arguments) else None
                if argument is not None:
                    formal[name] = argument
                    carried.append((name, 1 + position))
        elif node.op_type == "Scan" and body.opset >= 9:
            scanned = attributes.integer(node, "num_scan_inputs", len(names))
            states = len(names) - scanned
            axes = attributes.integers(node, "scan_input_axes") or [0] * scanned
            for position, name in enumerate(names):
                argument = arguments[position] if position < len(arguments) else None
                if argument is None:
                    continue
                if position < states:
                    formal[name] = argument
                    carried.append((name, position))
                elif position - states < len(axes):
                    formal[name] = slice_of(argument, axes[position - states])
        # What is carried from one iteration to the next is only known where the body gives back what it got.
        for attempt in range(_MAXIMUM_LOOP_PASSES):
            tree = self._cached_tree(body, {**free, **formal}, bindings)
            outputs = [tree[body].get(name) for name in body.outputs]
            outputs = [None if proto is None else as_seen_outside(proto) for proto in outputs]
            stable = True
            for name, position in carried:
                given = outputs[position] if position < len(outputs) else None
                kept = common_type(formal[name], given) or declared[name]
                if kept != formal[name]:
                    stable = False
                    formal[name] = kept if attempt + 2 < _MAXIMUM_LOOP_PASSES else declared[name]
            if stable:
                for name, position in carried:
                    if position < len(outputs):
                        outputs[position] = formal[name]
                return tree, outputs
        tree = self._cached_tree(body, {**free, **declared}, bindings)
        return tree, []

    def _cached_tree(self, scope: Scope, inputs: Mapping[str, TypeProto], bindings: Bindings) -> Tree:
        key = (scope, digest_of(inputs, bindings))
        if key not in self._bodies:
            self._bodies[key] = self.tree(scope, inputs, bindings)
        return self._bodies[key]

    def _function_of(self, node: NodeProto) -> FunctionKey | None:
        key = call_key(node)
        return key if key in self._functions else None

    def _through_call(
        self, key: FunctionKey, node: NodeProto, raw: Callable[[str], TypeProto | None], bindings: Bindings
    ) -> list[TypeProto | None]:
        """Infer a function for one call; return the types of the call's outputs."""
        scope = self._functions[key]
        function = scope.container
        assert isinstance(function, FunctionProto)
        if key in self._running:  # recursion is illegal; do not follow it
            return []
        inputs: dict[str, TypeProto] = {}
        for formal, actual in zip(function.input, node.input, strict=False):
            proto = raw(actual) if actual else None
            if proto is not None:
                inputs[formal] = proto
        given = given_by_call(function, node, bindings)
        if len(self._calls[key]) >= _MAXIMUM_CALL_SITES:
            inputs = {name: without_shape(proto) for name, proto in inputs.items()}
            given = None
        digest = digest_of(inputs, given)
        if digest not in self._calls[key]:
            self._running.add(key)
            try:
                self._calls[key][digest] = self.tree(scope, inputs, given)
            finally:
                self._running.discard(key)
        types = self._calls[key][digest][scope]
        return [None if name not in types else as_seen_outside(types[name]) for name in function.output]
