"""What truths decide (a Cast of them, a Where) as sums and products of 0 and 1, for runtimes that have no truths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from padfix.graph import attributes
from padfix.graph.lengths import filled
from padfix.graph.scopes import Scope, normal_domain
from padfix.operators.elementwise import ELEMENTWISE
from padfix.operators.lists import COMPARING
from padfix.operators.numbers import constant_before_casts
from padfix.operators.refusal import Refusal
from padfix.operators.traits import traits_of
from padfix.rules.base import Rewrite, Site, TrialInput
from padfix.rules.build.along_axes import FLOATS
from padfix.rules.build.forms import Form, by_another_rule
from padfix.rules.build.node_trials import trials_of
from padfix.rules.build.objections import Operators, worst_objection

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_MOST = 24
"""Nodes that are taken together, or looked at."""

_SHORT = 3
"""In place of a length that is not known, where a form is tried."""

_JOINING = ("And", "Or", "Xor", "Not")

_SPREADING = frozenset(
    ("Acos", "Acosh", "Asin", "Atanh", "Cosh", "Div", "Exp", "Log", "Mod", "Pow", "Reciprocal", "Sinh", "Sqrt", "Tan")
)
"""What may give infinity or not-a-number for common numbers, as where a Where is there to put something else."""

_PARTS: Operators = (
    *((each, {}) for each in ("Sub", "Relu", "Sign", "Abs", "Add")),
    ("Mul", {"gate-second": False}),
)


@dataclass
class _Truths:
    """What truths are made of.

    Attributes:
        nodes: Those that compare numbers and join truths, by what they give.
        numbers: What is compared.
        told: The truths that are constants.
    """

    nodes: dict[str, NodeProto] = field(default_factory=dict)
    numbers: list[str] = field(default_factory=list)
    told: dict[str, np.ndarray] = field(default_factory=dict)


def infinite_forms(site: Site) -> Iterator[Form]:
    """Yield a Where of one infinity as a sum with the logarithm of 0 where that is, and of 1 elsewhere."""
    told = {place: value for place in (1, 2) if (value := site.constant(place)) is not None and np.isinf(value).all()}
    if len(told) != 1 or not (traits_of(site.scope, site.node) or {}).get("meets-infinity"):
        return
    ((place, value),) = told.items()
    elem_type, data = site.elem_type(place), site.node.input[3 - place]

    def write() -> Rewrite:
        builder = site.builder()
        kept, numbers = builder.input(site.node.input[0]), builder.input(data)
        kept = builder.op("Not", [kept]) if place == 1 else kept
        logarithm = builder.op("Log", [builder.op("Cast", [kept], {"to": elem_type})])
        joint = "Add" if value.reshape(-1)[0] < 0 else "Sub"
        builder.output(site.node.output[0], builder.op(joint, [numbers, logarithm]))
        return Rewrite(builder.build(), trials_of(site), exact=True)

    operators: Operators = (("Not", {}), ("Cast", {"numbers": "boolean", "gives": "single"}), ("Log", {}))
    why_not = (
        None if value.size == 1 and elem_type in FLOATS else Refusal("it is more than one infinity, or of no floats")
    )
    yield Form("a sum with a logarithm of 0", operators, write, why_not)


def truth_forms(site: Site) -> Iterator[Form]:
    """Yield a Cast of truths, or a Where, as sums and products; a comparison is by what reads it."""
    scope, node = site.scope, site.node
    if node.op_type in (*COMPARING, *_JOINING):
        if _are_rewritten(site, node.output[0]):
            yield Form("numbers of 0 and 1, with what reads it", _PARTS, by_another_rule)
        return
    truths = _truths_of(scope, node.input[0])
    gives = attributes.integer(node, "to", 0) if node.op_type == "Cast" else site.elem_type(1)
    why_not = truths if isinstance(truths, Refusal) else _why_not(site, truths, gives)

    def write() -> Rewrite:
        assert isinstance(truths, _Truths)
        builder = site.builder()
        written = _Written(builder, scope, truths, np.dtype(helper.tensor_dtype_to_np_dtype(gives)))
        result = written.mask(node.input[0])
        if node.op_type == "Where":
            result = written.choice(result, *node.input[1:])
        builder.output(node.output[0], result)
        inputs = dict.fromkeys([*truths.numbers, *truths.told, *(node.input[1:] if node.op_type == "Where" else ())])
        replaced = tuple(each for each in scope.nodes if each.output and each.output[0] in truths.nodes)
        return Rewrite(builder.build(), (_trial(scope, inputs),), exact=True, replaces=replaced)

    yield Form("numbers of 0 and 1", _PARTS, write, why_not)


def _are_rewritten(site: Site, name: str) -> bool:
    """Whether a rule takes truths apart with all that reads them."""
    readers = [] if site.scope.is_output(name) else site.scope.consumers(name)
    return bool(readers) and all(_is_rewritten(site, each) for each in readers)


def _is_rewritten(site: Site, reader: NodeProto) -> bool:
    """Whether what reads truths is a Cast or Where that the target minds, or joins them to others for such alone."""
    if reader.op_type not in ("Cast", "Where"):
        return reader.op_type in _JOINING and _are_rewritten(site, reader.output[0])
    traits = traits_of(site.scope, reader)
    return traits is not None and worst_objection(site.target, reader.op_type, site.opset, traits) is not None


def _truths_of(scope: Scope, name: str) -> _Truths | Refusal:
    found, left = _Truths(), [name]
    while left:
        each = left.pop()
        node, constant = scope.own_producer(each), scope.constant(each)
        if constant is not None:
            found.told[each] = constant
        elif node is None or normal_domain(node.domain) or len(found.nodes) >= _MOST:
            return Refusal("where its truths come from is not known")
        elif node.op_type in COMPARING:
            found.nodes[each] = node
            found.numbers += node.input
        elif node.op_type in _JOINING:
            found.nodes[each] = node
            left += node.input
        else:
            return Refusal("its truths are no comparisons of numbers")
    return found


def _why_not(site: Site, truths: _Truths, gives: int) -> Refusal | None:
    scope, node = site.scope, site.node
    types = {None if (known := scope.type_of(name)) is None else known.elem_type for name in truths.numbers}
    names = [*truths.numbers, *(node.input[1:] if node.op_type == "Where" else ())]
    if not truths.numbers and node.op_type == "Cast":
        return Refusal("its truths are constants")
    if any((known := scope.type_of(name)) is None or known.shape is None for name in names):
        return Refusal("how many axes its numbers have is not known")
    if gives not in FLOATS or types - {gives} or gives == TensorProto.BFLOAT16:
        return Refusal("its numbers are no floats of one type")
    for name in truths.numbers:
        constant = scope.constant(name)
        if constant is not None and not np.isfinite(constant).all() and not _is_met_alone(scope, truths, name):
            return Refusal("it compares with what is infinite")
    for name in node.input[1:] if node.op_type == "Where" else ():
        constant = scope.constant(name)
        if constant is None and _may_be_infinite(scope, name):
            return Refusal("what it does not choose may be infinite or not a number")
        is_infinite = constant is not None and not np.isfinite(constant).all()
        if constant is not None and is_infinite and (truths.nodes or not np.isneginf(constant).all()):
            return Refusal("what it chooses is infinite or not a number, and where is only known at run time")
    return None


def _is_met_alone(scope: Scope, truths: _Truths, name: str) -> bool:
    """Whether a constant is one infinity, and it is but asked what is equal to it."""
    readers = [node for node in truths.nodes.values() if name in node.input]
    return bool(_infinity_of(scope, name)) and all(node.op_type == "Equal" for node in readers)


def _may_be_infinite(scope: Scope, name: str) -> bool:
    """Whether something that works element by element before it may give infinity or not-a-number."""
    left, seen = [name], set[str]()
    while left:
        each = left.pop()
        node = scope.own_producer(each)
        if node is None or each in seen or node.op_type not in ELEMENTWISE:
            continue
        seen.add(each)
        if node.op_type in _SPREADING or len(seen) > _MOST:
            return True
        left += [name for name in node.input if name]
    return False


@dataclass(frozen=True)
class _Written:
    """Truths of a fragment as numbers of 0 and 1."""

    builder: FragmentBuilder
    scope: Scope
    truths: _Truths
    dtype: np.dtype[Any]

    def mask(self, name: str) -> Any:
        """Return truths as a value, or as an array where they are constants."""
        if name in self.truths.told:
            return self.truths.told[name].astype(self.dtype)
        node = self.truths.nodes[name]
        if node.op_type in COMPARING:
            return self._compared(node)
        masks = [self.mask(each) for each in node.input]
        if node.op_type == "Not":
            return self._without(masks[0])
        if all(isinstance(each, np.ndarray) for each in masks):
            joint = {"And": np.minimum, "Or": np.maximum, "Xor": np.not_equal}[node.op_type]
            return np.asarray(joint(*masks)).astype(self.dtype)
        first, second = map(self.value, masks)
        if node.op_type == "And":
            return self.builder.op("Mul", [first, second])
        if node.op_type == "Or":
            return self.builder.op("Max", [first, second])
        return self.builder.op("Abs", [self.builder.op("Sub", [first, second])])

    def choice(self, mask: Any, chosen: str, other: str) -> Any:
        """Return what is chosen where the mask is 1, and something else elsewhere."""
        parts = []
        for name, share in ((chosen, mask), (other, self._without(mask))):
            constant = self.scope.constant(name)
            if constant is not None and np.isneginf(constant).all():
                continue
            if constant is not None and isinstance(share, np.ndarray):
                parts.append(self.value(np.asarray(share * constant, self.dtype)))
            else:
                parts.append(self.builder.op("Mul", [self.builder.input(name), self.value(share)]))
        result = parts[0] if len(parts) == 1 else self.builder.op("Add", parts)
        for name, kept in ((chosen, self._without(mask)), (other, mask)):
            constant = self.scope.constant(name)
            if constant is not None and np.isneginf(constant).all():
                infinite = np.where(kept > 0, 0, -np.inf).astype(self.dtype)
                result = self.builder.op("Add", [result, self.value(infinite)])
        return result

    def value(self, mask: Any) -> Any:
        """Return a mask as a value."""
        return self.builder.constant(mask, "mask") if isinstance(mask, np.ndarray) else mask

    def _without(self, mask: Any) -> Any:
        if isinstance(mask, np.ndarray):
            return np.asarray(1 - mask, self.dtype)  # of a number NumPy makes no array
        return self.builder.op("Sub", [self.builder.constant(np.array(1, self.dtype), "one"), mask])

    def _compared(self, node: NodeProto) -> Any:
        infinities = [_infinity_of(self.scope, name) for name in node.input]
        if node.op_type == "Equal" and any(infinities):
            return self._beyond(node.input[0 if infinities[1] else 1], infinities[1] or infinities[0])
        first, second = (self.builder.input(name) for name in node.input)
        if node.op_type in ("Less", "GreaterOrEqual"):
            first, second = second, first
        distance = self.builder.op("Sub", [first, second])
        part = self.builder.op("Abs" if node.op_type == "Equal" else "Relu", [distance])
        sign = self.builder.op("Sign", [part])
        return sign if node.op_type in ("Greater", "Less") else self._without(sign)

    def _beyond(self, data: str, infinity: float) -> Any:
        """Return which data are one infinity as which lie beyond the largest number: no number is as far from it."""
        known = self.scope.type_of(data)
        assert known is not None
        dtype = helper.tensor_dtype_to_np_dtype(known.elem_type or TensorProto.FLOAT)
        value, most = self.builder.input(data), np.finfo(dtype).max
        if infinity < 0:
            distance = self.builder.op("Sub", [self.builder.constant(np.array(-most, dtype), "least"), value])
        else:
            distance = self.builder.op("Sub", [value, self.builder.constant(np.array(most, dtype), "most")])
        return self.builder.op("Sign", [self.builder.op("Relu", [distance])])


def _infinity_of(scope: Scope, name: str) -> float:
    """Return the one infinity that a constant is, or that is made of it in another type; 0 of all else."""
    value = constant_before_casts(scope, name)
    is_one = value is not None and value.size == 1 and value.dtype.kind == "f" and np.isinf(value).all()
    return float(value.reshape(-1)[0]) if value is not None and is_one else 0


def _trial(scope: Scope, names: Mapping[str, None]) -> dict[str, TrialInput]:
    """Return small whole numbers for all that is no constant, of which some are equal."""
    random, trial = np.random.default_rng(0), {}
    for name in names:
        constant, known = scope.constant(name), scope.type_of(name)
        if constant is not None:
            trial[name] = TrialInput.of(constant)
            continue
        assert known is not None
        dtype = helper.tensor_dtype_to_np_dtype(known.elem_type or TensorProto.FLOAT)
        if infinity := _infinity_of(scope, name):
            trial[name] = TrialInput.of(np.full(filled(known.shape, 1), infinity, dtype), constant=False)
            continue
        trial[name] = TrialInput.of(random.integers(-2, 3, filled(known.shape, _SHORT)).astype(dtype), constant=False)
    return trial
