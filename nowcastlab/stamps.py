"""Time as the data have it: whole minutes since 1970-01-01, by the clock of who took them, whatever its time zone."""

from __future__ import annotations

import datetime as dt

EPOCH = dt.datetime(1970, 1, 1)


def minutes_from_datetime(moment: dt.datetime) -> int:
    return int((moment - EPOCH) // dt.timedelta(minutes=1))


def datetime_from_minutes(minutes: int) -> dt.datetime:
    return EPOCH + dt.timedelta(minutes=int(minutes))


def clock(minutes: int, *, date: bool = True) -> str:
    """A stamp as people read it: 2015-05-22 04:30."""
    return datetime_from_minutes(minutes).strftime("%Y-%m-%d %H:%M" if date else "%H:%M")
