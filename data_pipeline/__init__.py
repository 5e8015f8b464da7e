"""From raw radar files, or none, to one zarr store. `python -m data_pipeline --help`."""
