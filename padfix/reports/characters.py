"""Making text from a model safe to show: names in a file are anyone's bytes."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return ``text`` with everything that is not a visible character or a space escaped, ``"\x1b"`` for escape.

    Control characters can move a terminal's cursor or change its title, line breaks can forge a line of a report, and
    bidirectional marks can show a name as another; none of them is echoed.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
