"""PF303: a shape or element type that the model declares for a value and that its own graph contradicts."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper, numpy_helper

from padfix.graph.scopes import OVERRIDABLE_SINCE, Dimension, Scope, ValueType, label, names_of
from padfix.graph.types import contradicts, value_type
from padfix.operators.numbers import name_of, numbers_of
from padfix.results import Finding
from padfix.rules.base import Correction, ScopeRule
from padfix.rules.build.declared_constants import constant_kinds
from padfix.rules.build.forms import SHAPE_AS_INPUT_SINCE
from padfix.rules.build.nameless_lengths import name_lengths, nameless_copied
from padfix.rules.build.objections import Objection, worst_objection
from padfix.targets import DECLARED, Target
from padfix.targets.traits import COUNT, Traits

_PLAIN_NAME, _ODD = re.compile(r"[A-Za-z0-9_.\\/>:-]*"), re.compile(r"[^A-Za-z0-9_.\\/>:-]")
"""What TensorFlow takes for a name, and the colon, which converters to it replace; and what it does not."""

_WITHOUT_SIGN: Mapping[int, str] = {
    TensorProto.UINT16: "bits-16",
    TensorProto.UINT32: "bits-32",
    TensorProto.UINT64: "bits-64",
}

_FIXED: Traits = {"sizes": "static", "shape-given": True, "of-input": False, "inputs": 1}
"""What is said of nothing but a name or the file."""

_BEFORE_NEW = 13
"""The version of files before the one that came with opset 28."""

_MEASURING = ("Shape", "Size")
"""Operators that read the lengths of their data, and nothing else of them."""

_UNTOLD = "Its rank is not known either: fix the sizes of the inputs (--shape)."


class StaleShapes(ScopeRule):
    """The model declares a shape for a value, and its own operators give another one.

    Tools that edit a model and leave its `value_info` behind make such claims. Nothing computes with them, but many
    converters and compilers believe them: pads or buffer sizes taken from a stale shape are wrong without a sound, and
    some runtimes refuse the model. Where a target's facts say that it refuses lengths of inner values that are left
    open, these are reported as well: shape inference writes them for every model with open inputs. So are lengths of
    inputs that a target wants told (`--shape`), an output of which no shape is declared, and names of nodes and
    outputs, where a target refuses that, inputs and constants that nothing reads, lengths without names, constants of
    a type that it can't hold as they are written, and files of ONNX's first three versions, where a target misreads
    these.

    padfix itself never believes a declared shape except those of the model's inputs. `convert` deletes a `value_info`
    that is contradicted or that the target refuses, the shape that a body declares for its input or output, and
    corrects the shape of a model's output, or declares one, names such nodes otherwise, leaves such constants out or
    writes them otherwise, names such lengths, and lets an Identity read such an input. An old file it writes as one of
    version 4, without the constants that it lists among the inputs: no caller could replace them before either. Where
    the body of a Loop declares a list of one for the number of its turn, it is given the number, and makes the list
    itself.
    Symbolic and unknown lengths contradict nothing.

    Refused: open lengths of inputs, which only you know, and inputs and outputs of a name, of a type or of as many axes
    as the target takes none of, without elements, or with a default of such a type; a shape that can't be worked out is
    not reported.

    Before, opset 17:

        main (float[1,3,8,8] X) => (float[1,3,6,6] Y)
        <float[1,3,8,8] pooled> {
          pooled = MaxPool <kernel_shape = [3, 3]> (X)
          Y = Relu (pooled)
        }

    After (nothing is said of `pooled` any more):

        pooled = MaxPool <kernel_shape = [3, 3]> (X)
        Y = Relu (pooled)

    References:

    - The ONNX specification of shape inference: <https://onnx.ai/onnx/api/shape_inference.html>
    """

    code = "PF303"
    name = "stale-shapes"

    def examine(self, scope: Scope, target: Target) -> Iterator[Correction]:
        """Yield one correction for each contradicted declaration."""
        container = scope.container
        for value in list(container.value_info):
            known = self._contradiction(scope, value)
            if known is not None:
                yield Correction(self._finding(scope, value, known, "value_info"), _remover(scope, [value.name]))
        left_open = [value.name for value in container.value_info if _is_open(value)]
        objection = _objection(scope, target, of_input=False) if left_open else None
        if objection is not None:
            count = f"{len(left_open)} inner values" if len(left_open) > 1 else "an inner value"
            says = f"The model leaves lengths of {count} open in {DECLARED}. {objection.sentence(target, DECLARED)}"
            hint = f"padfix convert --target {target.name} removes the declarations."
            found = self.scope_finding(scope, left_open[0], says, hint, DECLARED)
            yield Correction(dataclasses.replace(found, severity=objection.severity), _remover(scope, left_open))
        yield from self._odd_names(scope, target)
        yield from self._refused_constants(scope, container, target)
        if isinstance(container, FunctionProto):
            return
        yield from self._odd_version(scope, container, target)
        yield from self._open_inputs(scope, container, target)
        yield from self._refused_ends(scope, container, target)
        yield from self._unread_inputs(scope, container, target)
        yield from self._without_shape(scope, container, target)
        yield from self._nameless(scope, container, target)
        for value in container.output:
            known = self._contradiction(scope, value)
            if known is not None:
                yield Correction(self._finding(scope, value, known, "output"), _writer(scope, value.type, known))
        if scope.parent is not None:
            for value in container.input:
                known = self._contradiction(scope, value)
                if known is not None:
                    is_list = _is_list_for_number(value, known) and scope.opset >= SHAPE_AS_INPUT_SINCE
                    correct = _lister(scope, value) if is_list else _writer(scope, value.type, known)
                    yield Correction(self._finding(scope, value, known, "input"), correct)

    def _odd_names(self, scope: Scope, target: Target) -> Iterator[Correction]:
        """Yield a correction of the names of nodes that the target can't take."""
        odd = [node for node in scope.nodes if not _PLAIN_NAME.fullmatch(node.name)]
        objection = worst_objection(target, DECLARED, scope.opset, {**_FIXED, "odd-node": True}) if odd else None
        if objection is not None:
            says = f"Names of {len(odd)} nodes can't be such. {objection.sentence(target, DECLARED)}"
            hint = f"padfix convert --target {target.name} names them otherwise."
            found = self.scope_finding(scope, odd[0].name, says, hint, odd[0].op_type)
            yield Correction(dataclasses.replace(found, severity=objection.severity), _namer(scope, odd))

    def _odd_version(self, scope: Scope, graph: GraphProto, target: Target) -> Iterator[Correction]:
        """Yield a correction of a file whose version the target minds: it is too old, or too new for it."""
        if scope.model is None:
            return
        mark, wanted, renew = "old-file", OVERRIDABLE_SINCE, _renewer(scope, graph)
        if scope.ir_version > _BEFORE_NEW:
            mark, wanted, renew = "new-file", _BEFORE_NEW, _dater(scope)
        elif scope.ir_version >= OVERRIDABLE_SINCE:
            return
        objection = worst_objection(target, DECLARED, scope.opset, {**_FIXED, mark: True})
        if objection is not None:
            says = f"The file is of ONNX's version {scope.ir_version}. {objection.sentence(target, DECLARED)}"
            hint = f"padfix convert --target {target.name} writes version {wanted}."
            found = self.scope_finding(scope, graph.name, says, hint, "ir_version")
            yield Correction(dataclasses.replace(found, severity=objection.severity), renew)

    def _open_inputs(self, scope: Scope, graph: GraphProto, target: Target) -> Iterator[Correction]:
        """Yield what nobody but the user can mend: lengths of the model's inputs that are left open."""
        weights = {tensor.name for tensor in graph.initializer}
        inputs = graph.input if scope.parent is None else ()
        left_open = [value.name for value in inputs if value.name not in weights and _is_open(value)]
        objection = _objection(scope, target, of_input=True) if left_open else None
        if objection is not None:
            says = f"Lengths of the input {left_open[0]!r} are left open. {objection.sentence(target, 'input')}"
            found = self.scope_finding(
                scope, left_open[0], says, f"Tell them: --shape {left_open[0]}=LENGTHS.", "input"
            )
            yield Correction(dataclasses.replace(found, severity=objection.severity, fixable=False))

    def _refused_ends(self, scope: Scope, graph: GraphProto, target: Target) -> Iterator[Correction]:
        """Yield the inputs and outputs of the model of a name, a type, or as many axes, as the target takes none of."""
        weights = {tensor.name for tensor in graph.initializer}
        ends = [("input", value.name) for value in graph.input if value.name not in weights]
        inputs = min(len(ends), COUNT[-1])
        ends += [("output", value.name) for value in graph.output]
        for kind, name in ends if scope.parent is None and target.facts else ():
            known = scope.types.get(name)
            rank = None if known is None else known.rank
            said: Traits = {
                "sizes": "static",
                "shape-given": True,
                "of-input": kind == "input",
                "odd-output": kind == "output" and not _PLAIN_NAME.fullmatch(name),
                "numbers": numbers_of(scope, name),
                "without-sign": "none" if known is None else _WITHOUT_SIGN.get(known.elem_type, "none"),
                "axes": 1 if rank is None else min(rank, COUNT[-1]),
                "of-nothing": known is not None and 0 in (known.shape or ()),
                "inputs": inputs,
            }
            objection = worst_objection(target, DECLARED, scope.opset, said)
            if objection is not None:
                says = f"The {kind} {name!r} can't be one. {objection.sentence(target, kind)}"
                found = self.scope_finding(scope, name, says, "Only who calls the model can change it.", kind)
                yield Correction(dataclasses.replace(found, severity=objection.severity, fixable=False))

    def _unread_inputs(self, scope: Scope, graph: GraphProto, target: Target) -> Iterator[Correction]:
        """Yield a correction of the model's inputs of which nothing reads more than lengths, if the target minds."""
        inputs = names_of(graph.input) if scope.parent is None else ()
        unread = [name for name in inputs if not scope.is_initializer(name) and _is_unread(scope, name)]
        objection = worst_objection(target, DECLARED, scope.opset, {**_FIXED, "unread": True}) if unread else None
        if objection is not None:
            says = f"Nothing reads the input {unread[0]!r}. {objection.sentence(target, 'input')}"
            hint = f"padfix convert --target {target.name} lets a node read it."
            found = self.scope_finding(scope, unread[0], says, hint, "input")
            yield Correction(dataclasses.replace(found, severity=objection.severity), _reader(scope, unread))

    def _refused_constants(
        self, scope: Scope, container: GraphProto | FunctionProto, target: Target
    ) -> Iterator[Correction]:
        """Yield a correction of each kind of constants that the target can't hold as they are, or needs not hold."""
        for kind in constant_kinds(scope, container) if target.facts else ():
            refused = {}
            for name, elem_type in kind.tensors:
                said: Traits = {**_FIXED, kind.mark: True, "type": name_of(elem_type)}
                if (objection := worst_objection(target, DECLARED, scope.opset, said)) is not None:
                    refused[name] = objection
            for name, objection in list(refused.items())[:1]:
                says = f"{kind.says.format(name)} {objection.sentence(target, kind.of)}"
                found = self.scope_finding(scope, name, says, kind.hint.format(target.name), kind.of)
                found = dataclasses.replace(found, severity=objection.severity, fixable=kind.mend is not None)
                mend = None if kind.mend is None else partial(kind.mend, frozenset(refused))
                yield Correction(found, mend, moves=kind.moves)

    def _without_shape(self, scope: Scope, graph: GraphProto, target: Target) -> Iterator[Correction]:
        """Yield a correction for each output of which no shape is declared, where the target minds.

        A body that reads no values of its own is a branch; what a turn of a loop gives may change its lengths.
        """
        is_run_once = scope.parent is None or not graph.input
        bare = [value for value in graph.output if is_run_once and _has_no_shape(value)]
        objection = (
            worst_objection(target, DECLARED, scope.opset, {"sizes": "static", "shape-given": False}) if bare else None
        )
        if objection is None:
            return
        for value in bare:
            known = scope.types.get(value.name)
            is_known = known is not None and known.shape is not None
            says = f"No shape is declared of the output {value.name!r}. {objection.sentence(target, 'output')}"
            hint = f"padfix convert --target {target.name} declares what the graph gives." if is_known else _UNTOLD
            found = self.scope_finding(scope, value.name, says, hint, DECLARED)
            apply = _writer(scope, value.type, known) if is_known and known is not None else None
            yield Correction(dataclasses.replace(found, severity=objection.severity), apply)

    def _nameless(self, scope: Scope, graph: GraphProto, target: Target) -> Iterator[Correction]:
        """Yield a correction of open lengths of the model's inputs that have no name, where the target minds."""
        inputs = nameless_copied(scope, graph) if target.facts else []
        said: Traits = {**_FIXED, "nameless-copied": True}
        objection = worst_objection(target, DECLARED, scope.opset, said) if inputs else None
        if objection is not None:
            says = f"Open lengths of the input {inputs[0]!r} have no name. {objection.sentence(target, 'input')}"
            hint = f"padfix convert --target {target.name} names them."
            found = self.scope_finding(scope, inputs[0], says, hint, "input")
            found = dataclasses.replace(found, severity=objection.severity)
            yield Correction(found, partial(name_lengths, scope, graph))

    @staticmethod
    def _contradiction(scope: Scope, value: ValueInfoProto) -> ValueType | None:
        known = scope.types.get(value.name)
        claimed = value_type(value.type)
        return known if known is not None and claimed is not None and contradicts(known, claimed) else None

    def _finding(self, scope: Scope, value: ValueInfoProto, known: ValueType, kind: str) -> Finding:
        claimed = value_type(value.type)
        assert claimed is not None
        differs = "shape" if known.elem_type == claimed.elem_type else "type"
        node, op_type = value.name, ""
        for index, each in enumerate(scope.nodes):
            if value.name in each.output:
                node, op_type = label(each, index), each.op_type
        return self.scope_finding(
            scope,
            node,
            f"The {differs} that {kind} {value.name!r} declares is {_text(claimed, differs)}, "
            f"but the graph gives {_text(known, differs)}.",
            "padfix convert removes or corrects the declaration.",
            op_type,
        )


