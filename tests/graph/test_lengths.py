"""Lengths as expressions: what is understood, and what remains when they are divided."""

from __future__ import annotations

import pytest

from padfix.graph.lengths import declared, is_expression, known_residue, length_of


@pytest.mark.parametrize(
    ("dimension", "modulus", "residue"),
    [
        (37, 32, 5),
        (None, 2, None),
        (None, 1, 0),
        ("h", 2, None),
        ("32*k", 32, 0),
        ("32 * k", 8, 0),
        ("k*32 + 3", 16, 3),
        ("32*k - 1", 32, 31),
        ("32*(k + 1)", 32, 0),
        ("2*h + 4*w", 2, 0),
        ("2*h + 3*w", 2, None),
        ("3*k", 2, None),
        ("(4*k + 6) // 2", 2, 1),
        ("(4*k + 5) // 2", 2, 0),
        ("h // 2", 2, None),
        ("h*w", 2, None),
        ("2*h*w", 2, None),
        ("h**2", 1, 0),
        ("f(4*k)", 4, None),
        ("4*True", 4, None),
        ("4.0*k", 4, None),
        ("4*k; import os", 4, None),
        ("(" * 150, 4, None),
        ("1+" * 5000 + "1", 4, None),
        ("height.1", 2, None),
        ("", 2, None),
    ],
)
def test_residue(dimension: str | int | None, modulus: int, residue: int | None) -> None:
    assert known_residue(dimension, modulus) == residue


@pytest.mark.parametrize("text", ["32*k", "3*a + 2*b - 7", "k + 5", "2*(k + 1)", "-a + 4*b"])
def test_an_expression_reads_as_what_it_is_written_as(text: str) -> None:
    assert is_expression(text)
    assert length_of(length_of(text).dimension()) == length_of(text)
    symbols = {"k": 11, "a": 5, "b": 3}
    assert length_of(text).value(symbols) == eval(text, {}, symbols)


@pytest.mark.parametrize("text", ["dim 2", "(3*h + 1) // 2", "8", "-1", "0", "2*h", "it's", 'a "b"', "\\", "\u4e2d 2"])
def test_a_declared_text_is_a_name_whatever_it_reads_as(text: str) -> None:
    dimension = declared(text)
    assert known_residue(dimension, 2) is None
    assert not is_expression(dimension)
    assert length_of(dimension).factors == ((text, 1),)
    twice = length_of(dimension).times(4).plus(1)
    assert length_of(twice.dimension()) == twice
    assert known_residue(twice.dimension(), 4) == 1


def test_declared_names_and_numbers_are_what_they_are() -> None:
    assert [declared(each) for each in ("h", 5, None)] == ["h", 5, None]


@pytest.mark.parametrize("text", ["8", "-1", "0", "2*8 + 1"])
def test_a_text_without_a_symbol_is_a_name(text: str) -> None:
    assert length_of(text).factors == ((text, 1),)


def test_names_are_no_expressions() -> None:
    assert not any(map(is_expression, ("h", "N", "unk__3", "height.1", "dim 2", "", None, 5)))
