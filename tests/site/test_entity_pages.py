"""Pages of entities and tables: one for each row, all text escaped, every value linked to its source."""

from __future__ import annotations

import csv
import gzip
import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

import factorykit as fk
from factorykit.data import tables
from factorykit.site import entity_pages, page_layout, table_data
from factorykit.site.sources import Project

QUERIES = Path(__file__).with_name("queries.csv")
"""Search queries as readers type them, and the address of the answer as a pattern."""
FIND = Path(entity_pages.__file__).parent / "theme" / "find.js"


def text_of(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", page.read_text("utf-8")))


def test_every_row_of_a_table_of_entities_has_a_page(site):
    for kind in table_data.PAGES:
        key = next(f["name"] for f in tables.resources()[kind]["schema"]["fields"] if f.get("entity"))
        keys = set(fk.table(kind).select(key).collect()[key])
        assert {path.stem for path in (site / "entities" / kind).glob("*.html")} == keys


def test_every_table_has_a_browser(site):
    assert {path.stem for path in (site / "tables").glob("*.html")} == set(tables.resources())


def test_a_value_is_shown_with_its_source_and_locator(site):
    text = text_of(site / "entities" / "clusters" / "meta_24k.html")
    assert "24,600" in text or "24,576" in text
    assert "The Llama 3 Herd of Models" in text
    assert "section 3.3.1" in text
    assert "the operator's own paper" in text


def test_every_public_source_links_to_its_address(site):
    for source, url in fk.table("sources").select("source", "url").collect().drop_nulls().iter_rows():
        page = (site / "entities" / "sources" / f"{source}.html").read_text("utf-8")
        assert f'href="{url}"' in html.unescape(page), source


def test_every_link_between_pages_has_a_target(site):
    for page in (site / "entities").rglob("*.html"):
        for address in re.findall(r'href="(\.\./(?:\w+/)?[\w.]+\.html)"', page.read_text("utf-8")):
            assert (page.parent / address).resolve().is_file(), (page, address)


def test_pages_lead_both_ways(site):
    chip = (site / "entities" / "accelerators" / "h100_sxm.html").read_text("utf-8")
    assert "../clusters/meta_24k.html" in chip
    assert "../accelerators/h100_sxm.html" in (site / "entities" / "clusters" / "meta_24k.html").read_text("utf-8")


def test_measured_runs_are_on_the_page_of_their_model_with_precision_and_batch(site):
    page = (site / "entities" / "models" / "llama_3_1_405b.html").read_text("utf-8")
    assert re.search(r"bf16\s+[\d,]+ × [\d,]+\s+6\.\d+ s\s+6\.72 s", html.unescape(re.sub(r"<[^>]+>", " ", page)))
    assert page.index("Measured on") < page.index(" more</summary>")
    assert "Measured on" not in (site / "entities" / "runs" / "llama_3_1_405b.html").read_text("utf-8")
    assert not any("-0 %" in page.read_text("utf-8") for page in (site / "entities" / "models").glob("*.html"))


def test_a_power_that_was_reported_names_its_source_and_a_computed_one_the_formula(site):
    def power(cluster: str) -> str:
        page = (site / "entities" / "clusters" / f"{cluster}.html").read_text("utf-8")
        cell = re.search(r"Facility power</th><td>(.*?)</td><td rowspan[^>]*>(.*?)</td>", page, re.S)
        return html.unescape(re.sub(r"<[^>]+>", " ", f"{cell[1]} {cell[2]}"))

    assert "211 kW" in power("nyu_torch")
    assert "TOP500" in power("nyu_torch")
    assert "232 kW" in power("nyu_torch")
    assert "GPU Clusters" in power("nvidia_israel_blackwell_supercomputer")
    assert "Computed by this formula" in power("g42_microsoft_100mw_uae_cluster")


def test_plans_are_called_plans_and_drawn_dashed(site):
    planned = text_of(site / "entities" / "clusters" / "g42_microsoft_100mw_uae_cluster.html")
    assert re.search(r"planned: 55,000 chips", planned)
    site_ahead = text_of(site / "entities" / "sites" / "openai_stargate_new_mexico.html")
    assert re.search(r"planned: 2\.21 GW of facility power; as many chips", site_ahead)
    assert "as many chips as 0" not in text_of(site / "entities" / "sites" / "openai_stargate_lordstown.html")
    assert re.search(r"Planned for\s+Q3 2025, not reported to run by 2026-04-24", planned)
    place = site / "entities" / "sites" / "google_storey_county.html"
    assert "dashed as planned: 389 MW for 2027-06-30" in text_of(place)
    solid, dashed = re.findall(r'<path d="(M\d+,[^"]+)"(?: stroke-dasharray="4 4")?/>', place.read_text("utf-8"))[:2]
    assert dashed.startswith("M")
    assert not solid.endswith("V10")
    assert "H560" in dashed


def test_the_price_of_a_site_is_that_of_its_area_and_year(site):
    text = text_of(site / "entities" / "sites" / "google_storey_county.html")
    assert re.search(r"United States, NV, industrial, average of 2023\s+Electric Power Annual", text)


def test_a_plan_is_offered_on_chips_that_can_be_planned(site):
    pages = {
        chip: text_of(site / "entities" / "accelerators" / f"{chip}.html")
        for chip in ("maia_200", "b100", "b200", "h800_sxm", "mi355x")
    }
    assert "Plan a run on this chip" not in pages["maia_200"]
    assert all("Plan a run on this chip, with a price of your own" in pages[chip] for chip in ("b100", "mi355x"))
    assert "Plan a run on this chip," not in pages["h800_sxm"]
    assert "2.00 USD/h to rent, stated" in pages["h800_sxm"]
    assert "Plan a run on this chip," not in pages["b200"]
    assert "Plan a run on this chip" in pages["b200"]


def test_no_key_and_no_long_float_is_printed_as_a_value(site):
    for page in list((site / "entities" / "clusters").glob("*.html"))[:80]:
        facts = re.findall(r'<th scope="row"[^>]*>[^<]*</th><td>(.*?)</td>', page.read_text("utf-8"))
        for fact in facts:
            shown = re.sub(r"<[^>]+>", "", fact)
            assert not re.search(r"\d\.\d{7,}", shown), (page, shown)


def test_no_name_of_an_entity_has_an_empty_bracket():
    for kind in table_data.PAGES:
        frame = fk.table(kind).collect().select(pl.col(pl.String).exclude("locator"))
        assert not [text for column in frame for text in column.drop_nulls() if "()" in text], kind


def test_the_query_on_a_page_gives_its_row(site):
    page = html.unescape((site / "entities" / "clusters" / "xai_colossus.html").read_text("utf-8"))
    query = re.search(r'fk\.sql\("(from clusters where [^"]+)"\)', page)[1]
    assert fk.sql(query)["cluster"].to_list() == ["xai_colossus"]
    query = re.search(r'fk\.sql\("(from statements where [^"]+)"\)', page)[1]
    assert fk.sql(query).height > 30


def test_a_page_of_an_entity_is_small(site):
    def packed(*files: Path) -> int:
        return sum(len(gzip.compress(file.read_bytes(), 6)) for file in files)

    around = packed(*(site / "entities" / "assets").iterdir())
    for page in (site / "entities").rglob("*.html"):
        assert around + page.stat().st_size < 120_000 or around + packed(page) < 120_000, page
    for page in (site / "tables").glob("*.html"):
        assert around + packed(page, page.with_suffix(".js")) < 120_000, page


def test_the_parts_of_a_large_table_hold_all_its_rows(site):
    files = sorted((site / "tables").glob("statements*.js"), key=lambda file: (len(file.name), file.name))
    parts = [json.loads(re.search(r"[{\[].*[}\]]", file.read_text("utf-8"))[0]) for file in files]
    assert parts[0]["parts"] == len(parts) - 1 > 0
    columns = [part["columns"] if place == 0 else part for place, part in enumerate(parts)]
    whole = fk.table("statements").collect()
    for place, field in enumerate(parts[0]["fields"]):
        cells: list[object] = []
        for column in (part[place] for part in columns):
            cells += [column["words"][at] for at in column["at"]] if isinstance(column, dict) else column
        assert cells == whole[field["name"]].to_list(), field["name"]
    assert parts[0]["shown"][:3] == ["kind", "entity", "field"]


def test_text_of_a_table_is_shown_and_never_read(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    shutil.copy(tables.data_folder() / tables.DESCRIPTOR, folder)
    page_layout = fk.table("sources").collect()
    spoilt = page_layout.with_columns(
        title=page_layout["title"].replace(page_layout["title"][0], "<script>alert(1)</script>")
    )
    spoilt.write_parquet(folder / "sources.parquet")
    entity_pages.write(folder, tmp_path / "out")
    page = (tmp_path / "out" / "entities" / "sources" / f"{page_layout['source'][0]}.html").read_text("utf-8")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in (tmp_path / "out" / "tables" / "sources.js").read_text("utf-8")


def test_kept_pages_are_used_until_an_input_changes_or_they_are_damaged(tmp_path, monkeypatch):
    folder, cache = tmp_path / "data", tmp_path / "cache"
    folder.mkdir()
    (folder / "datapackage.json").write_text(json.dumps({"resources": [], "version": "1"}))
    calls = []

    def write(data, out, around):
        calls.append(out)
        out.mkdir(exist_ok=True)
        (out / "a.html").write_text("a page")
        return [["a.html", "A", "", "", ""]]

    def add():
        return entity_pages.add(Project(tmp_path, {}, ()), tmp_path / "out", page_layout.PageContext(), cache)

    monkeypatch.setattr(entity_pages, "write", write)
    assert add() == add()
    assert len(calls) == 1
    (folder / "datapackage.json").write_text(json.dumps({"resources": [], "version": "2"}))
    add()
    assert (len(calls), len(list(cache.iterdir()))) == (2, 2)
    (calls[-1] / "a.html").write_text("a p")
    add()
    assert (len(calls), (calls[-1] / "a.html").read_text()) == (3, "a page")


def test_numbers_are_for_reading():
    shown = [
        table_data.number({"name": "tdp_w", "unit": unit}, value) for unit, value in (("W", 1.2e6), ("USD", 6.3e10))
    ]
    assert shown == ["1.2 MW", "63 billion USD"]
    assert table_data.number({"name": "year", "unit": "a"}, 2025.0) == "2025"


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_every_query_of_the_golden_list_is_answered_among_the_first_three(site):
    wanted = dict(csv.reader(QUERIES.read_text("utf-8").splitlines()[1:]))
    script = (
        "global.window={};require(process.argv[1]);const f=require(process.argv[2]);"
        "const out={};for(const q of JSON.parse(process.argv[3]))"
        "out[q]=f.rank(window.siteSearch,q,3).map(x=>[x[1][0],f.kind(x[1][0]),f.value(x[1],q)]);"
        "console.log(JSON.stringify(out))"
    )
    command = ["node", "-e", script, str(site / "site_libs" / "search.js"), str(FIND), json.dumps(list(wanted))]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert len(wanted) >= 60
    assert {
        query: found[query]
        for query, page in wanted.items()
        if not any(re.search(page, address) for address, _, _ in found[query])
    } == {}
    assert found["B200 power"][0][1:] == ["Chip", "Design power (TDP): 1 kW"]
    assert "USD/h" in found["H100 price"][0][2]
    costs = [value for _, _, value in found["how much does it cost to train GPT-4"]]
    assert any(re.match(r"Cost: [\d.]+ million USD", value) for value in costs)
    assert not any("compute" in value for value in costs)
    assert found["fewest chips"][0][1] == "Planner"


def test_an_entity_opens_with_its_numbers_a_plan_and_a_comparison(site):
    page = (site / "entities" / "accelerators" / "b200.html").read_text("utf-8")
    lead = re.search(r'class="lead">([^<]+)<', page)
    assert lead is not None
    assert "2.25 PFLOP/s in 16 bits, dense; 180 GB of memory; 1 kW of design power" in lead[1]
    assert "Also called: B200; B200 SXM; Blackwell B200; DGXB200; NVIDIA B200; a4-highgpu-8g<" in page
    assert "plan.html?v=1&amp;accelerator=b200" in page
    assert "compare.html?of=accelerators/b200," in page
    assert re.search(r"<text[^>]*>\d+ USD/h</text>", page)  # the axis of the price history
    assert ">the same<" not in page
    world = (site / "entities" / "map.html").read_text("utf-8")
    assert re.search(
        r'data-name="xAI Colossus Memphis" data-phases="2024-09:\S+ 2025-02:\S+ 2025-07:4.42e\+08 "', world
    )
    run = text_of(site / "entities" / "runs" / "llama_3_1_405b.html")
    assert "3.8 × 10²⁵ FLOP of training compute" in run
    assert "systemic risk, EU AI Act: from 10²⁵" in run or "systemic risk, EU AI Act: from 1 × 10²⁵ FLOP" in run


def test_all_pages_have_one_header_and_menus_of_at_most_forty_links(site):
    for name in (
        "index.html",
        "entities/map.html",
        "tables/clusters.html",
        "charts/index.html",
        "notebooks/07-checkpoints.html",
    ):
        page = (site / name).read_text("utf-8")
        bar = page.partition('<nav class="bar"')[2].partition("</nav>")[0]
        assert re.findall(r">(\w+)</a>", bar) == ["Plan", "Serve", "Explore", "Data", "Learn", "Reference"], name
        assert 'class="search"' in page, name
        side = page.partition('<nav id="menu"')[2].partition("</nav>")[0].partition("</div>")[2]
        assert side.count("<a ") <= 40, name
