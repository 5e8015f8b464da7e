"""The page itself, top to bottom: what was asked, how far to trust it, numbers, pictures, where all of it came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import resources

from nowcastlab.errors import ReportError
from nowcastlab.protocol.examples import Examples
from nowcastlab.report.build import tables_for
from nowcastlab.report.claims import claims_table
from nowcastlab.report.collect import Collection
from nowcastlab.report.cost_table import cost_table
from nowcastlab.report.findings import Findings
from nowcastlab.report.page.comparisons import comparisons_html, forests_html, significance_html
from nowcastlab.report.page.graphs import costs_html, curves_html
from nowcastlab.report.page.markup import Html, join, tag
from nowcastlab.report.page.pictures import gallery, links_html
from nowcastlab.report.page.scores import every_arm, run_names, tested_on
from nowcastlab.report.page.tables import scroll, table_html
from nowcastlab.report.table import Table
from nowcastlab.tracking import TrackedTrial

# Nothing is fetched and no script runs, whatever a run's name says.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
GetExamples = Callable[[TrackedTrial], Examples | None]


def as_html(findings: Findings, tables: Sequence[Table], *, examples: GetExamples, command: str = "") -> str:
    """One file with everything in it. The same runs give the same bytes.

    examples  of a trial, or None where it kept none; asked for once an arm
    command   that makes this page again
    """
    collection = findings.collection
    kept = {
        arm: found for arm in every_arm(findings.collection) if (found := examples(collection.arms[arm][0])) is not None
    }
    runs = run_names(collection)
    sections = [
        ("results", "Results", join(*(table_html(table, runs) for table in tables))),
        ("significance", "What may be believed", join(significance_html(findings), comparisons_html(findings))),
        ("claims", "What the paper claims", _claims(findings)),
        ("pairs", "Every pair of arms", forests_html(findings)),
        ("leads", "Skill by lead time", curves_html(findings)),
        ("cost", "Score against cost", join(costs_html(findings), table_html(cost_table(findings), runs))),
        ("forecasts", "Forecasts beside what was observed", _gallery(findings, kept)),
        ("links", "Where TrajGRU looks", _links(findings, kept)),
        ("data", "The test data, and which error tracks skill", _further(findings, tables)),
        ("provenance", "Where these numbers come from", _provenance([collection], command)),
    ]
    question = str(collection.record.plain.get("question", "")) if collection.record else ""
    header = join(
        tag("h1", question or f"{collection.sweep}: results"), _facts(findings), _warning(findings.standing.marks)
    )
    name = f"{collection.sweep}, {collection.scale} scale"
    return _document(name, header, sections, reminder=_reminder([collection]))


def claims_as_html(table: Table, collections: Sequence[Collection], *, command: str = "") -> str:
    """A page of the paper's claims alone. `collections`: those the table was made from, as `claims_table` was given."""
    runs = {run: name for collection in collections for run, name in run_names(collection).items()}
    sections = [
        ("claims", "What the paper claims", table_html(table, runs)),
        ("provenance", "Where these verdicts come from", _provenance(collections, command)),
    ]
    header = join(tag("h1", table.title), _warning(table.marks))
    return _document(table.title, header, sections, reminder=_reminder(collections))


def _document(name: str, header: Html, sections: Sequence[tuple[str, str, Html]], *, reminder: Html) -> str:
    """Sections with nothing in them are left out."""
    there = [section for section in sections if section[2]]
    links = (tag("li", tag("a", title, href=f"#{key}")) for key, title, _ in there)
    body = join(
        tag("header", header),
        tag("nav", tag("ul", *links), aria_label="Sections"),
        tag("main", *(tag("section", tag("h2", title, reminder), content, id=key) for key, title, content in there)),
    )
    head = join(
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", name),
        tag("style", Html(resources.files(__package__).joinpath("style.css").read_text())),
    )
    return f"<!doctype html>\n{tag('html', tag('head', head), tag('body', body), lang='en')}"


def _facts(findings: Findings) -> Html:
    collection = findings.collection
    seeds = sorted({trial.seed for trials in collection.arms.values() for trial in trials if trial.seed})
    listed = f"seeds {', '.join(map(str, seeds))}" if seeds else "no seeds"
    return tag(
        "p",
        f"Sweep {collection.sweep}, {collection.scale} scale: {len(collection.arms)} arms, {listed}, "
        f"tested on {tested_on(findings)}.",
        class_="facts",
    )


