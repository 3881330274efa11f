# SPDX-License-Identifier: BSD-3-Clause
"""Run a program, and end all ranks when one fails: python -m rank PROGRAM.

An exception that the program does not catch ends the job at once, and so does sys.exit() with a code. PROGRAM is a file, -m MODULE, -c CODE, or - for standard input.
"""

from __future__ import annotations

import os
import runpy
import sys
from types import TracebackType

from ._rank import abort

USAGE = "usage: python -m rank {FILE | -m MODULE | -c CODE | -} [ARGUMENT...]"


def run(args: list[str]) -> None:
    """Run the program as Python runs it."""
    if args[0] == "-m" and len(args) > 1:
        sys.argv = args[1:]
        runpy.run_module(args[1], run_name="__main__", alter_sys=True)
    elif args[0] == "-" or (args[0] == "-c" and len(args) > 1):
        code = sys.stdin.read() if args[0] == "-" else args[1]
        sys.argv = [args[0], *args[1 if args[0] == "-" else 2 :]]
        module = type(sys)("__main__")
        sys.modules["__main__"] = module
        exec(compile(code, "<stdin>" if args[0] == "-" else "<string>", "exec"), module.__dict__)
    else:
        sys.argv = args
        sys.path[0] = os.path.dirname(os.path.realpath(args[0]))
        runpy.run_path(args[0], run_name="__main__")


def own(trace: TracebackType | None) -> TracebackType | None:
    """Leave out the frames above the program."""
    at = trace
    while at is not None and at.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        at = at.tb_next
    return at or trace


def end(code: int, text: str) -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    abort(code, text)


def main() -> None:
    args = sys.argv[1:]
    if not args or args[0] in ("-h", "--help") or (args[0] in ("-m", "-c") and len(args) == 1):
        sys.exit(USAGE)
    try:
        run(args)
    except SystemExit as error:
        code = error.code
        if code is None or code == 0:
            raise
        if not isinstance(code, int):
            print(code, file=sys.stderr)
            code = 1
        end(code, f"sys.exit({code})")
    except BaseException as error:
        error.__traceback__ = own(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        end(130 if isinstance(error, KeyboardInterrupt) else 1, f"{type(error).__name__} was not caught")


if __name__ == "__main__":
    main()
