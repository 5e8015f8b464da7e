"""A radar variable out of whatever xarray opens, turned so that time comes first, north is up and east is right."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from data_pipeline.npy_header import LARGEST_SIDE
from data_pipeline.radar_source import RadarSource, minutes_of_times
from nowcastlab.errors import ConfigError, StoreError

if TYPE_CHECKING:
    import xarray as xr

Y_NAMES = ("y", "lat", "latitude", "northing", "row", "yc", "south_north")
X_NAMES = ("x", "lon", "longitude", "easting", "col", "column", "xc", "west_east")


def open_dataset(path: Path, *, variable: str | None, time: str | None, select: dict[str, int]) -> RadarSource:
    """The one variable that holds the radar; the file stays open until the source is closed."""
    import xarray as xr

    options: dict[str, Any] = {}
    if path.suffix.lower() in (".h5", ".hdf5", ".hdf"):
        options = {"engine": "h5netcdf", "phony_dims": "sort"}  # HDF5 need not name its dimensions
    elif path.is_dir():
        options = {"engine": "zarr", "consolidated": False}
    try:
        dataset = xr.open_dataset(path, **options)
    except Exception as error:
        # each of xarray's backends has its own exceptions for a file it cannot read
        raise StoreError(
            f"xarray cannot open {path} ({type(error).__name__}: {error}). "
            "HDF5 and NetCDF 4 need h5netcdf and h5py: pip install 'nowcastlab[hdf5]'."
        ) from error
    try:
        return _source(dataset, path, variable=variable, time=time, select=select)
    except BaseException:
        dataset.close()
        raise


def _source(
    dataset: xr.Dataset, path: Path, *, variable: str | None, time: str | None, select: dict[str, int]
) -> RadarSource:
    array = _chosen(dataset, variable, path)
    time = _time_axis(array, time, path)
    for name, position in select.items():
        if name not in array.dims or not 0 <= position < array.sizes[name]:
            raise ConfigError(f"--select {name}={position}: `{array.name}` has {_sizes(array)}.")
        array = array.isel({name: position})
    array = array.squeeze([name for name in array.dims if array.sizes[name] == 1 and name != time])
    y, x = _plane(array, time)
    if max(array.sizes[y], array.sizes[x]) > LARGEST_SIDE:
        raise StoreError(f"`{array.name}` has {_sizes(array)}: sides are at most {LARGEST_SIDE} pixels.")
    array = array.transpose(time, y, x)
    notes = []
    if _trend(array, y) > 0:
        array = array.isel({y: slice(None, None, -1)})
        notes.append(f"`{y}` grows upward in {path.name}: rows were turned so that north is up.")
    if _trend(array, x) < 0:
        array = array.isel({x: slice(None, None, -1)})
        notes.append(f"`{x}` grows leftward in {path.name}: columns were turned so that east is right.")
    stamps = array[time].to_numpy()
    if stamps.dtype.kind != "M":
        raise StoreError(
            f"`{time}` of {path} is {stamps.dtype}, not a time xarray understands: give it CF units such as "
            "'minutes since 1970-01-01'."
        )
    return RadarSource(
        minutes=minutes_of_times(stamps),
        grid=(array.sizes[y], array.sizes[x]),
        read=functools.partial(_read, array, path),
        units=array.attrs.get("units"),
        chosen={"source_variable": str(array.name), "source_position": _positions(select)},
        notes=notes,
        close=dataset.close,
    )


def _read(array: xr.DataArray, path: Path, position: int) -> NDArray[Any]:
    try:
        return np.asarray(array[position].to_numpy())
    except Exception as error:
        # a damaged chunk shows only here, as whatever the backend raises
        raise StoreError(f"Cannot read frame {position} of {path} ({type(error).__name__}: {error}).") from error


def _chosen(dataset: xr.Dataset, variable: str | None, path: Path) -> xr.DataArray:
    names = [str(name) for name in dataset.data_vars]
    if variable is not None:
        if variable not in names:
            raise ConfigError(f"{path} has no variable {variable!r}. Pass --variable with one of: {', '.join(names)}.")
        return dataset[variable]
    fields = [name for name in names if dataset[name].ndim >= 3]
    if len(fields) != 1:
        raise ConfigError(
            f"{path} has {len(fields)} variables of three or more dimensions. "
            f"Pass --variable with one of: {', '.join(fields or names)}."
        )
    return dataset[fields[0]]


def _time_axis(array: xr.DataArray, time: str | None, path: Path) -> str:
    if time is not None:
        if time not in array.dims:
            raise ConfigError(f"`{array.name}` of {path} has no dimension {time!r}; it has {_sizes(array)}.")
        return time
    found = [str(name) for name in array.dims if name in array.coords and array[name].dtype.kind == "M"]
    if len(found) != 1:
        raise ConfigError(
            f"`{array.name}` of {path} has {len(found)} time dimensions among {_sizes(array)}. "
            "Pass --time with the name of the one that counts the frames."
        )
    return found[0]


def _plane(array: xr.DataArray, time: str) -> tuple[str, str]:
    rest = [str(name) for name in array.dims if name != time]
    if len(rest) != 2:
        more = "Pick one of the others with --select NAME=POSITION." if len(rest) > 2 else ""
        raise ConfigError(f"`{array.name}` has {_sizes(array)}: time and two more are needed. {more}".strip())
    first, second = (name.lower() for name in rest)
    if first in X_NAMES and second in Y_NAMES:
        return rest[1], rest[0]
    return rest[0], rest[1]


def _trend(array: xr.DataArray, name: str) -> float:
    """Above 0 where an axis' coordinate grows along it, below 0 where it falls, 0 where nobody can tell."""
    values = array[name].to_numpy() if name in array.coords else np.zeros(0)
    if values.ndim != 1 or len(values) < 2 or values.dtype.kind not in "iuf":
        return 0.0
    return float(values[-1]) - float(values[0])


def _positions(select: dict[str, int]) -> str:
    return ", ".join(f"{name}={position}" for name, position in sorted(select.items())) or "none"


def _sizes(array: xr.DataArray) -> str:
    return ", ".join(f"{name}={size}" for name, size in array.sizes.items())
