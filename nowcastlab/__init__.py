"""nowcastlab: experiment sweeps for radar precipitation nowcasting."""

__version__ = "0.1.0"
