"""What operators of classical machine learning (ai.onnx.ml) are in those of ONNX: arithmetic, products and choices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import NodeProto, TensorProto

from padfix.graph import attributes
from padfix.graph.lengths import filled
from padfix.operators.refusal import Refusal
from padfix.rules.base import Rewrite, Site, Trial, TrialInput
from padfix.rules.build.elementary_forms import reduced
from padfix.rules.build.forms import Form

if TYPE_CHECKING:
    from padfix.graph.fragment_builder import FragmentBuilder

_NUMBERS: Mapping[int, type[np.generic]] = {
    TensorProto.FLOAT: np.float32,
    TensorProto.INT64: np.int64,
    TensorProto.INT32: np.int32,
}
"""The types of data that the forms compute with: what double precision holds would be rounded before its time."""

_COMPARING_FLOATS_SINCE = 11

_MOST_KEYS = 256
"""Choices that are written one after the other."""

_ROWS = 3
"""Rows of a trial where their number is open."""

_POSTS = ("NONE", "SOFTMAX", "LOGISTIC")


def classical_forms(site: Site) -> Iterator[Form]:
    """Yield an operator of classical machine learning in operators of ONNX."""
    why_not, write = _CLASSICAL_FORMS[site.node.op_type]

    def written() -> Rewrite:
        builder = site.builder()
        data = builder.input(site.input_name(0))
        results = write(site, builder, data)
        for name, value in zip(site.node.output, results if isinstance(results, tuple) else (results,), strict=False):
            if name and value is not None:
                builder.output(name, value)
        return Rewrite(builder.build(), (_trial(site),))

    known = site.input_type(0)
    reason = None
    if known is None or known.elem_type not in _NUMBERS or known.rank not in (1, 2):
        reason = Refusal("its data are not known to be a list or matrix of floats or integers in single precision")
    # Other parts are for the rules about these to judge.
    yield Form("operators of ONNX", (), written, reason or why_not(site), opset=_COMPARING_FLOATS_SINCE)


def _floats(site: Site, name: str) -> np.ndarray:
    """Return an attribute that lists floats."""
    found = attributes.find(site.node, name)
    return np.array([] if found is None else found.floats, np.float32)


def _integers(node: NodeProto, name: str) -> np.ndarray:
    return np.array(attributes.integers(node, name) or [], np.int64)


def _number(site: Site, name: str, usual: float) -> float:
    found = attributes.find(site.node, name)
    return usual if found is None else float(found.f)


def _columns(site: Site) -> int | None:
    known = site.input_type(0)
    length = known.shape[-1] if known is not None and known.shape else None
    return length if isinstance(length, int) else None


def _in_floats(site: Site, builder: FragmentBuilder, data: Any) -> Any:
    return data if site.elem_type(0) == TensorProto.FLOAT else builder.op("Cast", [data], {"to": TensorProto.FLOAT})


def _always(_: Site) -> Refusal | None:
    return None


def _trial(site: Site) -> Trial:
    """Return data among which there is every number that the node looks for."""
    known, random = site.input_type(0), np.random.default_rng(0)
    shape = () if known is None else filled(known.shape, _ROWS)
    dtype = _NUMBERS[site.elem_type(0)]
    data = (random.standard_normal(shape) * 3).astype(dtype)
    sought = [each for name in _SOUGHT for each in _sought(site, name)]
    if sought:
        data = np.where(random.random(shape) < 0.7, random.choice(np.array(sought), shape), data).astype(dtype)
    told = site.constant(0)
    trial = {site.input_name(0): TrialInput.of(data, constant=False) if told is None else TrialInput.of(told)}
    for place, name in enumerate(site.node.input[1:], 1):
        value, listed = site.constant(place), site.input_type(place)
        if value is not None:
            trial[name] = TrialInput.of(value)
        elif listed is not None and listed.shape is not None:
            within = random.integers(0, shape[-1], filled(listed.shape, _ROWS))
            trial[name] = TrialInput.of(within.astype(np.int64), constant=False)
    return trial


_SOUGHT = ("keys_int64s", "keys_floats", "cats_int64s", "replaced_value_float", "replaced_value_int64")


def _sought(site: Site, name: str) -> list[float]:
    found = attributes.find(site.node, name)
    if found is None or (name == "replaced_value_float") == (site.elem_type(0) != TensorProto.FLOAT):
        return [*found.ints] if found is not None and name == "cats_int64s" else []
    return [float(each) for each in (*found.floats, *found.ints)] or [found.f if name.endswith("float") else found.i]


def _scaled(site: Site, builder: FragmentBuilder, data: Any) -> Any:
    offset, scale = (builder.constant(_floats(site, name), name) for name in ("offset", "scale"))
    return builder.op("Mul", [builder.op("Sub", [_in_floats(site, builder, data), offset]), scale])


def _why_not_scaled(site: Site) -> Refusal | None:
    lengths = {_floats(site, name).size for name in ("offset", "scale")}
    return None if lengths in ({1}, {_columns(site)}) else Refusal("it has no offset and scale for each column")


def _normalized(site: Site, builder: FragmentBuilder, data: Any) -> Any:
    """Return rows through their largest element, their sum of sizes or their length; as they are where that is 0."""
    value, known = _in_floats(site, builder, data), site.input_type(0)
    rank = 2 if known is None or known.rank is None else known.rank
    norm = attributes.text(site.node, "norm", "MAX") or "MAX"
    divisor = reduced(builder, {"L1": "ReduceL1", "L2": "ReduceL2"}.get(norm, "ReduceMax"), value, [rank - 1])
    zero, one = (builder.constant(np.array(each, np.float32), "number") for each in (0, 1))
    return builder.op("Div", [value, builder.op("Where", [builder.op("Equal", [divisor, zero]), one, divisor])])


def _binary(site: Site, builder: FragmentBuilder, data: Any) -> Any:
    threshold = builder.constant(np.array(_number(site, "threshold", 0), np.float32), "threshold")
    return builder.op("Cast", [builder.op("Greater", [data, threshold])], {"to": TensorProto.FLOAT})


def _why_not_binary(site: Site) -> Refusal | None:
    return None if site.elem_type(0) == TensorProto.FLOAT else Refusal("its data are no floats")


def _imputed(site: Site, builder: FragmentBuilder, data: Any) -> Any:
    is_float = site.elem_type(0) == TensorProto.FLOAT
    values = _floats(site, "imputed_value_floats") if is_float else _integers(site.node, "imputed_value_int64s")
    replaced = _number(site, "replaced_value_float", 0) if is_float else 0
    if np.isnan(replaced):
        is_missing = builder.op("IsNaN", [data])
    else:
        told = replaced if is_float else attributes.integer(site.node, "replaced_value_int64", 0)
        is_missing = builder.op("Equal", [data, builder.constant(np.array(told, values.dtype), "replaced")])
    return builder.op("Where", [is_missing, builder.constant(values, "imputed"), data])


def _why_not_imputed(site: Site) -> Refusal | None:
    is_float = site.elem_type(0) == TensorProto.FLOAT
    name = "imputed_value_floats" if is_float else "imputed_value_int64s"
    count = (_floats(site, name) if is_float else _integers(site.node, name)).size
    if site.elem_type(0) == TensorProto.INT32 or count not in (1, _columns(site)):
        return Refusal("it has no value for each column")
    return None


def _encoded(site: Site, builder: FragmentBuilder, data: Any) -> Any:
    """Return the value of the first key that is equal, by one choice for each key, the last one first."""
    keys, values, usual = _labels(site)
    found = builder.constant(np.array(usual, values.dtype), "default")
    for key, value in reversed(list(zip(keys, values, strict=True))):
        is_key = builder.op("Equal", [data, builder.constant(np.array(key, keys.dtype), "key")])
        found = builder.op("Where", [is_key, builder.constant(np.array(value, values.dtype), "value"), found])
    return found


def _labels(site: Site) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the keys and values of a LabelEncoder, and what it gives elsewhere."""
    is_float = site.elem_type(0) == TensorProto.FLOAT
    keys = _floats(site, "keys_floats") if is_float else _integers(site.node, "keys_int64s")
    if attributes.find(site.node, "values_floats") is not None:
        return keys, _floats(site, "values_floats"), _number(site, "default_float", -0.0)
    return keys, _integers(site.node, "values_int64s"), attributes.integer(site.node, "default_int64", -1) or 0


