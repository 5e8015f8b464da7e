"""A page's blocks, one after another in one process, so that torch is imported once a page and not once a command.

Reads a JSON list of steps from standard input: {"where": ..., "python": TEXT}, or {"where": ..., "words": [...],
"to": FILE}. A command runs as in a process of its own, from its main function and with its own arguments. The first
that fails ends it.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import sys
from typing import Any


def call(words: list[str]) -> None:
    match words:
        case ["export", *pairs]:
            os.environ.update(pair.split("=", 1) for pair in pairs)
        case ["nowcastlab", *_]:
            from nowcastlab.cli import main

            sys.argv = words
            main()
        case ["python", "-m", "data_pipeline", *rest]:
            from data_pipeline.__main__ import main_group
            from nowcastlab.cli.verbs import run

            sys.argv = ["data_pipeline", *rest]
            run(main_group)
        case ["python", file, *rest]:
            sys.argv = [file, *rest]
            runpy.run_path(file, run_name="__main__")
        case _:
            raise SystemExit(f"not a command that blocks may run: {words[0]}. Mark it <!-- not run: REASON -->")


def step(given: dict[str, Any]) -> None:
    with contextlib.ExitStack() as stack:
        if given.get("to"):
            stack.enter_context(contextlib.redirect_stdout(stack.enter_context(open(given["to"], "w"))))
        try:
            if "python" in given:
                exec(compile(given["python"], given["where"], "exec"), {"__name__": "__main__"})
            else:
                call(given["words"])
        except SystemExit as ended:
            if ended.code:
                sys.exit(f"{given['where']}: {' '.join(given.get('words', ['python']))} ended with {ended.code}")


if __name__ == "__main__":
    sys.path[0] = ""  # as for a person in this folder
    for given in json.load(sys.stdin):
        step(given)
