"""Models in stores from the command line: S3 as a server on loopback answers, the web, memory."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import onnx
import pytest

import padfix
from padfix.cli.exits import run
from padfix.cli.group import cli
from padfix.errors import OutputError, SourceError, UsageError
from padfix.files.detection import detect
from padfix.files.stores import access, failures
from padfix.files.stores.access import opened
from padfix.files.stores.copies import local_copy
from padfix.files.urls import placed
from tests.support.bucket import s3_bucket
from tests.support.store_server import StoreServer, serving

fsspec = pytest.importorskip("fsspec", reason='needs fsspec: pip install "padfix[remote]"')
pytest.importorskip("aiohttp", reason='needs aiohttp: pip install "padfix[remote]"')

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures" / "onnx"
SCHEMA = json.loads((ROOT / "padfix" / "schemas" / "padfix-1.schema.json").read_text())


def invoke(*arguments: object) -> int:
    return run(cli, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def bucket() -> Iterator[Any]:
    with s3_bucket() as found:
        yield found


@pytest.fixture
def zoo(bucket: Any) -> Any:
    """Yield the bucket with three models in it, one of them broken, and what is none."""
    for name in ("same_cnn", "explicit_cnn"):
        bucket.put_file(str(FIXTURES / f"{name}.onnx"), f"zoo/models/deep/{name}.onnx")
    bucket.pipe("zoo/models/broken.onnx", b"\x08\x07\x3a\xff")
    bucket.pipe("zoo/models/readme.txt", b"hello")
    bucket.pipe("zoo/models/nameless", (FIXTURES / "legacy_upsample.onnx").read_bytes())
    bucket.pipe("zoo/models/same_cnn.onnx.bak", b"")
    bucket.pipe("zoo/models/.hidden/m.onnx", b"")
    yield bucket
    bucket.rm("zoo/models", recursive=True)
    bucket.invalidate_cache()


@pytest.fixture(scope="module")
def server() -> Iterator[StoreServer]:
    with serving() as started:
        started.files = {"same.onnx": FIXTURES / "same_cnn.onnx"}
        yield started


def external(folder: Path, location: str = "w.data") -> Path:
    """Write the fixture with its weights beside it, and return it."""
    model = onnx.load(FIXTURES / "same_cnn.onnx")
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "m.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    model = onnx.load(folder / "m.onnx", load_external_data=False)
    for tensor in model.graph.initializer:
        tensor.external_data[0].value = location
    onnx.save(model, folder / "m.onnx")
    return folder / "m.onnx"


def test_a_folder_and_a_pattern_of_a_bucket(zoo: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke("check", "s3://zoo/models", "--format", "json") == 2
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    jsonschema.validate(document, SCHEMA)
    assert document["sources"] == [
        "s3://zoo/models/deep/explicit_cnn.onnx",
        "s3://zoo/models/deep/same_cnn.onnx",
        "s3://zoo/models/nameless",
    ]
    assert [each["source"] for each in document["errors"]] == ["s3://zoo/models/broken.onnx"]
    assert [each["source"] for each in document["fetched"]] == document["sources"]
    assert "hunter" not in shown.out + shown.err
    assert invoke("check", "s3://zoo/models/**/*_cnn.onnx", "--jobs", 2, "--exclude", "same*") == 0
    assert invoke("check", "s3://zoo/models/d*/same_cnn.onnx") == 1
    assert "; fetched 5.1 KiB of 5.1 KiB in 2 requests." in capsys.readouterr().out
    assert invoke("check", "s3://zoo/nothing/*.onnx") == 2
    assert "No file matches s3://zoo/nothing/*.onnx." in capsys.readouterr().err
    assert invoke("check", "s3://zoo/models/deep/none.onnx") == 2
    assert "s3://zoo/models/deep/none.onnx does not exist" in capsys.readouterr().err
    assert invoke("check", "s3://nowhere/m.onnx") == 2
    assert "s3://nowhere/m.onnx does not exist" in capsys.readouterr().err


def test_what_is_known_of_models_in_a_bucket(
    zoo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    url = "s3://zoo/models/deep/same_cnn.onnx"
    assert invoke("check", url, "--write-baseline", "known.json") == 0
    assert invoke("check", url, "--baseline", "known.json") == 0
    assert json.loads((tmp_path / "known.json").read_text())["findings"][0]["source"] == url
    for pattern in ("s3://zoo/models/deep/*", "**/deep/*", "same_*"):
        (tmp_path / "padfix.toml").write_text(f'[per-file-ignores]\n"{pattern}" = ["PF1"]\n')
        assert invoke("check", url) == 0, pattern
    (tmp_path / "padfix.toml").write_text('exclude = ["**/deep/*"]\n')
    capsys.readouterr()
    assert invoke("check", "s3://zoo/models/**/*.onnx", "--format", "json") == 2
    document = json.loads(capsys.readouterr().out)
    assert (document["sources"], len(document["errors"])) == ([], 1)


def test_models_of_a_bucket_that_did_not_change_are_not_fetched_again(
    zoo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    zoo.rm(["zoo/models/broken.onnx", "zoo/models/readme.txt"])
    command = ("check", "s3://zoo/models", "--format", "json", "--cache-dir", tmp_path / "cache")

    def sources_fetched() -> tuple[list[str], list[str]]:
        assert invoke(*command) == 1
        document = json.loads(capsys.readouterr().out)
        found = [each["source"] for each in document["findings"]]
        return found, [each["source"].rpartition("/")[2] for each in document["fetched"]]

    found, fetched = sources_fetched()
    assert fetched == ["explicit_cnn.onnx", "same_cnn.onnx", "nameless"]
    with monkeypatch.context() as patch:
        patch.setattr(access, "_opened_url", lambda *_: pytest.fail("a file was opened"))
        assert sources_fetched() == (found, [])
        assert invoke("check", "s3://zoo/models/**/*same*", "--cache-dir", tmp_path / "cache") == 1
        assert "fetched" not in capsys.readouterr().out
    zoo.pipe("zoo/models/deep/same_cnn.onnx", (FIXTURES / "explicit_cnn.onnx").read_bytes())
    kept, fetched = sources_fetched()
    assert fetched == ["same_cnn.onnx"]
    assert kept == [each for each in found if "same_cnn" not in each]


def test_a_model_that_was_replaced(zoo: Any) -> None:
    url, name = "s3://zoo/models/deep/same_cnn.onnx", "zoo/models/deep/same_cnn.onnx"
    assert padfix.check(url).findings
    zoo.ls("zoo/models/deep")
    with fsspec.filesystem("s3", skip_instance_cache=True).open(name, "wb") as file:
        file.write((FIXTURES / "explicit_cnn.onnx").read_bytes())
    assert padfix.check(url).findings == [], "a listing from before is not believed"


def test_a_model_that_is_replaced_while_it_is_read(zoo: Any) -> None:
    zoo.pipe("zoo/models/m.onnx", b"x" * 1_000_000)
    with opened(placed("s3://zoo/models/m.onnx")) as source:
        assert source.read(0, 2) == b"xx"
        zoo.pipe("zoo/models/m.onnx", b"y" * 1_000_000)
        with pytest.raises(SourceError, match="was changed while padfix read it"):
            source.read(900_000, 900_002)


@pytest.mark.parametrize("answers", [False, True], ids=["silent", "forbidden"])
def test_a_bucket_that_is_not_to_be_had(
    bucket: Any, server: StoreServer, answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "SILENCE", 10 if answers else 0.5)
    endpoint = server.url("forbidden" if answers else "silent", "")
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    bucket.clear_instance_cache()
    with pytest.raises(SourceError, match=r"may not be read" if answers else "does not answer within") as raised:
        padfix.check("s3://zoo/m.onnx")
    assert "hunter" not in str(raised.value)
    bucket.clear_instance_cache()


def test_convert_from_bucket_to_bucket(zoo: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke("convert", "s3://zoo/models/deep/same_cnn.onnx", "-o", "s3://zoo/models/new/made.onnx") == 0
    shown = capsys.readouterr()
    assert "s3://zoo/models/new/made.onnx" in shown.out
    assert padfix.check("s3://zoo/models/new/made.onnx").findings == []
    assert invoke("convert", "s3://zoo/models/deep/same_cnn.onnx", "-o", tmp_path / "here.onnx") == 0
    zoo.get_file("zoo/models/new/made.onnx", str(tmp_path / "made.onnx"))
    assert (tmp_path / "made.onnx").read_bytes() == (tmp_path / "here.onnx").read_bytes()
    sources = [FIXTURES / "legacy_upsample.onnx", "s3://zoo/models/deep/explicit_cnn.onnx"]
    assert invoke("convert", *sources, "--output-dir", "s3://zoo/models/many/", "--quiet") == 0
    zoo.invalidate_cache()
    assert sorted(zoo.ls("zoo/models/many")) == [
        "zoo/models/many/explicit_cnn.onnx",
        "zoo/models/many/legacy_upsample.onnx",
    ]


def test_what_is_not_proven_is_not_sent(zoo: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SourceError):
        padfix.convert("s3://zoo/models/broken.onnx", "s3://zoo/models/new.onnx")
    zoo.invalidate_cache()
    assert not zoo.exists("zoo/models/new.onnx")
    with pytest.raises(OutputError, match=r"nowhere/new.onnx can't be written|does not exist"):
        padfix.convert("s3://zoo/models/deep/same_cnn.onnx", "s3://nowhere/new.onnx")
    with pytest.raises(OutputError, match="is the source"):
        padfix.convert("s3://zoo/models/deep/same_cnn.onnx", "s3://zoo/models/deep/same_cnn.onnx")
    with pytest.raises(UsageError, match="not replaced in place"):
        padfix.convert("s3://zoo/models/deep/same_cnn.onnx", "s3://zoo/models/deep/same_cnn.onnx", in_place=True)
    assert invoke("convert", "--in-place", "s3://zoo/models/deep/same_cnn.onnx") == 2
    assert "not replaced in place" in capsys.readouterr().err


def test_external_data_beside_the_model(zoo: Any, tmp_path: Path) -> None:
    model = external(tmp_path / "a")
    for file in model.parent.iterdir():
        zoo.put_file(str(file), f"zoo/models/split/{file.name}")
    expected = padfix.check(model).findings
    assert padfix.check("s3://zoo/models/split/m.onnx").findings == expected
    report = padfix.convert("s3://zoo/models/split/m.onnx", "s3://zoo/models/split/new.onnx", external_data=True)
    assert report.written
    zoo.invalidate_cache()
    assert {"new.onnx", "new.onnx.data"} <= {Path(each).name for each in zoo.ls("zoo/models/split")}
    assert padfix.check("s3://zoo/models/split/new.onnx").findings == []
    padfix.convert("s3://zoo/models/split/new.onnx", tmp_path / "again.onnx")
    with pytest.raises(OutputError, match="is there already"):
        padfix.convert("s3://zoo/models/split/m.onnx", "s3://zoo/models/split/new.onnx", external_data=True)
    zoo.rm("zoo/models/split/w.data")
    assert padfix.check("s3://zoo/models/split/m.onnx").findings == expected
    with pytest.raises(SourceError, match=r"split/w.data does not exist"):
        padfix.convert("s3://zoo/models/split/m.onnx", tmp_path / "out.onnx")


@pytest.mark.parametrize(
    "location", ["../w.data", "/w.data", "s3://zoo/w.data", "%2e%2e/w.data", "%252e%252e%2fw.data", "a::b", "w?x=1"]
)
def test_external_data_elsewhere(tmp_path: Path, location: str) -> None:
    store = fsspec.filesystem("memory")
    store.pipe("/in/m.onnx", external(tmp_path / "a", location).read_bytes())
    store.pipe("/w.data", b"0" * 10_000)
    with pytest.raises(SourceError, match=r"not beside it|not inside the model's folder"):
        padfix.convert("memory://in/m.onnx", tmp_path / "out.onnx")
    assert not (tmp_path / "out.onnx").exists()
    store.rm("/in", recursive=True)


def test_from_memory_to_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fsspec.filesystem("memory")
    store.pipe("/in/m.onnx", (FIXTURES / "same_cnn.onnx").read_bytes())
    assert padfix.convert("memory://in/m.onnx", "memory://out/m.onnx").written
    assert store.find("/out") == ["/out/m.onnx"]
    before = store.cat("/out/m.onnx")

    def fails(*arguments: object, **options: object) -> None:
        raise ConnectionResetError("https://me:hunter2@host?key=secret")

    monkeypatch.setattr(type(store), "mv", fails)
    with pytest.raises(OutputError, match=r"out/m.onnx can't be written: the connection was cut") as raised:
        padfix.convert("memory://in/m.onnx", "memory://out/m.onnx", opset=19)
    assert "hunter2" not in str(raised.value)
    assert raised.value.report is not None
    assert not raised.value.report.written
    assert store.cat("/out/m.onnx") == before
    assert store.find("/out") == ["/out/m.onnx"]
    for folder in ("/in", "/out"):
        store.rm(folder, recursive=True)


def test_urls_that_lines_can_not_tell_apart_are_refused(
    server: StoreServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    urls = [server.url("parts", "same.onnx", query=f"?token={each}") for each in "ab"]
    assert invoke("check", *urls, "--resume", tmp_path / "lines") == 2
    assert "2 models are called" in capsys.readouterr().err
    assert invoke("check", urls[0], "--resume", tmp_path / "lines") == 1


def test_the_command_line_as_a_process(server: StoreServer, tmp_path: Path) -> None:
    url = server.url("parts", "same.onnx", user="me:hunter2", query="?key=secret")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def padfix_process(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "padfix", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)

    done = padfix_process("check", url, "--untrusted", "--report", "sarif=a.sarif", "--report", "html=a.html")
    assert (done.returncode, done.stderr) == (1, "")
    converted = padfix_process("convert", url, "-o", "m.onnx", "--report", "a.json", "-v", "--untrusted")
    assert converted.returncode == 0, converted.stderr
    assert "Fetching same.onnx" in converted.stderr
    said = done.stdout + converted.stdout + converted.stderr
    said += "".join((tmp_path / name).read_text() for name in ("a.sarif", "a.html", "a.json"))
    assert "hunter2" not in said
    assert "secret" not in said
    assert "127.0.0.1" in said
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.html", "a.json", "a.sarif", "m.onnx"]


def test_inspect(server: StoreServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.reset()
    assert invoke("inspect", server.url("parts", "same.onnx", query="?key=secret"), "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, SCHEMA)
    assert document["source"] == server.url("parts", "same.onnx", query="?…")
    assert document["fetched"]["bytes"] == server.sent
    assert [each.name for each in padfix.inspect(FIXTURES / "same_cnn.onnx")] == [
        each["name"] for each in document["operators"]
    ]


def test_a_saved_model_is_copied_with_all_its_files() -> None:
    store = fsspec.filesystem("memory")
    folder = ROOT / "fixtures" / "tf" / "two_signatures"
    files = {each.relative_to(folder): each for each in folder.rglob("*") if each.is_file()}
    for name, file in files.items():
        store.pipe(f"/models/saved/{name}", file.read_bytes())
    with local_copy(placed("memory://models/saved/")) as copy:
        assert (copy.name, detect(copy)) == ("saved", "saved_model")
        assert {each.relative_to(copy) for each in copy.rglob("*") if each.is_file()} == files.keys()
        assert all((copy / name).read_bytes() == file.read_bytes() for name, file in files.items())
    assert not copy.exists()
    store.rm("/models", recursive=True)


def test_files_that_are_no_models_stay_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(FIXTURES / "explicit_cnn.onnx")
    for options in (
        ["--output", "s3://zoo/a.txt"],
        ["--report", "json=s3://zoo/a"],
        ["--baseline", "s3://b?key=secret"],
    ):
        assert invoke("check", model, *options) == 2
        shown = capsys.readouterr().err
        assert "is a URL, and this is a file or folder of this machine" in shown
        assert "secret" not in shown
    for command in (
        ["verify", "https://me:hunter2@host/m.onnx?key=secret", model],
        ["convert", model, "-o", "x", "--probe", "s3://b/x?key=secret"],
    ):
        assert invoke(*command) == 2
        shown = capsys.readouterr().err
        assert "is a URL, and this is a file" in shown
        assert "secret" not in shown
        assert "hunter" not in shown
    assert invoke("check", model, "--changed-since", "HEAD", "https://host/m.onnx") == 2
    assert "git knows of no changes behind URLs" in capsys.readouterr().err


def test_a_local_check_loads_no_fsspec(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "explicit_cnn.onnx", tmp_path)
    code = "import sys; from padfix.cli.exits import run; from padfix.cli.group import cli\n"
    code += "assert run(cli, ['check', '.', '--quiet']) == 0; assert not {'fsspec', 'aiohttp'} & sys.modules.keys()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment)


def test_every_command_of_the_page(
    zoo: Any, server: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    zoo.rm("zoo/models", recursive=True)
    for name in ("same_cnn", "legacy_upsample"):
        zoo.put_file(str(FIXTURES / f"{name}.onnx"), f"zoo/models/{name}.onnx")
    server.files["same_cnn.onnx"] = FIXTURES / "same_cnn.onnx"
    page = (ROOT / "padfix" / "docs" / "remote.md").read_text(encoding="utf-8")
    page = page.replace("https://models.example.com/", server.url("parts", ""))
    commands = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ]
    assert len(commands) > 6
    for command in commands:
        program, *arguments = shlex.split(command)
        if program == "padfix":
            assert invoke(*arguments) == 0, capsys.readouterr()
    assert "SECRET" not in "".join(capsys.readouterr())
    zoo.rm("zoo/explicit", recursive=True)
    zoo.rm("zoo/converted", recursive=True)
