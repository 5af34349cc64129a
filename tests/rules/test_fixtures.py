"""The fixtures: each is a model in ONNX's text format and a line about what padfix says of it.

``fixtures/<code>-<name>/<case>/`` holds ``before.onnxtxt`` and ``case.toml``: ``title``, either ``finding`` (the code
that check reports and convert rewrites), ``refusal`` (a pattern of the reason) or ``error`` (a pattern of what convert
says of a model without a meaning), ``issue``, a public thread about it if there is one, and ``target``, ``pads`` or
``opset``, what convert is told if it isn't the default. Beside them lies ``after.onnxtxt``, what convert makes of the
model; ``python -m tests.rules.renew_fixtures`` writes it.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

import padfix
from padfix.proof.spec_executor import SpecExecutor
from tests.rules.renew_fixtures import CASES, TOLD, load, text_of
from tests.support.padding_models import session

LENGTHS = ((7, 9), (8, 10), (9, 6))


def feeds_of(model: ModelProto, lengths: tuple[int, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return negative data as well as positive; symbolic axes get ``lengths`` in order of their names' appearance."""
    weights = {tensor.name for tensor in model.graph.initializer}
    symbols: dict[str, int] = {}
    feeds = {}
    for value in model.graph.input:
        if value.name in weights:
            continue
        shape = []
        for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
            if dimension.HasField("dim_value"):
                shape.append(dimension.dim_value)
            else:
                key = dimension.dim_param or f"{value.name}:{axis}"
                shape.append(symbols.setdefault(key, lengths[len(symbols) % len(lengths)]))
        elem_type = value.type.tensor_type.elem_type
        dtype = helper.tensor_dtype_to_np_dtype(elem_type)
        if elem_type == TensorProto.BOOL:
            feeds[value.name] = np.ones(shape, dtype)
        else:
            feeds[value.name] = ((rng.standard_normal(shape) - 2) * 10).astype(dtype)
    return feeds


def test_every_fixture_says_what_it_is_for() -> None:
    assert CASES
    for folder in CASES:
        case, model = load(folder)
        assert set(case) <= {"title", "finding", "refusal", "error", "issue", *TOLD}, folder
        assert case["title"] and case.get("issue", "https://").startswith("https://"), folder
        assert len({"finding", "refusal", "error"} & set(case)) == 1, folder
        assert (folder / "after.onnxtxt").exists() == ("finding" in case), folder
        assert model.graph.node, folder


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_fixture(folder: Path, tmp_path: Path) -> None:
    case, model = load(folder)
    source, result, again = (tmp_path / name for name in ("before.onnx", "after.onnx", "again.onnx"))
    onnx.save(model, source)
    code = folder.parent.name.partition("-")[0]
    told = {key: case[key] for key in TOLD if key in case}
    target = case.get("target", "onnx")
    found = {finding.rule for finding in padfix.check(source, target=target, select=[code]).findings}
    assert code in found or "opset" in told

    if "error" in case:
        with pytest.raises(padfix.SourceError, match=case["error"]):
            padfix.convert(source, result, **told, reference="spec")
        assert not result.exists()
        return
    if "refusal" in case:
        report = padfix.convert(source, result, **told, reference="spec", verify=False, partial=True)
        reasons = [refused.reason for refused in report.refusals]
        assert any(re.search(case["refusal"], reason) for reason in reasons), reasons
        return

    report = padfix.convert(source, result, **told, reference="spec")
    assert report.verdict is not None and report.verdict.equivalent
    assert code in {rewritten.finding.rule for rewritten in report.rewrites}
    assert not report.refusals
    if "pads" not in told:
        assert padfix.check(result, target=target).findings == []
    assert padfix.check(result, target=target, select=[code]).findings == []

    after = onnx.load(result)
    onnx.checker.check_model(after, full_check=True)
    assert text_of(after) == (folder / "after.onnxtxt").read_text(encoding="utf-8"), "see tests.rules.renew_fixtures"
    specification = SpecExecutor(model.SerializeToString())
    for seed, lengths in enumerate(LENGTHS):
        feeds = feeds_of(model, lengths, np.random.default_rng(seed))
        wanted = specification.run(feeds)
        for optimised in (False, True):
            names = [value.name for value in after.graph.output]
            given = dict(zip(names, session(after, optimised=optimised).run(names, feeds), strict=True))
            for name, array in wanted.items():
                assert given[name].shape == array.shape
                np.testing.assert_allclose(given[name], array, rtol=1e-4, atol=1e-4)

    padfix.convert(result, again, **told, reference="spec")
    assert again.read_bytes() == result.read_bytes()