def _why_not_encoded(site: Site) -> Refusal | None:
    keys, values, _ = _labels(site)
    if not keys.size or keys.size != values.size or site.elem_type(0) == TensorProto.INT32:
        return Refusal("its keys and values are no lists of numbers")
    if keys.size > _MOST_KEYS or np.isnan(keys).any():
        return Refusal(f"one of its keys is no number, or there are more than {_MOST_KEYS}")
    return None


def _one_hot(site: Site, builder: FragmentBuilder, data: Any) -> Any:
    known = site.input_type(0)
    whole = data if site.elem_type(0) == TensorProto.INT64 else builder.op("Cast", [data], {"to": TensorProto.INT64})
    rank = 1 if known is None or known.rank is None else known.rank
    categories = builder.constant(_integers(site.node, "cats_int64s"), "categories")
    is_it = builder.op("Equal", [builder.unsqueezed(whole, rank), categories])
    return builder.op("Cast", [is_it], {"to": TensorProto.FLOAT})


def _why_not_one_hot(site: Site) -> Refusal | None:
    return None if _integers(site.node, "cats_int64s").size else Refusal("its categories are no numbers")


def _picked(site: Site, builder: FragmentBuilder, data: Any) -> Any:
    """Return the elements of each row, a list being one row; places are given in whatever shape, none from the end."""
    places, known, listed = site.constant(1), site.input_type(0), site.input_type(1)
    rows = builder.unsqueezed(data, 0) if known is not None and known.rank == 1 else data
    if places is not None:
        taken = builder.integers(places.reshape(-1).tolist())
    else:
        taken = builder.input(site.input_name(1))
        taken = taken if listed is not None and listed.rank == 1 else builder.reshaped(taken, [-1])
    return builder.op("Gather", [rows, taken], {"axis": 1})


