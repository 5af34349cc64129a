"""Signed proofs: in-toto statements in DSSE envelopes, made and checked with Ed25519, and read by another tool."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import padfix
from padfix.cli.group import cli, run

pytest.importorskip("cryptography", reason="cryptography is not installed (padfix[sign])")

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

FIXTURE = Path(__file__).parents[2] / "fixtures" / "onnx" / "same_cnn.onnx"


def invoke(*arguments: object) -> int:
    return run(cli, [str(argument) for argument in arguments])


def keys(folder: Path, name: str, *, openssh: bool = False) -> tuple[Path, Path]:
    """Write a pair of keys; return the private and the public one."""
    key = ed25519.Ed25519PrivateKey.generate()
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    public_encoding, public_form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    if openssh:
        form = serialization.PrivateFormat.OpenSSH
        public_encoding, public_form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    private, public = folder / name, folder / f"{name}.pub"
    private.write_bytes(key.private_bytes(encoding, form, serialization.NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(public_encoding, public_form))
    return private, public


@pytest.fixture
def signed(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A converted model, its attestation, and the public key."""
    private, public = keys(tmp_path, "key")
    output, report = tmp_path / "out.onnx", tmp_path / "proof.json"
    assert invoke("convert", FIXTURE, "-o", output, "--report", report, "--sign", private, "-q") == 0
    return output, tmp_path / "proof.intoto.jsonl", public


def envelope_of(file: Path) -> dict[str, Any]:
    (line,) = file.read_text().splitlines()
    content: dict[str, Any] = json.loads(line)
    return content


def statement_of(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(base64.b64decode(envelope_of(file)["payload"]))
    return content


def test_the_statement_is_one_of_in_toto(signed: tuple[Path, Path, Path]) -> None:
    output, file, _ = signed
    statement = statement_of(file)
    report = json.loads((output.parent / "proof.json").read_text())
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "urn:padfix:proof:v1"
    assert statement["predicate"] == report
    files = report["certificate"]["output"]
    assert statement["subject"] == [{"name": each["name"], "digest": {"sha256": each["sha256"]}} for each in files]
    assert envelope_of(file)["payloadType"] == "application/vnd.in-toto+json"


def test_another_tool_reads_and_checks_the_envelope(signed: tuple[Path, Path, Path]) -> None:
    dsse = pytest.importorskip("securesystemslib.dsse", reason="securesystemslib is not installed")
    from securesystemslib.signer import SSlibKey

    _, file, public = signed
    found = dsse.Envelope.from_dict(envelope_of(file))
    key = serialization.load_pem_public_key(public.read_bytes())
    assert isinstance(key, ed25519.Ed25519PublicKey)
    (keyid,) = found.signatures
    trusted = SSlibKey.from_crypto(key, keyid)
    assert list(found.verify([trusted], 1)) == [keyid]


def test_the_documented_way_to_read_it_runs(
    signed: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("securesystemslib.dsse", reason="securesystemslib is not installed")
    output, _, public = signed
    guide = (Path(padfix.__file__).parent / "docs" / "proofs.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```py\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    public.rename(output.parent / "padfix.pub")
    monkeypatch.chdir(output.parent)
    exec(compile(example, "proofs.md", "exec"), {})
    assert capsys.readouterr().out == f"{hashlib.sha256(output.read_bytes()).hexdigest()} True\n"


@pytest.mark.parametrize("openssh", [False, True])
def test_the_signature_is_asked_for_and_checked(openssh: bool, tmp_path: Path) -> None:
    private, public = keys(tmp_path, "key", openssh=openssh)
    _, other = keys(tmp_path, "other", openssh=openssh)
    output, report = tmp_path / "out.onnx", tmp_path / "proof.json"
    assert invoke("convert", FIXTURE, "-o", output, "--report", report, "--sign", private, "-q") == 0
    attestation = tmp_path / "proof.intoto.jsonl"
    assert invoke("check", output, "--require-proof", attestation, "--verify-key", public) == 0
    assert invoke("check", output, "--require-proof", attestation) == 0
    assert invoke("check", output, "--require-proof", attestation, "--verify-key", other) == 1
    assert invoke("check", output, "--require-proof", report, "--verify-key", public) == 1, "it is not signed"


def test_an_edited_attestation_is_not_signed(
    signed: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    output, file, public = signed
    envelope, statement = envelope_of(file), statement_of(file)
    statement["predicate"]["certificate"]["source"][0]["sha256"] = "0" * 64
    envelope["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()
    file.write_text(json.dumps(envelope))
    assert invoke("check", output, "--require-proof", file, "--verify-key", public) == 1
    assert "did not sign the report" in capsys.readouterr().out


def test_what_proves_nothing_is_not_signed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    private, _ = keys(tmp_path, "key")
    report = tmp_path / "proof.json"
    options = ["--report", report, "--sign", private, "--quiet"]
    assert invoke("convert", FIXTURE, "-o", tmp_path / "out.onnx", "--no-verify", *options) == 0
    assert "nothing is signed" in capsys.readouterr().err
    assert not (tmp_path / "proof.intoto.jsonl").exists()


@pytest.mark.parametrize("kind", ["text", "ecdsa", "encrypted", "missing"])
def test_other_keys_are_refused_before_any_work(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "key"
    form = serialization.PrivateFormat.PKCS8
    if kind == "text":
        file.write_text("no key")
    elif kind == "ecdsa":
        curve = ec.generate_private_key(ec.SECP256R1())
        file.write_bytes(curve.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    elif kind == "encrypted":
        key = ed25519.Ed25519PrivateKey.generate()
        locked = serialization.BestAvailableEncryption(b"secret")
        file.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, locked))
    output = tmp_path / "out.onnx"
    assert invoke("convert", FIXTURE, "-o", output, "--report", tmp_path / "r.json", "--sign", file) == 2
    assert "key" in capsys.readouterr().err
    assert not output.exists()


def test_signing_wants_a_json_report(tmp_path: Path) -> None:
    private, _ = keys(tmp_path, "key")
    for options in ([], ["--report", tmp_path / "r.html"]):
        assert invoke("convert", FIXTURE, "-o", tmp_path / "out.onnx", "--sign", private, *options) == 2


def test_without_the_package_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    private, _ = keys(tmp_path, "key")
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    options = ["--report", tmp_path / "r.json", "--sign", private]
    assert invoke("convert", FIXTURE, "-o", tmp_path / "out.onnx", *options) == 2
    assert 'pip install "padfix[sign]"' in capsys.readouterr().err
