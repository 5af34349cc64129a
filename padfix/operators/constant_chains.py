"""Nodes that depend on no data once the lengths are known: what they read, and what they give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from padfix.graph import attributes
from padfix.graph.scopes import Scope, bodies_of, normal_domain
from padfix.graph.types import TypeOf
from padfix.operators.elementwise import COPYING, LAYING_OUT, PICKING_OUT, REDUCTIONS
from padfix.operators.evaluation import evaluated, require_room

COMPUTED = frozenset(
    """
    Abs Add And ArgMax ArgMin AveragePool BatchNormalization BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor
    BlackmanWindow Cast CastLike Ceil Celu Clip Compress Concat ConstantOfShape Conv ConvTranspose Cos CumSum
    DepthToSpace DequantizeLinear Div Einsum Elu Equal Erf Exp Expand Flatten Floor Gather GatherElements GatherND Gelu
    Gemm GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual GridSample GroupNormalization HammingWindow HannWindow
    HardSigmoid HardSwish Hardmax Identity InstanceNormalization LRN LayerNormalization LeakyRelu Less LessOrEqual Log
    LogSoftmax LpNormalization LpPool MatMul Max MaxPool Mean MelWeightMatrix Min Mish Mod Mul Neg NonZero Not OneHot
    Or PRelu Pad Pow Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin
    ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize ReverseSequence Round ScatterElements ScatterND Selu Shape
    Sigmoid Sign Sin Size Slice Softmax Softplus Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Tan Tanh Tile TopK
    Transpose Trilu Unique Unsqueeze Where Xor
    """.split()  # noqa: SIM905
)
"""Operators that exporters and quantizers write to compute constants: shapes, grids, the weights of a resampling.

And those of layers, which start from constants where a state is zero at first or a table of places is interpolated.
"""

STEERED: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("Expand", "Reshape", "Split", "Squeeze", "Tile", "Unsqueeze", "Upsample"), (1,)),
    **dict.fromkeys(REDUCTIONS, (1,)),
    "ConstantOfShape": (0,),
    "Pad": (1, 2, 3),
    "Range": (0, 1, 2),
    "Resize": (1, 2, 3),
    "Slice": (1, 2, 3, 4),
    "TopK": (1,),
}
"""Operators that do what the values of inputs say, and the positions of those: to most importers constants."""

_TOLD: Mapping[str, tuple[int, ...]] = {
    **STEERED,
    **dict.fromkeys(("AffineGrid", "CumSum", "OneHot", "Trilu"), (1,)),
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), (0,)),
}
"""As :data:`STEERED`, and what else goes by the value of a number."""

LONGEST_CHAIN = 1000
"""Nodes that a constant may be computed by; more are looked at for nothing too often."""


_MEASURING = ("Shape", "Size")

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)

_PICKING = ("Gather", "Slice")
"""What takes lengths from a list of them."""

_PASSING = ("Cast", "Identity")
"""What may lie between: TensorFlow's shapes are of 32 bits."""


def is_given_by_node(scope: Scope, name: str) -> bool:
    """Whether a node Constant gives the value, and no initializer."""
    producer = scope.own_producer(name)
    return producer is not None and producer.op_type == "Constant" and not normal_domain(producer.domain)


def is_constant(scope: Scope, name: str) -> bool:
    """Whether a value is written in the model, however large, and nothing replaces it."""
    return scope.is_fixed(name) or is_given_by_node(scope, name) or scope.constant(name) is not None


def is_constant_boolean(scope: Scope, name: str) -> bool:
    """Whether a value is written in the model and holds booleans."""
    known = scope.type_of(name) if name else None
    return known is not None and known.elem_type == TensorProto.BOOL and is_constant(scope, name)


def reads_constant_doubles(scope: Scope, node: NodeProto) -> bool:
    """Whether a node reads a constant in double precision."""
    types = {name: scope.type_of(name) for name in node.input if name}
    return any(
        known is not None and known.elem_type == TensorProto.DOUBLE and is_constant(scope, name)
        for name, known in types.items()
    )


def reads_constant_bytes(scope: Scope, node: NodeProto) -> bool:
    """Whether a node reads a constant of bytes with a sign."""
    types = {name: scope.type_of(name) for name in node.input if name}
    signed = [name for name, known in types.items() if known is not None and known.elem_type == TensorProto.INT8]
    return any(is_constant(scope, name) for name in signed)


def reads_unsigned_bytes(scope: Scope, node: NodeProto) -> bool:
    """Whether a node reads a constant of bytes without a sign."""
    types = {name: scope.type_of(name) for name in node.input if name}
    unsigned = [name for name, known in types.items() if known is not None and known.elem_type == TensorProto.UINT8]
    return any(is_constant(scope, name) for name in unsigned)


