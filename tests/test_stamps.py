"""Minutes since 1970, there and back, by the data's own clock."""

from __future__ import annotations

import datetime as dt

from nowcastlab.stamps import clock, datetime_from_minutes, minutes_from_datetime


def test_a_moment_comes_back() -> None:
    moment = dt.datetime(2015, 5, 22, 4, 30)
    assert minutes_from_datetime(moment) == (moment.toordinal() - dt.date(1970, 1, 1).toordinal()) * 1440 + 4 * 60 + 30
    assert datetime_from_minutes(minutes_from_datetime(moment)) == moment


def test_seconds_are_left_out_also_before_1970() -> None:
    assert minutes_from_datetime(dt.datetime(1970, 1, 1, 0, 1, 59)) == 1
    assert minutes_from_datetime(dt.datetime(1969, 12, 31, 23, 59, 30)) == -1


def test_the_clock_is_the_data_s_own() -> None:
    assert clock(0) == "1970-01-01 00:00"
    assert clock(1439, date=False) == "23:59"
