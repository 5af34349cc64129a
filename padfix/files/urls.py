"""What is meant by an argument that may be a URL, and how a URL is shown: without what opens the door.

A URL's user name and password, its query and its fragment (a presigned signature, a token) are credentials. They go to
the store and nowhere else: whatever is printed, written or named after a URL comes from ``str(url)``.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

# Compiled when they are first used, which for plain paths is never.
_URL = r"(?is)[a-z][a-z0-9+.-]*(?:::.*)?://"
_IN_TEXT = r"(?i)[a-z][a-z0-9+.-]*(?:::[^\s'\"<>]*)?://[^\s'\"<>]*"
_WORD = r"[\w.~+%-]{3,}"
_SECRET = r"(?s)\?(?=.*[=@])"
_USER = r"[^/@]*:[^/@]*@"
_PATTERN = r"[*?\[]"

WEB = frozenset({"http", "https"})
"""Protocols in which a question mark begins a query, and no folder can be listed."""

_LOCAL = frozenset({"file", "local"})
_NAMES_BEFORE_AT = frozenset({"abfs", "abfss", "adl", "az", "github", "wasb", "wasbs"})
"""Protocols in which a container or a repository stands where others have a user."""

HIDDEN = "…"
"""What is shown in the place of a credential."""


@dataclass(frozen=True)
class Url:
    """A file or folder of a store, by an address that fsspec takes; chained ones (``zip://a::s3://b``) as well.

    Attributes:
        address: All of it, credentials included: for opening, never for showing.
        state: What the store said of the file when it listed it, which changes with its content; None where that is not
            known. It is no part of what the URL is.
    """

    address: str = field(repr=False)
    state: str | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        """Return the address without credentials."""
        return shown(self.address)

    def __repr__(self) -> str:
        """Return the same: a repr ends in logs."""
        return f"Url({str(self)!r})"

    def without_secrets(self, text: str) -> str:
        """Return a text of somebody else without what the address holds and does not show, and without other URLs'."""
        words = set(re.findall(_WORD, self.address)) - set(re.findall(_WORD, str(self)))
        for word in sorted(words, key=len, reverse=True):
            text = text.replace(word, HIDDEN)
        return without_credentials(text)

    @property
    def protocol(self) -> str:
        """The protocol that is asked, the outermost of a chain."""
        return self.address.partition("://")[0].partition("::")[0]

    @property
    def is_web(self) -> bool:
        """Whether it is ``https://`` or ``http://``: one file, and nothing around it can be listed."""
        return self.protocol in WEB

    @property
    def is_pattern(self) -> bool:
        """Whether it holds ``*``, ``?`` or ``[`` in its path."""
        return not self.is_web and re.search(_PATTERN, self.part[1]) is not None

    @property
    def part(self) -> tuple[str, str, str]:
        """What stands before the path, the path, and what stands behind it (a query, the rest of a chain)."""
        start = self.address.index("://") + 3
        chained = -1 if self.is_web else self.address.find("::", start)
        end = len(self.address) if chained < 0 else chained
        path = self.address[start:end]
        cut = _query_start(self.address[: start - 3].rpartition("::")[2], path)
        return self.address[:start], path[:cut], path[cut:] + self.address[end:]

    def at(self, path: str) -> Url:
        """Return the URL of another path of the same store."""
        before, _, behind = self.part
        return Url(before + path + behind)

    def below(self, name: str) -> Url:
        """Return the URL of what is called so in this folder."""
        return self.at(f"{self.part[1].rstrip('/')}/{name}")

    @property
    def around(self) -> Place | None:
        """What holds the file, in a chain: the archive of a member; None where nothing does."""
        before, chained, rest = self.address.partition("::")
        return placed(rest) if chained and "://" in before and not self.is_web else None

    @property
    def name(self) -> str:
        """The last part of the path."""
        before, path, _ = self.part
        return shown(before + path).rstrip("/").rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """Of the name, with its dot."""
        return Path(self.name).suffix

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return Path(self.name).stem


Place = Path | Url
"""Where a model is."""


def matched(place: Place) -> Path | str:
    """Return what patterns of a configuration are held against: the path, or the URL as it is shown."""
    return place if isinstance(place, Path) else str(place)


def is_url(text: str) -> bool:
    """Whether a text is written like a URL."""
    return "://" in text and re.match(_URL, text) is not None


def placed(argument: str | os.PathLike[str] | Url) -> Place:
    """Return what an argument means: a URL where it is written like one and no file has that name, else a path.

    ``file://`` URLs are paths.
    """
    if isinstance(argument, Path | Url):
        return argument
    text = os.fspath(argument)
    if not is_url(text) or os.path.lexists(text):
        return Path(text)
    start, separator, rest = text.partition("://")
    protocols = start.lower()
    if protocols in _LOCAL:
        return Path(rest if rest.startswith("/") else f"./{rest}")
    return Url(protocols + separator + rest)


def shown(address: str) -> str:
    """Return an address without user information, query and fragment."""
    parts = []
    for number, part in enumerate(address.split("::")):
        if "://" in part:
            parts.append(_without_credentials(part))
        elif number and (HIDDEN in parts[-1] or "@" in part or re.search(_SECRET, part)):
            parts[-1] = parts[-1] if parts[-1].endswith(HIDDEN) else parts[-1] + HIDDEN  # it was cut within a secret
        else:
            parts.append(part)
    return "::".join(parts)


def without_credentials(text: str) -> str:
    """Return a text of somebody else in which each URL is as :func:`shown`."""
    return re.sub(_IN_TEXT, lambda found: shown(found[0]), text)


def _query_start(protocol: str, path: str) -> int:
    """Return where the path ends and a query or a fragment begins.

    Keys of stores may hold question marks, and patterns do; there a query is what looks like one.
    """
    form = r"[?#]" if protocol in WEB else r"\?(?=[^/]*=)"
    found = re.search(form, path)
    return found.start() if found else len(path)


def _without_credentials(part: str) -> str:
    start, _, rest = part.partition("://")
    protocol = start.lower()
    secret = re.search(_SECRET, rest) if protocol not in WEB else None
    cut = secret.start() if secret else _query_start(protocol, rest)
    mark = rest[cut : cut + 1] + HIDDEN if rest[cut + 1 :] else rest[cut:]
    host, slash, path = rest[:cut].partition("/")
    user, at, server = host.rpartition("@")
    if at and not (protocol in _NAMES_BEFORE_AT and (protocol == "github" or ":" not in user)):
        host = server
    elif not at and protocol not in _NAMES_BEFORE_AT and _holds_password(host):
        # A password with a slash or a question mark in it, which should have been escaped.
        _, at, path = path.rpartition("@")
        host, slash, path = path.partition("/") if at else (HIDDEN, "", "")
    return f"{start}://{host}{slash}{re.sub(_USER, '', path)}{mark}"


def _holds_password(host: str) -> bool:
    """Whether what stands behind a colon is no port."""
    name, colon, port = host.rpartition(":")
    return bool(colon) and bool(port) and not port.isdigit() and not name.startswith(("[", "arn"))