def is_steered_by_results(scope: Scope, node: NodeProto) -> bool:
    """Whether the model computes what an operator of :data:`STEERED` goes by, be it of lengths or constants alone."""
    names = [node.input[place] for place in STEERED.get(node.op_type, ()) if place < len(node.input)]
    return any(name and not is_constant(scope, name) for name in names)


def is_steered_by_data(scope: Scope, node: NodeProto) -> bool:
    """Whether an input says what an operator does that depends on data, and not on lengths and constants alone.

    What a body counts is a constant where its turns are written out, and no data.
    """
    if scope.parent is not None:
        return False
    names = [node.input[place] for place in _TOLD.get(node.op_type, ()) if place < len(node.input)]
    producers = [scope.producer(name) for name in names if name and not is_constant(scope, name)]
    return any(each is None or not has_chain(scope, each, open_lengths=True) for each in producers)


def lengths_given(scope: Scope, node: NodeProto, type_of: TypeOf | None = None) -> np.ndarray | None:
    """Return what a Shape or Size gives; None for other operators, and where a length is open.

    ``type_of`` tells the types of names while those of the scope are not known yet.
    """
    if node.op_type not in _MEASURING:
        return None
    known = (type_of or scope.type_of)(node.input[0]) if node.input else None
    lengths = None if known is None else known.lengths
    if lengths is None:
        return None
    start, end = attributes.integer(node, "start", 0), attributes.integer(node, "end", len(lengths))
    return np.array(lengths[start:end] if node.op_type == "Shape" else np.prod(lengths), np.int64)


def _picked_lengths(scope: Scope, node: NodeProto, type_of: TypeOf | None = None) -> np.ndarray | None:
    """Return the lengths that a Gather or Slice takes of a Shape; None where one is open, and for all else.

    Exporters read a length by itself, whatever others are open: channels that are halved, in a batch of any number.
    """
    read = _measured_before(scope, node) if node.op_type in _PICKING else []
    if not read:
        return None
    shape, *passed = read
    known = (type_of or scope.type_of)(shape.input[0])
    given = [scope.constant(name) for name in node.input[1:]]
    if known is None or known.shape is None or not given or any(each is None for each in given):
        return None
    places = np.arange(len(known.shape))[
        attributes.integer(shape, "start", 0) : attributes.integer(shape, "end", len(known.shape))
    ]
    bounds = [np.asarray(each).reshape(-1) for each in given]
    try:
        if node.op_type == "Gather":
            picked = places[np.asarray(given[0])]
        else:
            picked = places[slice(*(int(bounds[place][0]) for place in (0, 1, 3) if place < len(bounds)))]
    except (IndexError, ValueError):
        return None
    lengths = [known.shape[int(place)] for place in picked.reshape(-1)]
    if not all(isinstance(each, int) for each in lengths):
        return None
    result = np.array(lengths, np.int64).reshape(picked.shape)
    for each in passed:
        if each.op_type == "Cast":
            result = result.astype(helper.tensor_dtype_to_np_dtype(attributes.integer(each, "to", TensorProto.INT64)))
    return result if result.dtype.kind in "biuf" else None


def _measured_before(scope: Scope, node: NodeProto) -> list[NodeProto]:
    """Return the Shape of which a node takes lengths, and what passes them on to it; nothing where it takes others."""
    found: list[NodeProto] = []
    name = node.input[0] if node.input else ""
    while (producer := scope.own_producer(name)) is not None and not normal_domain(producer.domain):
        found.insert(0, producer)
        if producer.op_type == "Shape":
            return found
        if producer.op_type not in _PASSING or len(found) > len(_PASSING):
            break
        name = producer.input[0]
    return []


def chain_of(
    scope: Scope, node: NodeProto, *, open_lengths: bool = False, type_of: TypeOf | None = None
) -> list[NodeProto] | None:
    """Return the nodes that compute what ``node`` gives from constants and lengths alone, itself the last of them.

    None where it depends on data, on constants that stay in the file, or on an open length unless ``open_lengths``.
    ``type_of`` is as in :func:`lengths_given`.
    """
    found = _computing(scope, node, open_lengths, type_of)
    return None if found is None else _in_order(scope, found, node)


def has_chain(scope: Scope, node: NodeProto, *, open_lengths: bool = False) -> bool:
    """Whether there is a :func:`chain_of` a node; kept, so that many may ask."""
    for name in filter(None, node.output):
        if (name, open_lengths) not in scope.chained:
            scope.chained[name, open_lengths] = _computing(scope, node, open_lengths, None) is not None
        return scope.chained[name, open_lengths]
    return False  # nobody could read it


