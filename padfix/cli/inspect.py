"""``padfix inspect``: the table of windowed and resampling operators."""

from __future__ import annotations

import sys
from typing import Any

import click

from padfix.cli import options
from padfix.cli.sections import SectionedCommand
from padfix.files.stores.traffic import counted
from padfix.files.urls import Place
from padfix.process import watch
from padfix.reports.characters import printable

EXAMPLES = """
padfix inspect model.pb
padfix inspect model.onnx --format json
"""


@click.command("inspect", cls=SectionedCommand, epilog=EXAMPLES)
@click.argument("model", type=options.PLACE)
@options.format_option(["table", "json", "config"], "config: a plain block for each pooling operator.")
@options.shape_option
@options.signature_option
@options.tag_option
@options.custom_option
@options.trust_option
@options.limit_options
def command(model: Place, *, report_format: str, limits: options.Limits, **settings: Any) -> int:
    """List kernel, strides, dilations, padding and layout of every windowed or resampling operator of MODEL."""
    from padfix import api

    limits.apply([model])
    with watch.doing(f"padfix (reading {printable(str(model))})"), counted() as traffic:
        records = api.inspect(model, **settings)
    if report_format == "json":
        from padfix.reports import json

        click.echo(json.operators(str(model), records, traffic.fetched()), nl=False)
    else:
        from padfix.reports import operators, sentences

        render = operators.config if report_format == "config" else operators.table
        click.echo(render(records), nl=False)
        if (told := traffic.fetched()) is not None:
            print(f"padfix: {sentences.fetched([told]).removeprefix('; ')}", file=sys.stderr)
    return 0
