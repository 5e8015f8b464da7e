"""Everything that forecasts."""
