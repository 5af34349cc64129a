"""A sample of the measurement of damaged and sound networks, of which ``tests/benchmarks/bench_mutants.py`` is all."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import padfix
from padfix.proof.executors import OnnxRuntimeExecutor
from tests.benchmarks.bench_mutants import convert, false_alarms, hunt, located, make
from tests.support.mutants import DAMAGES, mutants


def test_damages_of_every_kind_are_caught_and_located(tmp_path: Path) -> None:
    sound = convert(make("u_net", tmp_path), tmp_path)
    tried, caught, found = hunt(sound, tmp_path, 1, sound)
    assert set(tried) == set(DAMAGES)
    assert tried == caught == found


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "residual_float16",
        pytest.param("residual_qdq", marks=pytest.mark.slow),
        pytest.param("residual_half", marks=pytest.mark.slow),
        pytest.param("residual_deep", marks=pytest.mark.slow),
    ],
)
def test_sound_networks_are_equal_in_every_form(name: str, tmp_path: Path) -> None:
    source = make(name, tmp_path)
    pairs, wrong = false_alarms(source, convert(source, tmp_path), tmp_path)
    assert pairs == 8
    assert wrong == 0


@pytest.mark.slow
@pytest.mark.tensorflow
def test_a_network_is_equal_to_what_full_optimisation_saves_of_it(tmp_path: Path) -> None:
    """ONNX Runtime lays weights out in blocks, folds normalisations and moves factors from one weight to the next."""
    sound = convert(make("EfficientNetB0", tmp_path), tmp_path)
    saved = OnnxRuntimeExecutor(sound, optimised=False).save_optimised(tmp_path)
    for first, second in ((sound, saved), (saved, sound)):
        verdict = padfix.verify(first, second, locate=True)
        assert verdict.equivalent, verdict.why_not


def test_a_damage_is_located_from_the_unconverted_source(tmp_path: Path) -> None:
    """Names of inserted nodes are in the result only, pads are spelled otherwise, and legacy resizes are gone."""
    source = make("u_net", tmp_path)
    sound = convert(source, tmp_path)
    chosen = {mutant.kind: mutant for mutant in mutants(onnx.load(sound))}
    for kind in ("pad_moved", "nearest_mode_changed", "crop_off_by_one", "small_weight_sign"):
        onnx.save(chosen[kind].model, tmp_path / "damaged.onnx")
        verdict = padfix.verify(source, tmp_path / "damaged.onnx", locate=True)
        assert not verdict.equivalent
        assert located(verdict, chosen[kind].nodes), kind


@pytest.mark.tensorflow
def test_a_damage_is_located_from_a_tensorflow_source(tmp_path: Path, slow: bool) -> None:
    source = Path(__file__).parents[2] / "fixtures" / "quickstart" / "small_cnn.pb"
    sound = convert(source, tmp_path)
    chosen = {mutant.kind: mutant for mutant in mutants(onnx.load(sound))}
    assert {"pad_moved", "weight_sign"} <= set(chosen)
    for kind, mutant in list(chosen.items())[:: 1 if slow else 3]:
        onnx.save(mutant.model, tmp_path / "damaged.onnx")
        verdict = padfix.verify(source, tmp_path / "damaged.onnx", locate=True)
        assert not verdict.equivalent, kind
        assert located(verdict, mutant.nodes), kind
