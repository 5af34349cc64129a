"""Writing fails or is cut short at every step: the output is the old one or the new one, whole; the input stays."""

from __future__ import annotations

import errno
import multiprocessing
import os
import pathlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import padfix
from padfix.errors import OutputError, PadfixError
from padfix.files import atomic_placing, writer
from tests.support.warm_commands import WarmCommands

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="steps are cut short in a fork")

STEPS = ("mkdir", "replace", "fsync", "link", "unlink", "rmdir")


def model(factor: float) -> ModelProto:
    weights = numpy_helper.from_array(np.full((2, 2, 30, 30), factor, np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], auto_pad="SAME_UPPER")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 8, 8])],
        [weights],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(params=[False, True], ids=["one-file", "with-data"])
def external(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "source.onnx"
    path.parent.mkdir()
    path.write_bytes(model(2).SerializeToString())
    return path


@pytest.fixture
def output(tmp_path: Path, external: bool) -> Path:
    """An output of before, whose weights are 1; the source's are 2."""
    old = tmp_path / "old.onnx"
    old.write_bytes(model(1).SerializeToString())
    (tmp_path / "out").mkdir()
    path = tmp_path / "out" / "result.onnx"
    padfix.convert(old, path, verify=False, external_data=external)
    return path


def factor_of(path: Path) -> float:
    """Return the weights' one value, after making sure that the model is whole and loads with its own data."""
    loaded = onnx.load(path)
    onnx.checker.check_model(loaded)
    weights = numpy_helper.to_array(loaded.graph.initializer[0])
    assert weights.shape == (2, 2, 30, 30)
    assert (weights == weights.flat[0]).all()
    assert not [attribute for attribute in loaded.graph.node[0].attribute if attribute.name == "auto_pad"]
    return float(weights.flat[0])


def hook(monkeypatch: pytest.MonkeyPatch, at: int, act: Callable[[], None]) -> list[str]:
    """Let ``act`` happen before the step number ``at``; return the list that the steps are written to."""
    steps: list[str] = []

    def wrap(owner: object, name: str) -> None:
        original = getattr(owner, name)

        def step(*arguments: object, **more: object) -> object:
            steps.append(name)
            if len(steps) == at:
                act()
            return original(*arguments, **more)

        monkeypatch.setattr(owner, name, step)

    for name in STEPS:
        wrap(os, name)
    wrap(writer, "write_pieces")
    wrap(writer, "write_data")
    wrap(writer, "_copy_bytes")
    return steps


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_step_that_fails(
    number: int, source: Path, output: Path, external: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = source.read_bytes()
    before = visible(output.parent)

    def fail() -> None:
        raise OSError(number, os.strerror(number))

    for at in range(1, 100):
        with monkeypatch.context() as patched:
            steps = hook(patched, at, fail)
            try:
                padfix.convert(source, output, verify=False, external_data=external)
                outcome = "written"
            except OutputError as error:
                outcome = "refused"
                assert os.strerror(number) in error.message
                assert error.hint
        assert source.read_bytes() == content
        found = factor_of(output)
        assert found == 2 if outcome == "written" else found in (1, 2)
        for leftover in output.parent.glob(".*"):
            assert ".padfix-" in leftover.name and steps[at - 1] in ("unlink", "rmdir", "mkdir"), steps
            atomic_placing.shutil.rmtree(leftover)
        if len(steps) < at:
            break
        for extra in set(visible(output.parent)) - set(before):
            (output.parent / extra).unlink()
        if found == 2:
            reset(output, external)
    else:
        raise AssertionError("it never came to an end")
    assert at > 5


def reset(output: Path, external: bool) -> None:
    for path in output.parent.iterdir():
        path.unlink()
    padfix.convert(output.parent.parent / "old.onnx", output, verify=False, external_data=external)


def in_a_fork(work: Callable[[], None]) -> int:
    process = os.fork()
    if process == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def test_a_kill_before_any_step(source: Path, output: Path, external: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    content = source.read_bytes()
    seen = set()
    for at in range(1, 100):

        def work(at: int = at) -> None:
            hook(monkeypatch, at, lambda: os.kill(os.getpid(), signal.SIGKILL))
            padfix.convert(source, output, verify=False, external_data=external)

        code = in_a_fork(work)
        assert code in (0, -signal.SIGKILL)
        assert source.read_bytes() == content
        seen.add(factor_of(output))
        # The next conversion clears away what the dead process left hidden.
        padfix.convert(source, output, verify=False, external_data=external)
        assert factor_of(output) == 2
        assert not list(output.parent.glob(".*"))
        if code == 0:
            break
        reset(output, external)
    else:
        raise AssertionError("it never came to an end")
    assert seen == {1.0, 2.0}


@pytest.fixture(scope="module")
def commands() -> Iterator[WarmCommands]:
    commands = WarmCommands(("padfix.api", "padfix.cli.convert", "padfix.rewrite.engine", "padfix.rules.registry"))
    yield commands
    commands.close()


@pytest.mark.parametrize("name", [pytest.param("SIGINT", marks=pytest.mark.slow), "SIGTERM"])
def test_a_signal_before_any_step(
    name: str, source: Path, output: Path, external: bool, commands: WarmCommands, tmp_path: Path
) -> None:
    """The command line as a whole: nothing stays behind, and the exit code tells."""
    content = source.read_bytes()
    script = """
import os, signal, sys
at, number = int(sys.argv[1]), int(sys.argv[2])
signal.signal(signal.SIGINT, signal.default_int_handler)  # as in the foreground
import padfix.files.writer as writer
steps = []
def wrap(owner, name):
    original = getattr(owner, name)
    def step(*arguments, **more):
        steps.append(name)
        if len(steps) == at:
            os.kill(os.getpid(), number)
        return original(*arguments, **more)
    setattr(owner, name, step)
for each in ("mkdir", "replace", "fsync", "link"):
    wrap(os, each)
for each in ("write_pieces", "write_data", "_copy_bytes"):
    wrap(writer, each)
from padfix.cli import main
main(sys.argv[3:])
"""
    number = getattr(signal, name)
    for at in range(1, 100):
        more = ["--external-data"] if external else []
        arguments = ["convert", str(source), "-o", str(output), "--no-verify", "--quiet", *more]
        done = commands.run(["-c", script, str(at), str(int(number)), *arguments], tmp_path)
        assert done.returncode in (0, 128 + number), done.stderr
        assert source.read_bytes() == content
        found = factor_of(output)
        assert visible(output.parent) == ["result.onnx", *(["result.onnx.data"] if external else [])]
        assert not list(output.parent.glob(".*"))
        if done.returncode:
            word = "interrupted" if name == "SIGINT" else "stopped (SIGTERM)"
            fate = "nothing was written" if found == 1 else "the output had been written"
            assert done.stderr == f"padfix: {word}; {fate}\n"
        else:
            assert found == 2
            break
        if found == 2:
            reset(output, external)
    else:
        raise AssertionError("it never came to an end")
    assert at > 4


def _convert_often(source: str, output: str, external: bool, count: int) -> None:
    for _ in range(count):
        padfix.convert(source, output, verify=False, external_data=external)


def test_two_conversions_to_one_output(source: Path, output: Path, external: bool, slow: bool) -> None:
    context = multiprocessing.get_context("spawn")
    count = 200 if slow else 20
    sources = [source, output.parent.parent / "old.onnx"]
    processes = [
        context.Process(target=_convert_often, args=(str(path), str(output), external, count)) for path in sources
    ]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes):
        for process in processes:
            process.join(0.01)
    assert [process.exitcode for process in processes] == [0, 0]
    assert factor_of(output) in (1, 2)
    assert visible(output.parent) == ["result.onnx", *(["result.onnx.data"] if external else [])]
    assert not list(output.parent.glob(".*"))


def test_scratch_of_the_living_and_of_strangers_stays(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "result.onnx"
    stays = [
        atomic_placing.scratch_name("result.onnx", "a"),
        ".result.onnx.padfix-999999999-feedbeef-a",
        ".result.onnx.mine",
    ]
    for name in stays:
        (tmp_path / name).mkdir()
    dead = atomic_placing.scratch_name("result.onnx", "b").replace(f"-{os.getpid()}-", "-999999999-")
    (tmp_path / dead).mkdir()
    (tmp_path / dead / "half").write_bytes(b"x")
    padfix.convert(source, output, verify=False)
    assert sorted(path.name for path in tmp_path.glob(".*")) == sorted(stays)


def test_the_input_as_the_output_by_any_name(source: Path, tmp_path: Path) -> None:
    content = source.read_bytes()
    link, hard = tmp_path / "link.onnx", tmp_path / "hard.onnx"
    link.symlink_to(source)
    os.link(source, hard)
    folder = tmp_path / "folder"
    folder.symlink_to(source.parent)
    for path in (source, link, hard, folder / "source.onnx", source.parent / ".." / "in" / "source.onnx"):
        with pytest.raises(PadfixError, match="part of the source") as caught:
            padfix.convert(source, path)
        assert caught.value.hint
        with pytest.raises(PadfixError, match="part of the source"):
            padfix.convert(path, source)
    assert source.read_bytes() == content
    assert pathlib.Path(link).is_symlink()


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from padfix.files import atomic_text

    file = tmp_path / "report.json"
    atomic_text.write_text(file, "old")

    def fail(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        atomic_text.write_text(file, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
    assert file.read_text() == "old"


def test_a_report_may_go_to_a_device(tmp_path: Path) -> None:
    from padfix.files import atomic_text

    atomic_text.write_text(Path(os.devnull), "text")
    link = tmp_path / "link"
    link.symlink_to("real")
    atomic_text.write_text(link, "text")
    assert link.is_symlink()
    assert (tmp_path / "real").read_text() == "text"
