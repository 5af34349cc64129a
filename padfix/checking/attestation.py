"""Reports signed with Ed25519: a DSSE envelope around an in-toto Statement, as supply-chain tools read them.

The statement's subjects are the files of the result with their SHA-256. Its predicate, of the type
:data:`PREDICATE_TYPE`, is the report as ``padfix convert --report FILE.json`` writes it, certificate and all. The
formats are those of https://github.com/secure-systems-lab/dsse (version 1) and https://github.com/in-toto/attestation
(Statement version 1). The package cryptography (``padfix[sign]``) is imported when a key is used and not before.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from padfix.errors import MissingDependencyError, SourceError, UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:padfix:proof:v1"
SUFFIX = ".intoto.jsonl"
"""Ending of the file: one envelope a line."""

_MAKE_A_KEY = "Make a pair with: openssl genpkey -algorithm ed25519 -out KEY; openssl pkey -in KEY -pubout -out KEY.pub"


def place_of(report: Path) -> Path:
    """Return where the attestation of a report is written: beside it."""
    return report.with_name(report.stem + SUFFIX)


def private_key(path: Path) -> Ed25519PrivateKey:
    """Return the private key of a PEM or OpenSSH file.

    Raises:
        UsageError: It is no Ed25519 key, or a password protects it.
        MissingDependencyError: The package cryptography is not installed.
    """
    try:
        return cast("Ed25519PrivateKey", _key(path, "private", password=None))
    except TypeError as error:
        raise UsageError(f"A password protects the key {path}.", "padfix asks for none; use a key without.") from error


def signed(report: str, key: Ed25519PrivateKey) -> str | None:
    """Return the attestation of a JSON report, one line; None for one that proves nothing, which is not signed."""
    content = json.loads(report)
    verdict = content.get("verdict") if "rewrites" in content else content
    certificate = content.get("certificate")
    if content.get("error") or not verdict or not verdict.get("equivalent") or not certificate:
        return None
    subjects = [{"name": file["name"], "digest": {"sha256": file["sha256"]}} for file in certificate["output"]]
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": subjects,
        "predicateType": PREDICATE_TYPE,
        "predicate": content,
    }
    payload = json.dumps(statement).encode()
    signature = {"keyid": key_id(key.public_key()), "sig": _base64(key.sign(_to_sign(payload)))}
    envelope = {"payload": _base64(payload), "payloadType": PAYLOAD_TYPE, "signatures": [signature]}
    return json.dumps(envelope) + "\n"


def signer(envelope: Mapping[str, Any], path: Path) -> tuple[str, str]:
    """Return (key id, "") where the public key at ``path`` signed the envelope, else ("", why not).

    Raises:
        UsageError: The file is no public Ed25519 key.
        MissingDependencyError: The package cryptography is not installed.
    """
    key = _key(path, "public")
    from cryptography.exceptions import InvalidSignature

    payload = _payload(envelope, "The attestation")
    listed = envelope.get("signatures")
    for each in listed if isinstance(listed, list) else []:
        try:
            key.verify(base64.b64decode(each["sig"]), _to_sign(payload))
        except (InvalidSignature, KeyError, TypeError, ValueError):
            continue
        return key_id(key), ""
    return "", f"{path.name} did not sign the report"


def predicate(envelope: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the report inside an envelope; nothing is said of who signed it.

    Raises:
        SourceError: It is no attestation of padfix.
    """
    try:
        statement = json.loads(_payload(envelope, name))
    except (ValueError, RecursionError):
        statement = None
    is_ours = (
        isinstance(statement, dict)
        and envelope.get("payloadType") == PAYLOAD_TYPE
        and statement.get("_type") == STATEMENT_TYPE
        and statement.get("predicateType") == PREDICATE_TYPE
        and isinstance(statement.get("predicate"), dict)
    )
    if not is_ours:
        raise SourceError(f"{name} is not an attestation of padfix.", "Write one with --report FILE.json --sign KEY.")
    found: dict[str, Any] = statement["predicate"]
    return found


def key_id(key: Ed25519PublicKey) -> str:
    """Return the SHA-256 of a public key (its SubjectPublicKeyInfo in DER)."""
    serialization, _ = _cryptography()
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


def _to_sign(payload: bytes) -> bytes:
    """Return DSSE's pre-authentication encoding: type and payload, each with its length."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def _payload(envelope: Mapping[str, Any], name: str) -> bytes:
    try:
        return base64.b64decode(envelope["payload"], validate=True)
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise SourceError(f"{name} is damaged: its payload is not base64.") from error


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _key(path: Path, kind: Literal["private", "public"], **settings: Any) -> Any:
    """Return the Ed25519 key of a PEM or OpenSSH file."""
    serialization, kinds = _cryptography()
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UsageError(f"The key {path} can't be read: {error.strerror or error}.") from error
    form = "ssh" if text.startswith(b"ssh-") or b"OPENSSH" in text[:64] else "pem"
    try:
        key = getattr(serialization, f"load_{form}_{kind}_key")(text, **settings)
    except ValueError as error:
        raise UsageError(f"{path} is not a {kind} key in PEM.", _MAKE_A_KEY) from error
    if not isinstance(key, getattr(kinds, f"Ed25519{kind.title()}Key")):
        raise UsageError(f"The key {path} is not an Ed25519 key.", _MAKE_A_KEY)
    return key


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise MissingDependencyError(
            "Signatures need the package cryptography.", 'Install it with: pip install "padfix[sign]"'
        ) from error
    return serialization, ed25519
