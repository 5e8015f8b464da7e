"""The page: everything in one file, nothing fetched, nothing believed that a run's name says."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from nowcastlab.figures.colours import rgb_from_pixels
from nowcastlab.protocol.examples import Examples
from nowcastlab.report import Findings, find, from_mlflow
from nowcastlab.report.build import tables_for
from nowcastlab.report.claims import claims_table
from nowcastlab.report.page import as_html, claims_as_html
from nowcastlab.report.page.comparisons import significance_html
from nowcastlab.report.page.markup import Html, tag
from nowcastlab.report.page.pictures import gallery, leads_shown, links_html
from nowcastlab.tracking import TrackedTrial, connect

EVIL = "<script>alert('x')</script>"


def examples(trial: TrackedTrial, *, radar: bool = True) -> Examples:
    """Two windows that all arms share; TrajGRU has links."""
    truth = np.random.default_rng(0).integers(0, 256, (2, 20, 12, 12), np.uint8)
    links = np.random.default_rng(1).normal(size=(2, 5, 2, 6, 6)).astype(np.float32)
    return Examples(
        labels=("2015-05-22 04:30", "2015-06-01 12:00"),
        lead_minutes=tuple(range(6, 121, 6)),
        inputs=truth[:, :5],
        truth=truth,
        forecast=truth // 2 + len(trial.arm),
        links=links if trial.arm.startswith("Traj") else None,
        links_stride=2,
        excluded=np.eye(12, dtype=bool) if radar else None,
    )


def page(findings: Findings, name: str, get: Callable[[TrackedTrial], Examples | None] = lambda trial: None) -> str:
    shown = [table for table in tables_for(name, findings) if table.name != "comparisons"]
    return as_html(findings, shown, examples=get, command=f"nowcastlab report --table {name} --format html")


@pytest.fixture(scope="module")
def radar(radar_uri: str) -> Findings:
    return find(*from_mlflow(connect(radar_uri), "hko7-benchmark"))


@pytest.fixture(scope="module")
def radar_page(radar: Findings) -> str:
    return page(radar, "hko7", examples)


@pytest.fixture(scope="module")
def digits(digits_uri: str) -> Findings:
    return find(*from_mlflow(connect(digits_uri), "links-vs-kernel"))


@pytest.fixture(scope="module")
def digits_page(digits: Findings) -> str:
    return page(digits, "mnist")


class Elements(HTMLParser):
    """Every element with its attributes, and whether tags close in order."""

    VOID = ("img", "meta", "br", "col")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((name, dict(attributes)))
        if name not in self.VOID:
            self._open.append(name)

    def handle_startendtag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((name, dict(attributes)))

    def handle_endtag(self, name: str) -> None:
        assert self._open.pop() == name

    def named(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for element, attributes in self.found if element == name]


def test_tags_close_in_order_and_ids_stand_once(radar_page: str) -> None:
    ids = [attributes["id"] for _, attributes in Elements(radar_page).found if "id" in attributes]
    assert len(ids) == len(set(ids)) > 20


def test_every_link_leads_to_a_place_of_the_page(radar_page: str) -> None:
    elements = Elements(radar_page)
    ids = {f"#{attributes['id']}" for _, attributes in elements.found if "id" in attributes}
    references = {attributes["href"] for attributes in elements.named("a")}
    labels = {
        f"#{attributes['aria-labelledby']}" for _, attributes in elements.found if "aria-labelledby" in attributes
    }
    assert references | labels <= ids


def test_nothing_is_fetched(radar_page: str) -> None:
    """Addresses may stand in a page as names of vocabularies; they must not be what something is loaded from."""
    elements = Elements(radar_page)
    sources = [str(v) for _, a in elements.found for k, v in a.items() if k in ("src", "href", "xlink:href", "action")]
    assert all(source.startswith(("data:image/png;base64,", "#")) for source in sources)
    assert not elements.named("link") + elements.named("script") + elements.named("iframe")
    assert not re.search(r"@import|url\((?!#)", radar_page)


def test_the_page_forbids_scripts_and_requests_by_itself(radar_page: str) -> None:
    (policy,) = [a["content"] for a in Elements(radar_page).named("meta") if a.get("http-equiv")]
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")


def test_what_the_runs_are_not_stands_at_the_top_and_beside_every_heading(radar_page: str) -> None:
    header = radar_page[: radar_page.index("<nav")]
    assert "DEMO SCALE: small frames and networks" in header
    assert "SYNTHETIC DATA" in header
    headings = re.findall(r"<h2>(.*?)</h2>", radar_page)
    assert len(headings) == 10
    assert all(heading.endswith('<span class="mark">demo scale, synthetic data</span>') for heading in headings)


def test_the_best_is_bold_and_the_second_underlined_with_their_runs(radar: Findings, radar_page: str) -> None:
    cell = radar.collection.cell("TrajGRU", "offline/bmse")
    assert cell is not None
    best = re.search(rf'<td class="best" title="([^"]*)"><span class="mean">{cell.mean:.0f}</span>', radar_page)
    assert best
    assert all(run in best[1] for run in cell.run_ids)
    second = radar.collection.cell("ConvGRU", "offline/bmse")
    assert second is not None
    assert re.search(rf'<td class="second" [^>]*><span class="mean">{second.mean:.0f}</span>', radar_page)


def test_every_run_has_its_row_which_tables_link_to(radar: Findings, radar_page: str) -> None:
    for arm, trials in radar.collection.arms.items():
        for trial in trials:
            assert f'id="run-{trial.run_id}"' in radar_page
            assert f'<a href="#run-{trial.run_id}">{arm} s{trial.seed}</a>' in radar_page


def test_the_paragraph_on_significance_states_n(radar_page: str) -> None:
    # 3 named pairs, one of them in both settings; 4 networks online against offline; in two scores: 8 x 2
    assert "16 comparisons in B-MSE and B-MAE were settled before the sweep ran." in radar_page
    assert (
        "n = 3 seeds a network (what is not trained has one run), 48 sequences in 12 episodes, 10,000 resamples."
        in radar_page
    )


def test_what_cannot_be_tested_says_why(radar: Findings) -> None:
    arms = {arm: its[:1] for arm, its in radar.collection.arms.items() if arm in ("ConvGRU", "TrajGRU")}
    alone = find(replace(radar.collection, arms=arms), radar.load)
    text = significance_html(alone)
    assert "0 of them show a difference" in text
    assert "8 cannot be tested: TrajGRU (offline) and ConvGRU (offline) have one seed each" in text


def test_the_papers_claims_stand_on_the_page_with_their_verdicts(radar_page: str) -> None:
    section = radar_page[radar_page.index('<section id="claims">') : radar_page.index('<section id="pairs">')]
    assert "<dt>TrajGRU is the best</dt>" in section
    assert "<strong>Verdict: </strong>no verdict on the paper (demo scale; synthetic data)" in section
    assert "More links help" not in section  # a claim about moving digits


def test_a_sweep_with_none_of_the_papers_arms_has_no_claims_section(made: SimpleNamespace) -> None:
    arms = {"Mine": made.radar_arms()["ConvGRU"], "Yours": made.radar_arms()["TrajGRU"]}
    assert 'id="claims"' not in page(made.findings(arms=arms), "hko7")


def test_claims_make_a_page_of_their_own_with_all_their_runs(radar: Findings, digits: Findings) -> None:
    table = claims_table({"hko7": radar, "mnist": digits})
    collections = [radar.collection, digits.collection]
    text = claims_as_html(table, collections, command="nowcastlab report --table claims --format html")
    elements = Elements(text)
    ids = [f"#{attributes['id']}" for _, attributes in elements.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {attributes["href"] for attributes in elements.named("a")} <= set(ids)
    assert text.count("<dt>") == 7 + 3 + 4  # claims; sweep, code and data of each, and the name of the store
    assert "hko7-benchmark: SYNTHETIC DATA" in text[: text.index("<nav")]
    assert text.count('<span class="mark">demo scale, synthetic data</span></h2>') == 2


def test_a_page_of_one_arm_says_what_it_cannot_show(made: SimpleNamespace) -> None:
    text = page(made.findings(arms={"TrajGRU": made.radar_arms()["TrajGRU"]}), "hko7")
    assert "<p>Kendall&#x27;s tau needs runs of two arms at least, got 1.</p>" in text
    assert "Rain rate statistics" in text


def test_forest_plots_hold_every_pair(radar_page: str) -> None:
    assert "B-MSE: 28 comparisons" in radar_page  # 8 arms offline: 8 x 7 / 2
    assert "B-MSE: 6 comparisons" in radar_page  # 4 networks online: 4 x 3 / 2
    assert "B-MSE: 4 comparisons" in radar_page  # each of them online against offline


def test_curves_have_a_panel_a_score_and_setting(radar_page: str) -> None:
    panels = re.findall(r'<title id="leads-(offline|online)-([^"]*)-alt">', radar_page)
    scores = ["csi-0_5", "csi-2", "csi-5", "csi-10", "csi-30", "bmse", "bmae"]
    assert panels == [(setting, score) for setting in ("offline", "online") for score in scores]


def test_every_picture_says_what_it_shows(radar_page: str) -> None:
    elements = Elements(radar_page)
    assert all(image["alt"] for image in elements.named("img"))
    drawn = elements.named("svg")
    assert len(drawn) > 20
    assert all(attributes["role"] == "img" and attributes["aria-labelledby"] for attributes in drawn)


def test_headings_of_tables_say_what_they_head(radar_page: str) -> None:
    elements = Elements(radar_page)
    assert {heading.get("scope") for heading in elements.named("th")} == {"col", "row", "colgroup", "rowgroup"}


def test_forecasts_stand_below_what_was_observed(radar: Findings) -> None:
    kept = {arm: examples(trials[0]) for arm, trials in radar.collection.arms.items()}
    shown = gallery(kept, radar=True)
    sources = [str(image["src"]) for image in Elements(shown).named("img")]
    columns = leads_shown(20)
    assert len(sources) == 2 * (1 + len(columns) * (1 + len(kept)))
    first = next(iter(kept.values()))
    for source, frame in ((sources[0], first.inputs[0, -1]), (sources[1], first.truth[0, columns[0]])):
        png = Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))).convert("RGB")
        np.testing.assert_array_equal(np.asarray(png), rgb_from_pixels(frame, first.excluded))


def test_an_arm_with_other_sequences_is_named_and_not_shown(radar: Findings) -> None:
    kept = {arm: examples(trials[0]) for arm, trials in list(radar.collection.arms.items())[:2]}
    last = list(kept)[-1]
    kept[last] = replace(kept[last], labels=("another", "moment"))
    assert f"Not shown, having kept other sequences: {last}." in gallery(kept, radar=True)


@pytest.mark.parametrize(
    ("leads", "shown"), [(20, [3, 7, 11, 15, 19]), (10, [1, 3, 5, 7, 9]), (3, [0, 1, 2]), (1, [0])]
)
def test_the_leads_shown_are_spread_and_end_with_the_last(leads: int, shown: list[int]) -> None:
    assert leads_shown(leads) == shown


def test_links_are_drawn_for_the_networks_that_have_them(radar_page: str) -> None:
    assert len(re.findall(r"TrajGRU, link \d of 5: arrows over the last input frame", radar_page)) == 3
    assert not re.search(r"ConvGRU, link \d", radar_page)


def test_runs_without_examples_leave_those_sections_out(digits_page: str) -> None:
    assert 'id="leads"' in digits_page
    assert 'id="forecasts"' not in digits_page
    assert 'id="links"' not in digits_page


def test_moving_digits_have_sequences_and_no_episodes(digits_page: str) -> None:
    assert "Sequences and seeds are resampled together, all arms on the same sequences" in digits_page
    assert " episodes" not in digits_page  # but for the name of a field, effective_episodes


def test_the_same_runs_give_the_same_bytes(digits_page: str, digits_uri: str) -> None:
    again = find(*from_mlflow(connect(digits_uri), "links-vs-kernel"))
    assert page(again, "mnist") == digits_page


def test_the_same_examples_give_the_same_bytes(digits: Findings) -> None:
    kept = {arm: examples(trials[0], radar=False) for arm, trials in digits.collection.arms.items()}
    assert gallery(kept, radar=False) == gallery(kept, radar=False)
    one, other = (links_html("Traj-L5", kept["Traj-L5"], radar=False, key="0") for _ in range(2))
    assert one == other


def test_what_a_run_says_is_never_markup(digits: Findings) -> None:
    arms = dict(list(digits.collection.arms.items())[:2])
    renamed = {f"{arm}{EVIL}": tuple(replace(t, arm=f"{arm}{EVIL}") for t in its) for arm, its in arms.items()}
    assert digits.collection.record is not None
    record = replace(digits.collection.record, plain={"question": EVIL, "comparisons": []})
    evil = find(replace(digits.collection, arms=renamed, record=record, code=EVIL), digits.load)

    def get(trial: TrackedTrial) -> Examples:
        return replace(examples(trial, radar=False), labels=(EVIL, EVIL))

    text = page(evil, "mnist", get)
    assert "<script" not in text
    assert "<h1>&lt;script&gt;" in text
    Elements(text)  # and no attribute was broken out of


def test_only_what_is_marked_as_html_is_taken_as_such() -> None:
    assert tag("p", "a < b", Html("<b>c</b>"), title='"') == '<p title="&quot;">a &lt; b<b>c</b></p>'


def test_attributes_that_are_none_are_left_out() -> None:
    assert tag("details", open=True, class_=None, aria_label="x") == '<details open aria-label="x"></details>'
