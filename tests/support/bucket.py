"""A bucket of S3 that a server on the loopback has."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest


@contextlib.contextmanager
def s3_bucket() -> Iterator[Any]:
    """Yield the empty bucket ``zoo`` as fsspec sees it; processes that are started find it by their environment."""
    fsspec = pytest.importorskip("fsspec", reason="needs fsspec")
    pytest.importorskip("s3fs", reason="needs s3fs")
    moto = pytest.importorskip("moto.server", reason="moto is not installed")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    settings = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "hunter1",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        store = fsspec.filesystem("s3")
        store.mkdir("zoo")
        yield store
        store.rm("zoo", recursive=True)  # what is in it outlives the server
        store.clear_instance_cache()
    server.stop()