def _computing(
    scope: Scope, node: NodeProto, open_lengths: bool, type_of: TypeOf | None
) -> dict[int, NodeProto] | None:
    """Return the nodes of a :func:`chain_of` by their identity, in any order."""
    if is_of_data(scope, node):
        return None
    found: dict[int, NodeProto] = {}
    picked_from: dict[int, NodeProto] = {}
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if id(each) in found:
            continue
        if len(found) == LONGEST_CHAIN:
            return None
        found[id(each)] = each
        is_measuring = each.op_type in _MEASURING
        if is_measuring and (open_lengths or lengths_given(scope, each, type_of) is not None):
            continue
        if _picked_lengths(scope, each, type_of) is not None:
            picked_from |= {id(one): one for one in _measured_before(scope, each)}
            continue
        for name in filter(None, _values_read(each)):
            computer = _own_computer(scope, name)
            if computer is not None and not (is_measuring and is_of_data(scope, computer)):
                waiting.append(computer)
            elif is_measuring and (computer is not None or scope.constant(name) is None):
                return None  # what others read is no data: that was asked of them all
    return found | picked_from


def is_of_data(scope: Scope, node: NodeProto) -> bool:
    """Whether data decide what a node gives, whatever lengths are known.

    It is kept of every node on the way, so that asking it of all nodes looks at each once, and not at all before it.
    """
    known, begun, waiting = scope.of_data, set[int](), [node]
    decided = next((known[name] for name in node.output if name in known), None)
    if decided is not None:
        return decided
    while waiting:
        each = waiting[-1]
        read = _decided_by(each)
        computed = {name: one for name in read if (one := _own_computer(scope, name)) is not None}
        if id(each) not in begun and not any(known.get(name) for name in computed):
            begun.add(id(each))
            ahead = [one for name, one in computed.items() if name not in known and id(one) not in begun]
            if ahead:
                waiting += ahead
                continue
        waiting.pop()
        decided = not _is_told(each) or any(known.get(name) for name in computed)
        decided = decided or any(scope.constant(name) is None for name in read if name not in computed)
        known.update(dict.fromkeys(filter(None, each.output), decided))
    return bool(decided)


def _own_computer(scope: Scope, name: str) -> NodeProto | None:
    """Return the node of this very scope that computes a value; None where it is written, or comes from outside."""
    return None if is_given_by_node(scope, name) else scope.own_producer(name)


def _is_told(node: NodeProto) -> bool:
    """Whether a node can be worked out once what it reads is."""
    is_known = normal_domain(node.domain) == "" and node.op_type in COMPUTED and not any(bodies_of(node))
    return is_known and not any(one.ref_attr_name for one in node.attribute)


def _decided_by(node: NodeProto) -> list[str]:
    """Return the inputs whose values decide what a node gives: lengths are no values."""
    return [] if node.op_type in _MEASURING or not _is_told(node) else list(filter(None, _values_read(node)))


def _values_read(node: NodeProto) -> list[str]:
    """Return the inputs of whose values a node makes what it gives: a CastLike reads the type alone of its second."""
    return list(node.input[:1] if node.op_type == "CastLike" else node.input)


def _likened(scope: Scope, node: NodeProto, type_of: TypeOf | None) -> dict[str, np.ndarray | None]:
    """Return something of the type of what a CastLike makes its numbers like; nothing for other operators."""
    if node.op_type != "CastLike":
        return {}
    known = (type_of or scope.type_of)(node.input[1]) if len(node.input) > 1 else None
    if known is None:
        raise ValueError("The type that a CastLike gives is not known")
    return {node.input[1]: np.zeros(1, helper.tensor_dtype_to_np_dtype(known.elem_type))}


def is_worked_out(scope: Scope, node: NodeProto) -> bool:
    """Whether a node inside computes with lengths and constants alone, and does not measure by itself."""
    is_result = any(scope.is_output(name) for name in node.output if name)
    return not is_result and node.op_type not in _MEASURING and has_chain(scope, node, open_lengths=True)


def is_of_constants(scope: Scope, name: str) -> bool:
    """Whether a value is a constant, or computed from constants and known lengths alone."""
    node = scope.own_producer(name)
    return is_constant(scope, name) or (node is not None and has_chain(scope, node))


def worked_out(scope: Scope, name: str, type_of: TypeOf | None = None) -> np.ndarray | None:
    """Return the value of a constant, or of what is computed from constants and lengths alone; None of all else.

    ``type_of`` is as in :func:`lengths_given`.
    """
    written = scope.constant(name)
    producer = scope.own_producer(name) if written is None else None
    chain = None if producer is None else chain_of(scope, producer, type_of=type_of)
    if chain is None:
        return written
    try:
        return values_of(scope, chain, type_of)[name]
    except ValueError:
        return None


def is_worked_out_of_open(scope: Scope, name: str) -> bool:
    """Whether floats are computed from lengths and constants alone, and a length of them is left open."""
    known = scope.type_of(name)
    is_float = known is not None and known.elem_type in _FLOATS
    producer = scope.own_producer(name) if is_float and scope.constant(name) is None else None
    is_told = producer is not None and has_chain(scope, producer, open_lengths=True)
    return is_told and worked_out(scope, name) is None


