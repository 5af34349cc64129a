"""The sink: whole or not at all, never over the source, loadable while staged and after."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from padfix.errors import NotEquivalent, OutputError, SourceError
from padfix.files import wire_format, writer
from padfix.files.model import Model
from padfix.files.sink import stage
from padfix.files.skeleton import read_model
from padfix.files.tensors import iterate_tensors
from padfix.results import Verdict

EQUAL = Verdict(True, "spec")


def make_model(count: int = 2000) -> ModelProto:
    """Weights as initializer, in a Constant node, in the bodies of an If, as typed data, and small ones."""

    def body(name: str, factor: float) -> onnx.GraphProto:
        weights = numpy_helper.from_array(np.full(count, factor, np.float32), f"{name}_w")
        node = helper.make_node("Mul", ["sum", f"{name}_w"], [f"{name}_out"])
        output = helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, [count])
        return helper.make_graph([node], name, [], [output], [weights])

    value = np.arange(count, dtype=np.float32)
    nodes = [
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(value)),
        helper.make_node("Gather", ["w", "order"], ["gathered"]),
        helper.make_node("Add", ["gathered", "c"], ["partial"]),
        helper.make_node("Add", ["partial", "small"], ["sum"]),
        helper.make_node("If", ["flag"], ["out"], then_branch=body("then", 2), else_branch=body("else", 3)),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("flag", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [count])],
        [
            numpy_helper.from_array(value, "w"),
            helper.make_tensor("order", TensorProto.INT64, [count], list(range(count))),
            numpy_helper.from_array(np.float32(1), "small"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


EXPECTED = (np.arange(2000, dtype=np.float32) * 2 + 1) * 2


def run(path: Path) -> np.ndarray:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"flag": np.array(True)})[0]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    path = folder / "model.onnx"
    onnx.save(make_model(), path)
    return path


@pytest.fixture
def output(tmp_path: Path) -> Path:
    folder = tmp_path / "output"
    folder.mkdir()
    return folder / "result.onnx"


def files(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_commit_puts_the_whole_file_there(source: Path, output: Path):
    with stage(read_model(source), output) as staged:
        assert not output.exists()
        assert staged.path.read_bytes() == source.read_bytes()
        np.testing.assert_array_equal(run(staged.path), EXPECTED)
        staged.commit(EQUAL, verified=True)
        assert output.exists()
    assert files(output.parent) == ["result.onnx"]
    assert output.read_bytes() == source.read_bytes()


def test_an_edited_model_is_streamed(source: Path, output: Path):
    model = read_model(source)
    model.proto.graph.node[2].name = "renamed"
    expected = make_model()
    expected.graph.node[2].name = "renamed"
    with stage(model, output) as staged:
        staged.commit(EQUAL, verified=True)
    assert output.read_bytes() == expected.SerializeToString()


def test_without_a_commit_nothing_is_left(source: Path, output: Path):
    output.write_bytes(b"old")
    for trouble in (None, ValueError, KeyboardInterrupt, SystemExit):
        try:
            with stage(read_model(source), output):
                if trouble is not None:
                    raise trouble
        except (ValueError, KeyboardInterrupt, SystemExit):
            pass
        assert files(output.parent) == ["result.onnx"]
        assert output.read_bytes() == b"old"


def test_a_commit_needs_a_passing_verdict(source: Path, output: Path):
    with stage(read_model(source), output) as staged:
        for verdict, verified in ((None, True), (Verdict(False, "spec"), True), (Verdict(False, "spec"), False)):
            with pytest.raises(NotEquivalent):
                staged.commit(verdict, verified=verified)
        assert not output.exists()
        staged.commit(None, verified=False)
    assert output.exists()


def test_external_data_is_written_beside(source: Path, output: Path):
    with stage(read_model(source), output, external_data=True) as staged:
        np.testing.assert_array_equal(run(staged.path), EXPECTED)
        staged.commit(EQUAL, verified=True)
    assert files(output.parent) == ["result.onnx", "result.onnx.data"]
    np.testing.assert_array_equal(run(output), EXPECTED)
    written = onnx.load(output, load_external_data=False)
    for tensor in iterate_tensors(written):
        assert not tensor.metadata_props
        entries = {entry.key: entry.value for entry in tensor.external_data}
        is_initializer = tensor.name in ("w", "order", "then_w", "else_w")
        assert (tensor.data_location == TensorProto.EXTERNAL) == is_initializer
        if is_initializer:
            assert entries["location"] == "result.onnx.data"
            assert int(entries["offset"]) % writer.ALIGNMENT == 0
    onnx.checker.check_model(os.fspath(output))
    loaded, whole = onnx.load(output), make_model()
    for one, other in zip(iterate_tensors(loaded), iterate_tensors(whole), strict=True):
        np.testing.assert_array_equal(numpy_helper.to_array(one), numpy_helper.to_array(other))


def test_external_data_is_read_and_embedded_again(source: Path, output: Path):
    with stage(read_model(source), output, external_data=True) as staged:
        staged.commit(EQUAL, verified=True)
    back = output.with_name("back.onnx")
    with stage(read_model(output), back) as staged:
        staged.commit(EQUAL, verified=True)
    assert onnx.load(back, load_external_data=False) == onnx.load(back)
    np.testing.assert_array_equal(run(back), EXPECTED)
    again = output.with_name("again.onnx")
    with stage(read_model(output), again, external_data=True) as staged:
        staged.commit(EQUAL, verified=True)
    assert again.with_name("again.onnx.data").read_bytes() == output.with_name("result.onnx.data").read_bytes()
    np.testing.assert_array_equal(run(again), EXPECTED)


def test_a_model_made_in_memory_can_be_written(tmp_path: Path, output: Path):
    for flag in (False, True):
        with stage(Model(make_model()), output, external_data=flag) as staged:
            staged.commit(EQUAL, verified=True)
        np.testing.assert_array_equal(run(output), EXPECTED)


def test_a_model_over_the_limit_of_protobuf_gets_external_data(
    source: Path, output: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(wire_format, "MAXIMUM_MESSAGE_BYTES", 20000)
    with stage(read_model(source), output) as staged:
        assert staged.path.stat().st_size <= 20000
        staged.commit(EQUAL, verified=True)
    assert files(output.parent) == ["result.onnx", "result.onnx.data"]
    np.testing.assert_array_equal(run(output), EXPECTED)
    monkeypatch.setattr(wire_format, "MAXIMUM_MESSAGE_BYTES", 5000)  # the Constant node alone is larger
    with pytest.raises(OutputError, match="larger than 2 GiB"), stage(Model(make_model()), output):
        pass


def test_the_source_is_never_overwritten(source: Path, tmp_path: Path):
    model = read_model(source)
    before = source.read_bytes()
    link, hard = tmp_path / "link.onnx", tmp_path / "hard.onnx"
    link.symlink_to(source)
    hard.hardlink_to(source)
    for path in (source, link, hard, source.parent / ".." / "source" / "model.onnx"):
        with pytest.raises(OutputError, match="part of the source"), stage(model, path):
            pass
    with pytest.raises(OutputError, match="part of the source"), stage(Model(make_model()), source, source=source):
        pass
    with (  # a file inside a folder that is the source
        pytest.raises(OutputError, match="part of the source"),
        stage(Model(make_model()), source, source=source.parent),
    ):
        pass
    assert source.read_bytes() == before
    assert files(source.parent) == ["model.onnx"]


def test_the_external_data_of_the_source_is_never_overwritten(source: Path, output: Path):
    with stage(read_model(source), output, external_data=True) as staged:
        staged.commit(EQUAL, verified=True)
    model = read_model(output)
    before = files(output.parent)
    with pytest.raises(OutputError, match="part of the source"), stage(model, output.with_name("result.onnx.data")):
        pass
    output.rename(output.with_name("other.onnx"))
    model = read_model(output.with_name("other.onnx"))
    with pytest.raises(OutputError, match="part of the source"), stage(model, output, external_data=True):
        pass
    assert files(output.parent) == ["other.onnx", "result.onnx.data"]
    assert before == ["result.onnx", "result.onnx.data"]


def test_outputs_that_can_not_be(source: Path, output: Path):
    model = read_model(source)
    os.mkfifo(output.with_name("pipe"))
    for path, says in (
        (output.parent, "is a folder"),
        (output.parent / "missing" / "x.onnx", "does not exist"),
        (output.with_name("pipe"), "not a regular file"),
        (Path(os.devnull), "not a regular file"),
        (output.with_name("x" * 300), "can't be written"),
        (source / "x.onnx", "can't be written|does not exist"),
    ):
        with pytest.raises(OutputError, match=says) as caught, stage(model, path):
            pass
        assert caught.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(source: Path, output: Path):
    output.parent.chmod(0o500)
    with pytest.raises(OutputError, match="Permission denied"), stage(read_model(source), output):
        pass


def test_a_full_disk(source: Path, output: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(writer, "_copy_bytes", full)
    with pytest.raises(OutputError, match="No space left") as caught, stage(read_model(source), output):
        pass
    assert "Make room" in caught.value.hint
    assert files(output.parent) == []


def test_a_limit_on_file_sizes(source: Path, output: Path):
    model = read_model(source)
    model.proto.producer_name = "edited"
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10000, old[1]))
    try:
        with pytest.raises(OutputError, match="too large"), stage(model, output):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert files(output.parent) == []


def test_a_rename_that_fails_leaves_the_old_output(source: Path, output: Path, monkeypatch: pytest.MonkeyPatch):
    output.write_bytes(b"old")

    def refuse(*arguments: object) -> None:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    with pytest.raises(OutputError), stage(read_model(source), output) as staged:
        monkeypatch.setattr(os, "replace", refuse)
        staged.commit(EQUAL, verified=True)
    assert output.read_bytes() == b"old"
    assert files(output.parent) == ["result.onnx"]


def test_a_process_that_is_killed_leaves_the_old_output(source: Path, output: Path):
    output.write_bytes(b"old")
    code = (
        "import os, sys, signal, pathlib\n"
        "from padfix.files.skeleton import read_model; from padfix.files.sink import stage\n"
        "with stage(read_model(pathlib.Path(sys.argv[1])), pathlib.Path(sys.argv[2])):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    result = subprocess.run([sys.executable, "-c", code, str(source), str(output)], check=False)
    assert result.returncode == -signal.SIGKILL
    assert output.read_bytes() == b"old"
    assert all(name == "result.onnx" or name.startswith(".result.onnx.padfix-") for name in files(output.parent))


def test_permissions_follow_the_umask(source: Path, output: Path):
    old = os.umask(0o027)
    try:
        with stage(read_model(source), output, external_data=True) as staged:
            staged.commit(EQUAL, verified=True)
    finally:
        os.umask(old)
    assert output.stat().st_mode & 0o777 == 0o640
    assert output.with_name("result.onnx.data").stat().st_mode & 0o777 == 0o640


def test_a_linked_output_is_followed(source: Path, output: Path):
    real = output.with_name("real.onnx")
    real.write_bytes(b"old")
    output.symlink_to("real.onnx")
    with stage(read_model(source), output) as staged:
        staged.commit(EQUAL, verified=True)
    assert output.is_symlink()
    assert real.read_bytes() == source.read_bytes()


def test_payloads_are_copied_by_chunks_where_the_kernel_can_not(
    source: Path, output: Path, monkeypatch: pytest.MonkeyPatch
):
    def unsupported(*arguments: object) -> int:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "copy_file_range", unsupported, raising=False)
    monkeypatch.setattr(writer, "_CHUNK", 1000)
    with stage(read_model(source), output) as staged:
        staged.commit(EQUAL, verified=True)
    assert output.read_bytes() == source.read_bytes()


def test_a_source_that_shrinks_is_noticed(source: Path, output: Path):
    model = read_model(source)
    model.proto.producer_name = "edited"
    with source.open("r+b") as file:
        file.truncate(5000)
    with pytest.raises(SourceError), stage(model, output):
        pass
    assert files(output.parent) == []
