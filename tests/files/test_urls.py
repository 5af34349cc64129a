"""What is a URL, and what of it is shown."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from padfix.files.urls import Url, placed, shown, without_credentials


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("https://host/m.onnx", "https://host/m.onnx"),
        ("https://user:secret@host:8443/m.onnx", "https://host:8443/m.onnx"),
        ("https://token@host/m.onnx", "https://host/m.onnx"),
        ("https://host/m.onnx?X-Amz-Signature=secret", "https://host/m.onnx?…"),
        ("https://host/m.onnx#secret", "https://host/m.onnx#…"),
        ("https://host/m.onnx?a=secret::secret", "https://host/m.onnx?…"),
        ("https://user:sec/ret@host/m.onnx", "https://host/m.onnx"),
        ("https://user:sec?ret@host/m.onnx", "https://…?…"),
        ("https://user:sec::ret@host/m.onnx", "https://…"),
        ("https://[::1]:80/m.onnx", "https://[::1]:80/m.onnx"),
        ("https://host/@scope/m.onnx", "https://host/@scope/m.onnx"),
        ("s3://key:secret@bucket/m.onnx", "s3://bucket/m.onnx"),
        ("s3://bucket/m?.onnx", "s3://bucket/m?.onnx"),
        ("s3://bucket/**/*.onnx", "s3://bucket/**/*.onnx"),
        ("s3://bucket/m.onnx?versionId=secret", "s3://bucket/m.onnx?…"),
        ("abfs://container@account.dfs.core.windows.net/m.onnx",) * 2,
        ("hf://org/repo@main/m.onnx",) * 2,
        ("zip://m.onnx::https://user:secret@host/a.zip?secret", "zip://m.onnx::https://host/a.zip?…"),
        ("zip://m.onnx::/models/a.zip",) * 2,
        ("simplecache::s3://key:secret@bucket/m.onnx", "simplecache::s3://bucket/m.onnx"),
        ("ftp://user:secret@host/m.onnx", "ftp://host/m.onnx"),
    ],
)
def test_no_credential_is_shown(address: str, told: str) -> None:
    assert shown(address) == told
    place = placed(address)
    assert isinstance(place, Url)
    assert str(place) == told
    assert repr(place) == f"Url({told!r})"
    assert "secret" not in f"{place} {place!r} {place.name} {place.stem} {place.suffix}"
    assert pickle.loads(pickle.dumps(place)).address == address
    said = without_credentials(f"GET {address} failed: 403, message='', url='{address}'")
    assert "ret@" not in said
    assert "secret" not in said
    assert isinstance(place, Url) and "secret" not in place.without_secrets(f"no key {address.partition('://')[2]}")


@pytest.mark.parametrize("argument", ["http:", "model.onnx", "C:\\models\\m.onnx", "a::b.onnx", "-", "1://x", "://x"])
def test_what_is_no_url_is_a_path(argument: str) -> None:
    assert placed(argument) == Path(argument)


def test_a_file_of_the_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert isinstance(placed("s3://bucket/m.onnx"), Url)
    os.makedirs("s3:/bucket")
    Path("s3:/bucket/m.onnx").write_bytes(b"")
    assert placed("s3://bucket/m.onnx") == Path("s3:/bucket/m.onnx")


def test_a_file_url_is_a_path() -> None:
    assert placed("file:///models/m.onnx") == Path("/models/m.onnx")
    assert placed("FILE:///models/m.onnx") == Path("/models/m.onnx")
    assert placed("HTTPS://host/m.onnx") == Url("https://host/m.onnx")


def test_the_parts_of_a_url() -> None:
    url = Url("zip://models/m.onnx::https://host/a.zip?key=secret")
    assert (url.name, url.stem, url.suffix, url.protocol) == ("m.onnx", "m", ".onnx", "zip")
    assert url.around == Url("https://host/a.zip?key=secret")
    assert url.at("models/n.onnx") == Url("zip://models/n.onnx::https://host/a.zip?key=secret")
    assert Url("https://host/a/m.onnx?key=secret").at("host/a/m.data") == Url("https://host/a/m.data?key=secret")
    assert Url("simplecache::s3://bucket/m.onnx").at("bucket/n.onnx") == Url("simplecache::s3://bucket/n.onnx")
    assert [Url(each).is_pattern for each in ("s3://b/*.onnx", "https://host/*.onnx", "s3://b/m.onnx")] == [
        True,
        False,
        False,
    ]
