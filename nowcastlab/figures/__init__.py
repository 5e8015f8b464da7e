"""Pictures of radar frames and forecasts. Everything that shows rain uses the one scale in `colours`."""
