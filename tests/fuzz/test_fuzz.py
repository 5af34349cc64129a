"""Mutated models, and every file that was ever answered badly, get a clean answer from every command."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import padfix
from padfix.errors import PadfixError
from tests.fuzz.__main__ import COMMANDS
from tests.fuzz.judge import ask
from tests.fuzz.mutation import mutate, mutate_bytes
from tests.fuzz.seeds import seeds

FOLDER = Path(__file__).parents[1] / "corpus"
CORPUS = sorted(FOLDER.glob("*.onnx"))
TENSORFLOW = sorted(FOLDER.glob("*.pb*"))
CHECK, NO_VERIFY = COMMANDS[0], COMMANDS[1]


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: "-".join(command[:2]))
def test_what_was_once_answered_badly(path: Path, command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(path.read_bytes())
    assert ask(command, tmp_path).complaint() is None
    assert (tmp_path / "model.onnx").read_bytes() == path.read_bytes()


def _complaint(data: bytes, folder: Path, commands: tuple[tuple[str, ...], ...]) -> str | None:
    (folder / "model.onnx").write_bytes(data)
    for command in commands:
        answer = ask(command, folder)
        complaint = answer.complaint()
        if complaint is None and (folder / "model.onnx").read_bytes() != data:
            complaint = "the input was changed"
        if complaint is not None:
            return f"{' '.join(command)}: {complaint}"
    return None


def test_mutated_models_are_answered(tmp_path_factory: pytest.TempPathFactory, slow: bool) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    commands = COMMANDS if slow else (CHECK, NO_VERIFY)

    @settings(max_examples=2000 if slow else 25)
    @given(st.sampled_from(seeds()), st.randoms(use_true_random=False))
    def answered(seed: bytes, random: Random) -> None:
        assert _complaint(mutate(seed, random), folder, commands) is None

    answered()


def test_any_bytes_are_answered(tmp_path_factory: pytest.TempPathFactory, slow: bool) -> None:
    folder = tmp_path_factory.mktemp("fuzz")

    @settings(max_examples=2000 if slow else 15)
    @given(st.one_of(st.binary(max_size=200), st.builds(mutate_bytes, st.sampled_from(seeds()), st.randoms())))
    def answered(data: bytes) -> None:
        assert _complaint(data, folder, (CHECK, NO_VERIFY)) is None

    answered()


def test_a_model_cut_anywhere_is_refused(tmp_path: Path, slow: bool) -> None:
    whole = min((seed for seed in seeds() if len(seed) > 300), key=len)
    for length in range(0, len(whole), 1 if slow else max(1, len(whole) // 25)):
        (tmp_path / "model.onnx").write_bytes(whole[:length])
        answer = ask(CHECK, tmp_path)
        assert answer.complaint() is None
        # Cut between two fields, it is still a message; but never one that says more than it did.
        assert answer.code == 2 or b"opset" not in whole[length:]


@pytest.mark.tensorflow
@pytest.mark.parametrize("path", TENSORFLOW, ids=lambda path: path.stem)
def test_what_tensorflow_once_stumbled_over(path: Path, tmp_path: Path) -> None:
    for call in (padfix.inspect, lambda source: padfix.convert(source, tmp_path / "out.onnx", verify=False)):
        with pytest.raises(PadfixError) as caught:
            call(path)
        assert caught.value.exit_code == 2
    assert not list(tmp_path.iterdir())
