"""A place to write to, on a command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click


class LocalPath(click.Path):
    """A URL is refused while it is still text: as a Path, s3://bucket/x is a folder `s3:` where one stands."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if "://" in os.fspath(value):
            self.fail(f"{value} is not a local path. Write to one, then copy the folder.", param, ctx)
        return super().convert(value, param, ctx)
