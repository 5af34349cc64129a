"""Models in stores: the graph is fetched and nothing else, and what a store does wrong is a sentence."""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import padfix
from padfix.errors import MissingDependencyError, SourceError
from padfix.files.detection import detect
from padfix.files.skeleton import read_model
from padfix.files.stores import access, failures, web
from padfix.files.stores.traffic import counted
from padfix.files.urls import placed
from tests.support.store_server import DEFECTS, StoreServer, serving

fsspec = pytest.importorskip("fsspec", reason='needs fsspec: pip install "padfix[remote]"')
pytest.importorskip("aiohttp", reason='needs aiohttp: pip install "padfix[remote]"')

SAME = Path(__file__).parents[3] / "fixtures" / "onnx" / "same_cnn.onnx"
SECRETS = ("hunter2", "secret", "of-the-redirect", "X-Signature")


@pytest.fixture(scope="module")
def started() -> Iterator[StoreServer]:
    with serving() as server:
        yield server


@pytest.fixture
def server(started: StoreServer) -> StoreServer:
    started.files = {"same.onnx": SAME.read_bytes(), "empty.onnx": b""}
    started.reset()
    return started


def weights(sizes: list[int], *, floats: bool, first: bool) -> bytes:
    """Return a model with a SAME convolution and initializers of so many bytes, before its nodes or behind."""
    tensors = b""
    for number, size in enumerate(sizes):
        tensor = TensorProto(name=f"w{number}", dims=[size // 4], data_type=1).SerializeToString()
        tensor += (b"\x22" if floats else b"\x4a") + _varint(size) + bytes(size)
        tensors += b"\x2a" + _varint(len(tensor)) + tensor
    kernel = numpy_helper.from_array(np.ones((1, 1, 3, 3), np.float32), "kernel")
    node = helper.make_node("Conv", ["x", "kernel"], ["y"], name="same", auto_pad="SAME_UPPER")
    ends = [helper.make_tensor_value_info(name, 1, [1, 1, 9, 9]) for name in "xy"]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], [])
    heavy = onnx.GraphProto(initializer=[kernel]).SerializeToString() + tensors
    light = graph.SerializeToString()
    whole = heavy + light if first else light + heavy
    head = ModelProto(ir_version=9, opset_import=[helper.make_opsetid("", 18)]).SerializeToString()
    return head + b"\x3a" + _varint(len(whole)) + whole


def _varint(value: int) -> bytes:
    encoded = b""
    while value > 0x7F:
        encoded, value = encoded + bytes([value & 0x7F | 0x80]), value >> 7
    return encoded + bytes([value])


@pytest.mark.sweep(5)
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("floats", [True, False])
@pytest.mark.parametrize("sizes", [[64 << 20], [2 << 20] * 16, [300_000] * 100], ids=lambda sizes: len(sizes))
def test_the_weights_stay_where_they_are(
    server: StoreServer, tmp_path: Path, sizes: list[int], floats: bool, first: bool
) -> None:
    content = weights(sizes, floats=floats, first=first)
    server.files["m.onnx"] = content
    with counted() as traffic:
        model = read_model(placed(server.url("parts", "m.onnx")))
    (tmp_path / "m.onnx").write_bytes(content)
    local = read_model(tmp_path / "m.onnx")
    assert [each.name for each in model.proto.graph.initializer] == [
        each.name for each in local.proto.graph.initializer
    ]
    assert model.proto.graph.node == local.proto.graph.node
    fetched = traffic.fetched()
    assert fetched is not None
    assert (fetched.bytes, fetched.requests, fetched.size) == (server.sent, len(server.requests), len(content))
    assert fetched.bytes < max(len(content) / 100, 750_000)
    assert fetched.requests <= len(sizes) + 4