def _pads_zeros(scope: Scope, node: NodeProto) -> bool:
    """Whether a Pad of zeros adds zeros."""
    if attributes.text(node, "mode", "constant") != "constant":
        return True
    if len(node.input) > 2 and node.input[2]:
        told = scope.constant(node.input[2])
        return told is not None and not told.any()
    says = attributes.find(node, "value")
    return says is None or not says.f


def holds_zeros(scope: Scope, name: str) -> bool:
    """Whether zeros alone are read, as states that a layer starts from are, whatever their lengths."""
    value = worked_out(scope, name)
    if value is not None:
        return not value.any()
    node = scope.own_producer(name)
    if node is None or normal_domain(node.domain):
        return False
    if node.op_type == "ConstantOfShape":
        filling = attributes.find(node, "value")
        return filling is None or not numpy_helper.to_array(filling.t).any()
    if node.op_type == "Pad":
        return _pads_zeros(scope, node) and holds_zeros(scope, node.input[0])
    if node.op_type == "Concat":
        return all(holds_zeros(scope, each) for each in node.input)
    return node.op_type in LAYING_OUT | COPYING | PICKING_OUT and holds_zeros(scope, node.input[0])


def values_of(scope: Scope, chain: list[NodeProto], type_of: TypeOf | None = None) -> dict[str, np.ndarray]:
    """Return what the nodes of a chain (:func:`chain_of`) give, by name.

    ``type_of`` is as in :func:`lengths_given`.

    Raises:
        ValueError: One of them gives very much, or can't be run.
    """
    values: dict[str, np.ndarray] = {}
    for node in chain:
        lengths = lengths_given(scope, node, type_of)
        if lengths is None:
            lengths = _picked_lengths(scope, node, type_of)
        if lengths is None:
            read = filter(None, _values_read(node))
            given = {name: values[name] if name in values else scope.constant(name) for name in read}
            given = _likened(scope, node, type_of) | given
            if any(value is None for value in given.values()):
                if node.op_type not in (*_MEASURING, *_PASSING):
                    raise ValueError(f"What {node.op_type} reads is not known")
                continue  # of which the lengths are picked that are known
            require_room(node, [given.get(name) for name in node.input])
            values |= evaluated(node, given, scope.opset)
        else:
            values[node.output[0]] = lengths
    return values


def _in_order(scope: Scope, found: dict[int, NodeProto], last: NodeProto) -> list[NodeProto]:
    """Return the nodes, each behind those that it reads."""
    ordered: dict[int, NodeProto] = {}
    waiting = [last]
    while waiting:
        node = waiting[-1]
        before = [scope.own_producer(name) for name in node.input if name]
        missing = [each for each in before if each is not None and id(each) in found and id(each) not in ordered]
        if missing:
            waiting += missing
        else:
            ordered[id(waiting.pop())] = node
    return list(ordered.values())


def gives_constant(scope: Scope, node: NodeProto) -> bool:
    """Whether a result of the main graph depends on no data, on lengths and constants alone."""
    is_result = scope.parent is None and any(scope.is_output(name) for name in node.output if name)
    return is_result and (node.op_type == "Constant" or has_chain(scope, node, open_lengths=True))


def is_read_by_data(scope: Scope, node: NodeProto, *, open_lengths: bool = False) -> bool:
    """Whether what ``node`` gives is an output, or goes into something that depends on data; as in :func:`chain_of`.

    What nothing reads counts as well, since importers convert it all the same.
    """
    return any(
        scope.is_output(name)
        or not scope.is_used(name)
        or not all(has_chain(scope, each, open_lengths=open_lengths) for each in scope.consumers(name))
        for name in filter(None, node.output)
    )


def readers_behind(scope: Scope, node: NodeProto, most: int | None = None) -> Iterator[tuple[NodeProto, str]]:
    """Yield what reads the results of a node, and of what is computed of these without data, and the name it reads.

    No more than ``most`` names are looked at, where that is given.
    """
    seen, waiting = set[str](), list(node.output)
    while waiting and (most is None or len(seen) < most):
        name = waiting.pop()
        if not name or name in seen:
            continue
        seen.add(name)
        for reader in scope.consumers(name):
            yield reader, name
            if not is_of_data(scope, reader):
                waiting += reader.output


def leaves_of(scope: Scope, chain: list[NodeProto]) -> tuple[list[str], list[str]]:
    """Return the constants that a chain reads, and the tensors of which it reads the lengths alone."""
    given = {name for node in chain for name in node.output}
    read = dict.fromkeys(name for node in chain for name in node.input if name and name not in given)
    constants = [name for name in read if scope.constant(name) is not None]
    return constants, [name for name in read if name not in constants]
