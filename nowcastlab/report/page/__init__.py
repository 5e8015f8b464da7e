"""A report as one HTML file: nothing to fetch, no script, readable on a telephone and in grey print.

markup escapes, tables and pictures and evidence are its parts, page puts them in their order, style.css is its look.
Plain functions rather than templates: the page is mostly made of values that exist, and escaping is the default.
"""

from nowcastlab.report.page.page import as_html, claims_as_html

__all__ = ["as_html", "claims_as_html"]
