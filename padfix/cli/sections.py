"""Help that can be read: options under the heading that they belong to, and examples at the end."""

from __future__ import annotations

import click

_WORDS = {
    "What to write": "destination output_dir in_place no_backup external_data partial no_verify",
    "What to check": "exclude changed_since select ignore",
    "What it must suit": "target opset pads",
    "What fails": "fail_on exit_zero baseline write_baseline",
    "A proof that has to be there": "proof_file proof_source allow_loose_proof verify_key",
    "A runtime": "runtimes repro_folder prove_on",
    "The source": "inputs outputs constants custom_objects signature tag shapes trust",
    "The proof": "reference probes probes_only ranges seed rtol atol locate",
    "The report": "report_format report_file more_reports key_file folder quiet verbose",
    "Many models": "jobs scheduler resumed cache_folder no_cache",
    "Limits and settings": "config_file seconds gibibytes untrusted",
}
SECTIONS = {title: tuple(names.split()) for title, names in _WORDS.items()}
"""Headings in their order, and the names of the parameters below each; a command shows those that it has."""

WIDEST = 100


class SectionedCommand(click.Command):
    """A command whose help lists its options in :data:`SECTIONS`; ``epilog`` holds examples, one a line.

    An option that takes one value is refused where it is given twice: of two targets or limits, one would silently not
    hold.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line; options that take one value have one."""
        words = list(args)
        left = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            _, _, given = self.make_parser(ctx).parse_args(words)
            single = [each for each in given if isinstance(each, click.Option) and not (each.multiple or each.is_flag)]
            for option in single:
                if single.count(option) > 1:
                    raise click.BadParameter("it is given twice, and takes one value.", ctx, option)
        return left

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, each section with its heading; what no section has comes last."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        left = {option.name: record for option in options if (record := option.get_help_record(ctx))}
        for title, names in SECTIONS.items():
            records = [left.pop(name) for name in names if name in left]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
        with formatter.section("Other"):
            formatter.write_dl(list(left.values()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are, so that each can be pasted."""
        lines = (self.epilog or "").strip().splitlines()
        if lines:
            with formatter.section("Examples"):
                for line in lines:
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