def _objection(scope: Scope, target: Target, *, of_input: bool) -> Objection | None:
    said: Traits = {"sizes": "dynamic", "shape-given": True, "of-input": of_input}
    return worst_objection(target, DECLARED, scope.opset, said)


def _text(known: ValueType, differs: str) -> str:
    if differs == "shape":
        return _lengths(known.shape or ())
    names = {number: name for name, number in TensorProto.DataType.items()}
    name = names.get(known.elem_type, f"type {known.elem_type}").lower()
    return name if known.shape is None else f"{name}{_lengths(known.shape)}"


def _lengths(shape: tuple[Dimension, ...]) -> str:
    return "[" + ", ".join("?" if each is None else str(each) for each in shape) + "]"


def _is_unread(scope: Scope, name: str) -> bool:
    """Whether nothing reads more of a value than its lengths."""
    return not scope.is_output(name) and all(node.op_type in _MEASURING for node in scope.consumers(name))


def _has_no_shape(value: ValueInfoProto) -> bool:
    """Whether the type alone is declared, or not even that, which a body need not do."""
    return value.type.WhichOneof("value") in (None, "tensor_type") and not value.type.tensor_type.HasField("shape")


def _is_open(value: ValueInfoProto) -> bool:
    declared = value_type(value.type)
    return declared is not None and any(not isinstance(each, int) for each in declared.shape or ())


