"""What stores answer when they don't give a file, in sentences of ours.

The messages of the libraries quote addresses, and with them signatures and tokens, so they are shown where nothing else
is known, and then without them.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterator
from http import HTTPStatus

from padfix.errors import MissingDependencyError, OutputError, PadfixError, SourceError
from padfix.files.urls import Url

SILENCE = 15.0
"""Seconds after which a store that says nothing counts as silent."""

SLOWEST = 32 * 1024
"""Bytes a second; a store that sends less counts as silent too."""

INSTALL = 'pip install "padfix[remote]"'

_AGAIN = "Try again; look whether the store can be reached from here."
_ACCESS = "Check what the store's own tools find with the same credentials; padfix leaves them to fsspec."

_BUSY = frozenset({429, 500, 502, 503, 504})

_CUT = frozenset(
    {"ClientPayloadError", "ServerDisconnectedError", "ConnectionResetError", "IncompleteReadError", "IncompleteRead"}
    | {"ContentLengthError", "ResponseStreamingError", "ConnectionAbortedError"}
)

# Names of classes of exceptions -> what is wrong, and a hint. The first row that fits holds.
_BY_CLASS: tuple[tuple[frozenset[str], str, str], ...] = (
    (
        frozenset({"TimeoutError", "FSTimeoutError", "ReadTimeoutError", "ConnectTimeoutError", "Timeout", "timeout"}),
        f"does not answer within {SILENCE:.0f} s",
        _AGAIN,
    ),
    (
        frozenset({"FileExpired"}),
        "was changed while padfix read it",
        "Run again when nothing writes to it.",
    ),
    (
        frozenset({"ClientConnectorDNSError", "gaierror"}),
        "can't be reached: its host is not known",
        "Check the spelling, and the network.",
    ),
    (
        frozenset({"ClientConnectorCertificateError", "SSLError", "SSLCertVerificationError"}),
        "can't be reached: the certificate of its host is not to be trusted",
        "Check the address; a proxy of your own may need its certificate named in SSL_CERT_FILE.",
    ),
    (
        frozenset({"NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError", "NoAuthTokenError"}),
        "can't be read: there are no credentials for its store",
        _ACCESS,
    ),
    (_CUT, "can't be read: the connection was cut", _AGAIN),
    (
        frozenset({"ClientConnectorError", "EndpointConnectionError", "ConnectionRefusedError", "ConnectError"}),
        "can't be reached: nobody answers there",
        _AGAIN,
    ),
    (frozenset({"TooManyRedirects"}), "leads from one address to the next without end", "Name the file itself."),
    (frozenset({"InvalidURL", "InvalidUrlClientError"}), "is no address that can be asked", "Check the spelling."),
    (frozenset({"FileNotFoundError", "NoSuchKey", "NoSuchBucket"}), "does not exist", "Check the URL."),
    (frozenset({"IsADirectoryError"}), "is a folder", "Name a file in it."),
    (frozenset({"PermissionError"}), "may not be read", _ACCESS),
    (frozenset({"BadZipFile"}), "is in an archive that is damaged, or none", "Check the URL."),
)

_BY_STATUS = {
    401: ("may not be read: the store wants other credentials (401)", _ACCESS),
    403: ("may not be read (403)", _ACCESS),
    404: ("does not exist (404)", "Check the URL."),
    407: ("can't be reached: the proxy wants credentials (407)", "Check the proxy's settings."),
    410: ("does not exist any more (410)", "Check the URL."),
    412: ("was changed while padfix read it", "Run again when nothing writes to it."),
    429: ("can't be read: the store has had too many requests (429)", "Try again later, with fewer --jobs."),
}


@contextlib.contextmanager
def told(url: Url, *, writing: bool = False) -> Iterator[None]:
    """Let what goes wrong inside be told in a sentence.

    Raises:
        SourceError: Something did; an :class:`OutputError` where one is ``writing``.
        MissingDependencyError: The package that knows the protocol is not installed.
    """
    try:
        yield
    except (PadfixError, MemoryError):
        raise
    except ImportError as error:
        raise missing_package(url, error) from None
    except Exception as error:
        words, hint = _explained(error, url)
        _forget(error)
        if writing:
            words = words.replace("may not be read", "may not be written").replace("can't be read", "can't be written")
            raise OutputError(f"{url} {words}.", f"Nothing was written. {hint}".strip()) from None
        raise SourceError(f"{url} {words}.", hint) from None


def _forget(error: BaseException) -> None:
    """Let go of what the libraries held when they failed: signed addresses, and files that complain when they go."""
    before, sys.unraisablehook = sys.unraisablehook, lambda complaint: None
    try:
        for each in _chain(error):
            traceback.clear_frames(each.__traceback__)
    finally:
        sys.unraisablehook = before


def missing_package(url: Url, error: ImportError) -> PadfixError:
    """Return the error for a protocol whose package is not there, with the command that installs it."""
    causes = [each for each in _chain(error) if isinstance(each, ModuleNotFoundError) and each.name]
    package = (causes[-1].name or "").partition(".")[0] if causes else ""
    needs_extra = package in ("fsspec", "aiohttp", "yarl", "requests", "")
    needed = f"the package {package}" if package else "a package that is not there"
    return MissingDependencyError(
        f"{url} can't be opened: {url.protocol}:// needs {needed}.",
        INSTALL if needs_extra else f"pip install {package}",
    )


def is_passing(error: BaseException) -> bool:
    """Whether asking again may help: the connection was cut, or the store is busy."""
    chain = _chain(error)
    if any(_classes(each) & _CUT for each in chain):
        return True
    return any((_status(each) or 0) in _BUSY for each in chain)


def _explained(error: BaseException, url: Url) -> tuple[str, str]:
    """Return what is wrong and what to do; the deepest cause knows best."""
    chain = _chain(error)
    is_cut = any(_classes(each) & _CUT for each in chain)  # aiohttp gives such a one a status of its own
    for each in () if is_cut else reversed(chain):
        status = _status(each)
        if status is not None and status >= 400:
            words, hint = _BY_STATUS.get(status) or _of_status(status)
            return words, f"A signed URL may be too old. {hint}" if status == 403 and url.is_web else hint
    for names, words, hint in _BY_CLASS:
        if any(names & _classes(each) for each in chain):
            return words, hint
    if isinstance(error, OSError) and error.strerror:
        return f"can't be read: {url.without_secrets(error.strerror).rstrip('.')}", ""
    said = url.without_secrets(str(error)).strip().partition("\n")[0].rstrip(".")
    return f"can't be read: {type(error).__name__}{': ' if said else ''}{said}", _ACCESS


def _of_status(status: int) -> tuple[str, str]:
    name = next((each.phrase for each in HTTPStatus if each.value == status), "")
    return f"can't be read: its store answers {f'{status} {name}'.strip()}", "Try again later." * (status >= 500)


def _status(error: BaseException) -> int | None:
    """Return the HTTP status that an exception of one of the libraries tells of."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        response = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    for status in (getattr(error, "status", None), response, getattr(response, "status_code", None)):
        if isinstance(status, int) and 100 <= status < 600:
            return status
    code = None if hasattr(error, "status") else getattr(error, "code", None)
    return code if isinstance(code, int) and 400 <= code < 600 else None


def _classes(error: BaseException) -> set[str]:
    return {each.__name__ for each in type(error).__mro__}


def _chain(error: BaseException) -> list[BaseException]:
    """Return an exception and what it came from, the outermost first."""
    chain: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in chain:
        chain.append(following)
        following = following.__cause__ or following.__context__
    return chain
