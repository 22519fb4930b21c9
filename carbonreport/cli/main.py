"""`carbonreport`: commands are imported when they are called, errors are one line."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

import click

from carbonreport import __version__
from carbonreport.errors import CarbonreportError

_COMMANDS = {
    "run": "Run a command and measure its energy.",
    "show": "Show the footprint of records.",
    "statement": "Write the energy statement of records.",
    "estimate": "Write a record of a run that nobody measured.",
    "import": "Read energy logs of other tools: what they hold, and what they cannot say.",
    "when": "Say when and where to run a job, or that it is not worth it.",
    "wait": "Start a command when the grid is at its best within a time.",
    "sweep": "Try a command under power caps, and say which is worth it, if any.",
    "plan": "Plan the clocks of kernels and passes, switches paid for, or say not to switch.",
    "audit": "Audit a lab's year: whose energy, how well known, what to do first.",
    "styles": "List the styles of a statement.",
    "verify": "Recompute a statement and find any changed digit.",
    "refresh": "Fetch the hours of runs that had no network.",
    "grid": "Look at grid zones and their typical days.",
    "restore": "Put GPUs back as they were before runs that died.",
    "doctor": "Say what this machine can measure, and what would help.",
}
_MODULES = {"import": "imports"}  # a module cannot be called by a word of the language


class _ReaderGone(Exception):
    """The reader of standard output has left; nothing is left to say."""


class _Lazy(click.Group):
    """Imports a command's module when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"carbonreport.cli.{_MODULES.get(cmd_name, cmd_name)}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. Click itself would make an exit code 1 of a reader that has gone."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderGone from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Lazy, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="carbonreport")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Energy and carbon of machine learning: measure a run, charge it hour by hour, print an honest statement."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Entry point: 0 done, 1 bad input, 2 usage, each with one line on standard error; `run` returns its command's code."""
    try:
        code = cli.main(args=None if arguments is None else list(arguments), prog_name="carbonreport", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        _say(f"{error.format_message().rstrip('.')}{_dashes(error)}; see {error.ctx.command_path if error.ctx else 'carbonreport'} -h")
        sys.exit(error.exit_code)
    except click.ClickException as error:
        _say(error.format_message())
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except (BrokenPipeError, _ReaderGone):
        _drop_output()
        sys.exit(0)
    except UnicodeEncodeError as error:
        _drop_output()
        _say(
            f"standard output is {error.encoding}, which has no {error.object[error.start]!a}; set PYTHONIOENCODING=utf-8, or a locale such as C.UTF-8"
        )
        sys.exit(1)
    except OSError as error:
        _drop_output()
        _say(f"{error.filename or 'cannot write standard output'}: {error.strerror or error}")
        sys.exit(1)
    except CarbonreportError as error:
        _say(str(error))
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def _dashes(error: click.UsageError) -> str:
    """The way out where an option that we do not know may be one of the command that is to be run."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return ""
    runs_another = any(param.type is click.UNPROCESSED for param in error.ctx.command.params if isinstance(param, click.Argument))
    return f"; options of the command go behind --: {error.ctx.command_path} … -- COMMAND {error.option_name} …" if runs_another else ""


def _drop_output() -> None:
    """Let nothing be flushed to standard output at the exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(message: str) -> None:
    click.echo(f"carbonreport: error: {one_line(message)}", err=True)


def one_line(text: str) -> str:
    """A message without line breaks or other control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


if __name__ == "__main__":
    main()