def _why_not_picked(site: Site) -> Refusal | None:
    places, columns = site.constant(1), _columns(site)
    if columns is None or (places is not None and (not places.size or (places < 0).any() or (places >= columns).any())):
        return Refusal("its places are not known to be within a row")
    return None


def _regressed(site: Site, builder: FragmentBuilder, data: Any) -> Any:
    return _posted(site, builder, _combined(site, builder, data, attributes.integer(site.node, "targets", 1) or 1))


def _combined(site: Site, builder: FragmentBuilder, data: Any, count: int) -> Any:
    """Return so many linear combinations of each row, a list being one row."""
    known, rows = site.input_type(0), _in_floats(site, builder, data)
    if known is not None and known.rank == 1:
        rows = builder.unsqueezed(rows, 0)
    weights = _floats(site, "coefficients").reshape(count, -1).T
    result = builder.op("MatMul", [rows, builder.constant(np.ascontiguousarray(weights), "coefficients")])
    intercepts = _floats(site, "intercepts")
    return builder.op("Add", [result, builder.constant(intercepts, "intercepts")]) if intercepts.size else result


def _posted(site: Site, builder: FragmentBuilder, scores: Any) -> Any:
    match attributes.text(site.node, "post_transform", "NONE"):
        case "SOFTMAX":
            return builder.op("Softmax", [scores], {"axis": 1})
        case "LOGISTIC":
            return builder.op("Sigmoid", [scores])
    return scores


def _why_not_linear(site: Site, count: int) -> Refusal | None:
    columns, weights = _columns(site), _floats(site, "coefficients").size
    if columns is None or weights != count * columns or _floats(site, "intercepts").size not in (0, count):
        return Refusal("it has no coefficient for each column, or how many these are is not known")
    if attributes.text(site.node, "post_transform", "NONE") not in _POSTS:
        return Refusal("what it makes of its scores is neither a Softmax nor a Sigmoid")
    return None


def _why_not_regressed(site: Site) -> Refusal | None:
    return _why_not_linear(site, attributes.integer(site.node, "targets", 1) or 1)


def _classified(site: Site, builder: FragmentBuilder, data: Any) -> tuple[Any, Any]:
    """Return the label of the largest score, and what is made of the scores."""
    labels = _class_labels(site)
    scores = _combined(site, builder, data, len(labels))
    label = None
    if site.scope.is_used(site.node.output[0]):
        best = builder.op("ArgMax", [scores], {"axis": 1, "keepdims": 0})
        listed = np.array(labels, np.int64)
        # QNN picks from integers of 32 bits alone, which labels nearly always are.
        is_short = bool((listed == listed.astype(np.int32)).all())
        listed = listed.astype(np.int32) if is_short else listed
        label = builder.op("Gather", [builder.constant(listed, "labels"), best], {"axis": 0})
        label = builder.op("Cast", [label], {"to": TensorProto.INT64}) if is_short else label
    return label, _posted(site, builder, scores)


def _class_labels(site: Site) -> Sequence[Any]:
    strings = attributes.find(site.node, "classlabels_strings")
    return list(strings.strings) if strings is not None else _integers(site.node, "classlabels_ints").tolist()


def _why_not_classified(site: Site) -> Refusal | None:
    labels = _class_labels(site)
    if len(labels) < 2:
        return Refusal("it has one class alone")
    if isinstance(labels[0], bytes) and site.scope.is_used(site.node.output[0]):
        return Refusal("its labels are strings")
    return _why_not_linear(site, len(labels))


_CLASSICAL_FORMS: Mapping[str, tuple[Callable[[Site], Refusal | None], Callable[[Site, FragmentBuilder, Any], Any]]] = {
    "ArrayFeatureExtractor": (_why_not_picked, _picked),
    "Binarizer": (_why_not_binary, _binary),
    "Imputer": (_why_not_imputed, _imputed),
    "LabelEncoder": (_why_not_encoded, _encoded),
    "LinearClassifier": (_why_not_classified, _classified),
    "LinearRegressor": (_why_not_regressed, _regressed),
    "Normalizer": (_always, _normalized),
    "OneHotEncoder": (_why_not_one_hot, _one_hot),
    "Scaler": (_why_not_scaled, _scaled),
}

CLASSICAL_FORMS: Mapping[str, Callable[[Site], Iterator[Form]]] = dict.fromkeys(_CLASSICAL_FORMS, classical_forms)
"""By the type of an operator: what yields its forms."""