def _remover(scope: Scope, names: Collection[str]) -> Callable[[], None]:
    def remove() -> None:
        entries = scope.container.value_info
        for index in reversed(range(len(entries))):
            if entries[index].name in names:
                del entries[index]

    return remove


def _renewer(scope: Scope, graph: GraphProto) -> Callable[[], None]:
    """Return what makes the file one of the first version in which constants are no inputs."""

    def renew() -> None:
        constants = {tensor.name for tensor in graph.initializer}
        kept = [value for value in graph.input if value.name not in constants]
        del graph.input[:]
        graph.input.extend(kept)
        if scope.model is not None:
            scope.model.ir_version = OVERRIDABLE_SINCE

    return renew


def _dater(scope: Scope) -> Callable[[], None]:
    """Return what gives the file the version before the newest: nothing else of it is written otherwise there."""

    def date() -> None:
        if scope.model is not None:
            scope.model.ir_version = _BEFORE_NEW

    return date


def _reader(scope: Scope, names: Sequence[str]) -> Callable[[], None]:
    """Return what adds a node for each input that reads it, and whose result nothing reads."""

    def read() -> None:
        for name in names:
            given = f"{name}_unread"
            while any(each.defines(given) for each in (scope, *scope.bodies)):
                given += "_"
            scope.container.node.append(helper.make_node("Identity", [name], [given], given))

    return read


