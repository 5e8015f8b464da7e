"""A search: points of a space tried on Ray, most of them stopped early.

design is the search as a value, folder what it leaves on disk, study what Optuna proposes and remembers, rungs where a
trial waits to hear whether it goes on, driver the run on Ray.
"""

from nowcastlab.sweep.search.design import Choice, Range, Real, Search, Whole
from nowcastlab.sweep.search.folder import SearchFolder

__all__ = ["Choice", "Range", "Real", "Search", "SearchFolder", "Whole"]