def _warning(marks: Sequence[str]) -> Html:
    return tag("div", *(tag("p", mark) for mark in marks), class_="warning", role="note") if marks else Html()


def _reminder(collections: Sequence[Collection]) -> Html:
    """Beside every heading: a picture of a part of the page should still say what it is not."""
    said = list(dict.fromkeys(f"{one.scale} scale" for one in collections if one.scale != "paper"))
    said += ["synthetic data"] if any(one.synthetic for one in collections) else []
    return tag("span", ", ".join(said), class_="mark") if said else Html()


def _claims(findings: Findings) -> Html:
    """Those that a sweep of this kind can decide; nothing where it has the arms of none, and so no runs behind any."""
    table = claims_table({"mnist" if findings.collection.kind == "digits" else "hko7": findings})
    cells = [cell for section in table.sections for row in section.rows for cell in row.cells]
    tested = any(cell.run_ids for cell in cells if cell is not None)
    return table_html(table, run_names(findings.collection)) if tested else Html()


def _further(findings: Findings, shown: Sequence[Table]) -> Html:
    """The paper's two other tables, which only rain has. One that these runs cannot fill says why."""
    if findings.collection.kind != "radar":
        return Html()
    there = {table.name for table in shown}
    parts = []
    for name in ("rain", "kendall"):
        if name not in there:
            try:
                tables = tables_for(name, findings)
                parts += [table_html(table, run_names(findings.collection)) for table in tables]
            except ReportError as error:
                parts.append(tag("p", str(error)))
    return join(*parts)


def _gallery(findings: Findings, kept: dict[str, Examples]) -> Html:
    if not kept:
        return Html()
    radar = findings.collection.kind == "radar"
    seeds = sorted({findings.collection.arms[arm][0].seed for arm in kept} - {0})
    networks = f" (the networks of seed {', '.join(map(str, seeds))})" if seeds else ""
    words = (
        f"The last frame that was seen, what came after it, and what each arm had forecast{networks}. "
        "Which sequences these are was settled before any forecast was made."
    )
    return join(tag("p", words), gallery(kept, radar=radar))


def _links(findings: Findings, kept: dict[str, Examples]) -> Html:
    with_links = {arm: its for arm, its in kept.items() if its.links is not None}
    if not with_links:
        return Html()
    words = (
        "An arrow goes from a cell of the second encoder layer to the cell that one of its links reads, over the "
        "newest frame the network saw. Of each network the links are shown that differ most from place to place; a "
        "link that points the same way everywhere does what a convolution does."
    )
    radar = findings.collection.kind == "radar"
    drawn = (links_html(arm, its, radar=radar, key=str(i)) for i, (arm, its) in enumerate(with_links.items()))
    return join(tag("p", words), *drawn)


def _provenance(collections: Sequence[Collection], command: str) -> Html:
    """Of each sweep its code, its data and its runs; and what makes the page again."""
    again = join(tag("p", "This page again, byte for byte, from the same runs:"), tag("pre", tag("code", command)))
    return join(again if command else None, *(_origin(collection) for collection in collections))


def _origin(collection: Collection) -> Html:
    facts = {"Sweep": collection.sweep, "Code": collection.code, "Data": collection.data_digest}
    store = collection.record.store if collection.record else {}
    if "title" in store:
        facts["Store"] = str(store["title"])
    items = [join(tag("dt", name), tag("dd", tag("code", value))) for name, value in facts.items()]
    head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in ("arm", "seed", "run in MLflow"))))
    rows = [
        tag(
            "tr",
            tag("th", arm, scope="row"),
            tag("td", str(trial.seed)),
            tag("td", tag("code", trial.run_id)),
            id=f"run-{trial.run_id}",
        )
        for arm in every_arm(collection)
        for trial in collection.arms[arm]
    ]
    runs = scroll(tag("table", head, tag("tbody", *rows), class_="runs"), label=f"all runs of {collection.sweep}")
    return join(tag("dl", *items, class_="list"), tag("h3", f"All {len(rows)} runs"), runs)