def _namer(scope: Scope, odd: Sequence[NodeProto]) -> Callable[[], None]:
    """Return what names nodes anew, by their place where a name is taken."""

    def name() -> None:
        taken = {node.name for node in scope.nodes}
        for place, node in enumerate(odd):
            plain = _ODD.sub("_", node.name)
            node.name = plain if plain not in taken else f"{plain}_{place}"
            taken.add(node.name)

    return name


def _is_list_for_number(value: ValueInfoProto, known: ValueType) -> bool:
    """Whether a list of one is declared of a number: PyTorch counts turns so where it tells how many in one."""
    claimed = value_type(value.type)
    return known.lengths == () and claimed == dataclasses.replace(known, shape=(1,))


def _lister(scope: Scope, value: ValueInfoProto) -> Callable[[], None]:
    """Return what declares a number, and makes the list of it that the body reads."""

    def write() -> None:
        given, number, lengths = value.name, f"{value.name}_number", f"{value.name}_lengths"
        while any(each.defines(number) or each.defines(lengths) for each in (scope, *scope.bodies)):
            number, lengths = f"{number}_", f"{lengths}_"
        value.name = number
        del value.type.tensor_type.shape.dim[:]
        graph = scope.container
        assert isinstance(graph, GraphProto)
        graph.initializer.append(numpy_helper.from_array(np.ones(1, np.int64), lengths))
        graph.node.insert(0, helper.make_node("Reshape", [number, lengths], [given], number))

    return write


def _writer(scope: Scope, declared: TypeProto, known: ValueType) -> Callable[[], None]:
    """Return what corrects a declared shape: cleared in a body, the right lengths where the model's caller reads it.

    Where there is none, the lengths are written in a body as well.
    """

    def write() -> None:
        shape = declared.tensor_type.shape
        if scope.parent is not None and declared.tensor_type.HasField("shape"):
            declared.tensor_type.ClearField("shape")
            return
        lengths = known.shape or ()
        shape.SetInParent()
        declared.tensor_type.elem_type = declared.tensor_type.elem_type or known.elem_type
        if len(shape.dim) != len(lengths):
            del shape.dim[:]
            for length in lengths:
                entry = shape.dim.add()
                if isinstance(length, int):
                    entry.dim_value = length
            return
        for entry, length in zip(shape.dim, lengths, strict=True):
            if isinstance(length, int) and entry.HasField("dim_value") and entry.dim_value != length:
                entry.dim_value = length

    return write