def test_a_graph_without_weights_takes_few_requests(server: StoreServer) -> None:
    nodes = [helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"], name=f"node {i}" + "n" * 100) for i in range(15_000)]
    ends = [helper.make_tensor_value_info(name, 1, [1]) for name in ("t0", "t15000")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    content = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString()
    server.files["m.onnx"] = content
    with counted() as traffic:
        assert len(read_model(placed(server.url("parts", "m.onnx"))).proto.graph.node) == 15_000
    assert traffic.bytes < 1.02 * len(content)
    assert traffic.requests < 5 + len(content) / 2**20 * 1.5


def test_check_says_what_was_fetched(server: StoreServer) -> None:
    local = padfix.check(SAME)
    url = server.url("redirect", "same.onnx", user="me:hunter2", query="?key=secret")
    report = padfix.check(url)
    assert report.findings == local.findings
    assert report.fetched is not None
    assert report.fetched.requests == len(server.requests) == 2
    assert report.fetched.bytes == report.fetched.size == SAME.stat().st_size
    assert local.fetched is None
    assert not any(secret in f"{report}{report.to_dict()}" for secret in SECRETS)


def test_a_server_that_sends_less_than_it_was_asked_for(server: StoreServer) -> None:
    report = padfix.check(server.url("short", "same.onnx"))
    assert report.findings == padfix.check(SAME).findings
    assert report.fetched is not None
    assert report.fetched.requests == len(server.requests) > 1


def test_a_server_without_parts_sends_the_whole(server: StoreServer) -> None:
    report = padfix.check(server.url("whole", "same.onnx"))
    assert report.findings == padfix.check(SAME).findings
    assert report.fetched is not None
    assert report.fetched.whole
    assert report.fetched.requests == 1


@pytest.mark.parametrize(
    "behaviour", [*DEFECTS, "cut", "circle", "changing", "shrinking", "wrong", "page", "silent", "dripping"]
)
def test_what_a_server_does_wrong_is_a_sentence(
    server: StoreServer, behaviour: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "SILENCE", 0.4)
    server.files["m.onnx"] = weights([1 << 20], floats=False, first=True)
    url = server.url(behaviour, "m.onnx", user="me:hunter2", query="?key=secret")
    words = {
        "missing": "does not exist (404)",
        "gone": "does not exist any more (410)",
        "forbidden": "may not be read (403)",
        "unauthorised": "wants other credentials (401)",
        "broken": "its store answers 500 Internal Server Error",
        "cut": "the connection was cut",
        "circle": "leads from one address to the next without end",
        "changing": "was changed while padfix read it",
        "shrinking": "was changed while padfix read it",
        "wrong": "was asked for a part and answers with another",
        "page": "is an HTML page, not a model",
        "silent": "does not answer within",
        "dripping": "does not answer within",
    }
    with pytest.raises(SourceError) as raised:
        padfix.check(url)
    assert words[behaviour] in str(raised.value)
    assert server.url(behaviour, "m.onnx") in raised.value.message
    assert not any(secret in str(raised.value) for secret in SECRETS)
    assert raised.value.__suppress_context__ or raised.value.__cause__ is None


def test_a_disk_is_not_filled(server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "_LEFT_FREE", 1 << 62)
    with pytest.raises(SourceError, match="has no room for all of it"):
        padfix.check(server.url("whole", "same.onnx"))


def test_nobody_there_and_nothing_known() -> None:
    for url, words in (
        ("http://127.0.0.1:9/m.onnx", "nobody answers there"),
        ("http://host.invalid/m.onnx", "its host is not known"),
        ("http://", "is no address"),
        ("nothing-of-the-kind://m.onnx", "no protocol nothing-of-the-kind:// is known"),
        ("memory://nowhere/m.onnx", "does not exist"),
        ("zip://m.onnx::memory://nowhere/a.zip", "does not exist"),
    ):
        with pytest.raises(SourceError, match=words):
            padfix.check(url)


def test_an_empty_file(server: StoreServer) -> None:
    with pytest.raises(SourceError, match="is empty"):
        padfix.check(server.url("whole", "empty.onnx"))


def test_the_package_of_a_protocol_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "paramiko", None)
    with pytest.raises(MissingDependencyError) as raised:
        padfix.check("sftp://me:hunter2@host/m.onnx")
    assert raised.value.message == "sftp://host/m.onnx can't be opened: sftp:// needs the package paramiko."
    assert raised.value.hint == "pip install paramiko"


def test_memory_and_archives(tmp_path: Path) -> None:
    content = weights([8 << 20], floats=False, first=True)
    store = fsspec.filesystem("memory")
    store.pipe("/zoo/m.onnx", content)
    for packed in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", packed) as archive:
            archive.writestr("deep/m.onnx", content)
        store.pipe("/zoo/a.zip", file.getvalue())
        (tmp_path / "a.zip").write_bytes(file.getvalue())
        for url in ("memory://zoo/m.onnx", "zip://deep/m.onnx::memory://zoo/a.zip"):
            report = padfix.check(url)
            assert [each.rule for each in report.findings] == ["PF101"]
            assert report.fetched is not None
            if not (packed and "zip" in url):
                assert report.fetched.bytes < len(content) / 20
        assert padfix.check(f"zip://deep/m.onnx::{tmp_path / 'a.zip'}").findings == report.findings
        with pytest.raises(SourceError, match="does not exist"):
            padfix.check("zip://deep/n.onnx::memory://zoo/a.zip")
    with pytest.raises(SourceError, match="damaged, or none"):
        padfix.check("zip://m.onnx::memory://zoo/m.onnx")
    store.rm("/zoo", recursive=True)


def test_content_tells_what_a_file_is(server: StoreServer) -> None:
    server.files["model"] = server.files["same.onnx"]
    server.files["list"] = b"[1, 2]"
    assert detect(placed(server.url("parts", "model"))) == "onnx"
    with pytest.raises(SourceError, match="is a text file"):
        detect(placed(server.url("parts", "list")))


def test_a_store_that_is_silent_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    monkeypatch.setattr(failures, "SILENCE", 0.1)
    over = threading.Event()
    with pytest.raises(TimeoutError):
        access.in_time(over.wait, 10)
    over.set()


def test_a_file_is_closed_with_its_own_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Google's cache fetches ahead in a task, which the file ends when it is closed."""
    from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

    closed: list[object] = []

    class File(AbstractBufferedFile):  # type: ignore[misc]
        def _fetch_range(self, start: int, end: int) -> bytes:
            return SAME.read_bytes()[start:end]

        def close(self) -> None:
            closed.append(self.cache)
            super().close()

    class Store(AbstractFileSystem):  # type: ignore[misc]
        protocol = "store"

        def info(self, path: str, **settings: object) -> dict[str, object]:
            return {"name": path, "type": "file", "size": SAME.stat().st_size}

        def _open(self, path: str, mode: str = "rb", **settings: object) -> File:
            file = File(self, path, mode, cache_type="readahead")
            opened_with.append(file.cache)
            return file

    opened_with: list[object] = []
    monkeypatch.setitem(sys.modules["fsspec.registry"]._registry, "store", Store)
    assert padfix.check("store://zoo/m.onnx").findings
    assert closed
    assert closed == opened_with
