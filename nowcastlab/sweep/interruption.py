"""Ctrl-C while Ray Tune runs a sweep."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable


def ended_by_ctrl_c(fit: Callable[[], object]) -> bool:
    """Run Tune's `fit`, which ends its trials at a Ctrl-C and returns as if all were done; whether it was that.

    Tune takes the signal with a handler of its own, and puts back the one it found only when the signal comes. Where it
    did not come we do: Tune's would swallow the next Ctrl-C, with no trial left to end.
    """
    if threading.current_thread() is not threading.main_thread():
        fit()
        return False  # no signal comes here
    before = signal.getsignal(signal.SIGINT)
    try:
        fit()
        return signal.getsignal(signal.SIGINT) == before
    finally:
        signal.signal(signal.SIGINT, before)
