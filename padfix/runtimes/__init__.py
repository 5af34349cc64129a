"""Deployment runtimes that can be run here: a thin adapter each, in a process of its own."""

from padfix.runtimes.adapter import Request, Runtime, names, open_runtime

__all__ = ["Request", "Runtime", "names", "open_runtime"]
