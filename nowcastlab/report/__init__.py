"""Tables from what MLflow holds, that say no more than their runs prove.

collect gathers the runs of one table and refuses what must not be mixed; table is the value, tables say which rows and
columns the paper's have, formats how they look. paper is the paper itself, as data.
"""

from nowcastlab.report.collect import Cell, Collection, collect
from nowcastlab.report.formats import FORMATS
from nowcastlab.report.table import Column, Row, Section, Table
from nowcastlab.report.tables import SWEEPS, TABLES

__all__ = ["FORMATS", "SWEEPS", "TABLES", "Cell", "Collection", "Column", "Row", "Section", "Table", "collect"]
