"""Tables from what MLflow holds, that say no more than their runs prove.

source reads runs, from MLflow or from files; collect refuses what must not be mixed; findings is all that the runs
show: comparisons, curves by lead, cost; standing what they may be said to prove. table is the value, tables say which
rows and columns the paper's have, formats how they look. paper is the paper itself, as data.
"""

from nowcastlab.report.collect import Cell, Collection, collect
from nowcastlab.report.cost import CostRow
from nowcastlab.report.findings import Findings, LeadCurve, PairFinding, find
from nowcastlab.report.formats import FORMATS, render
from nowcastlab.report.source import Load, ScoreFile, from_files, from_mlflow
from nowcastlab.report.standing import Standing, standing
from nowcastlab.report.table import Column, Entry, Row, Section, Table
from nowcastlab.report.tables import SWEEPS, TABLES

__all__ = [
    "FORMATS",
    "SWEEPS",
    "TABLES",
    "Cell",
    "Collection",
    "Column",
    "CostRow",
    "Entry",
    "Findings",
    "LeadCurve",
    "Load",
    "PairFinding",
    "Row",
    "ScoreFile",
    "Section",
    "Standing",
    "Table",
    "collect",
    "find",
    "from_files",
    "from_mlflow",
    "render",
    "standing",
]
