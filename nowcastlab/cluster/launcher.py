"""What Ray's own launcher says to a cluster file. Reads its schema and defaults; asks no cloud."""

from __future__ import annotations

import contextlib
import copy
import io
import logging
from collections.abc import Iterator

from nowcastlab.cluster.document import Document, Finding

KNOWN_PROVIDERS = ("aws", "gcp", "azure", "local", "vsphere", "aliyun")


def ask_ray(document: Document) -> Iterator[Finding]:
    """The first thing that Ray would refuse in the file."""
    kind = document.get("provider", "type")
    if kind not in KNOWN_PROVIDERS:
        known = ", ".join(KNOWN_PROVIDERS)
        yield document.finding(f"Ray knows no provider {kind!r}. It knows: {known}.", "provider", "type")
        return
    from jsonschema import ValidationError
    from ray.autoscaler._private.util import prepare_config, validate_config

    logging.getLogger("ray.autoscaler").setLevel(logging.WARNING)  # it says what it fills in
    try:
        # Ray prints what it thinks, and leaves by SystemExit or a ClickException where it gives up.
        with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(said):
            validate_config(prepare_config(copy.deepcopy(document.plain)))
    except ValidationError as error:
        place = tuple(key for key in error.absolute_path)
        yield document.finding(f"Ray refuses this: {_short(error.message)}", *place, of=_quoted(error.message))
    except (Exception, SystemExit) as error:
        text = str(error) if str(error) not in ("", "None", "1") else said.getvalue()
        yield document.finding(f"Ray refuses this file: {_short(text)}")


def _short(message: str) -> str:
    message = " ".join(message.split())
    return message if len(message) < 300 else f"{message[:297]}..."


def _quoted(message: str) -> str:
    """jsonschema puts what it did not expect in quotes; its line is the better one."""
    return message.split("'")[1][:20] if message.count("'") >= 2 else ""
