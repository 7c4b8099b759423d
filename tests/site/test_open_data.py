"""The tables for other programs, read over HTTP as those programs read them."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import polars as pl
import pytest
import yaml

import factorykit as fk
from factorykit.site import agents, open_data
from factorykit.site.page_layout import PageContext
from factorykit.site.pages.data import WITHOUT_PYTHON
from factorykit.site.serve import server
from factorykit.site.sources import load_project

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    (out / "index.html").write_text("home")
    project = load_project(ROOT)
    open_data.add(project, out, PageContext())
    agents.add(project, out, PageContext())
    return out


@pytest.fixture(scope="module")
def served(opened: Path) -> Iterator[str]:
    with server(opened, port=0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{running.server_port}"
        running.shutdown()


def test_a_parquet_file_is_read_over_http(served: str) -> None:
    read = pl.scan_parquet(f"http://{served}/tables/clusters.parquet").select("cluster", "accelerators").collect()
    assert read.equals(fk.table("clusters").select("cluster", "accelerators").collect())


@pytest.mark.parametrize(
    ("span", "status", "begin"),
    [
        ("bytes=0-3", 206, 0),
        ("bytes=-4", 206, -4),
        ("bytes=4-", 206, 4),
        ("bytes=99999999-", 416, 0),
        ("rows=1", 200, 0),
    ],
)
def test_the_server_sends_the_requested_bytes(served: str, opened: Path, span: str, status: int, begin: int) -> None:
    whole = (opened / "tables/pue.parquet").read_bytes()
    with closing(http.client.HTTPConnection(served, timeout=5)) as connection:
        connection.request("GET", "/tables/pue.parquet", headers={"Range": span})
        answer = connection.getresponse()
        content = answer.read()
    assert answer.status == status
    if status == 206:
        assert whole[begin:].startswith(content)
        first, last, size = map(int, re.findall(r"\d+", answer.headers["Content-Range"]))
        assert whole[first : last + 1] == content
        assert size == len(whole)
    elif status == 200:
        assert content == whole


def test_one_duckdb_file_holds_every_table(opened: Path) -> None:
    with duckdb.connect(str(opened / open_data.DATABASE), read_only=True) as database:
        rows = dict(database.execute("select table_name, estimated_size from duckdb_tables()").fetchall())
    assert rows == dict(fk.tables().select("table", "rows").iter_rows())
    assert (opened / open_data.DATABASE).stat().st_size < 8e6


def test_the_documents_hold_the_tables_and_keep_to_their_description(opened: Path) -> None:
    folder = opened / open_data.API
    described = json.loads((folder / "openapi.json").read_text())
    index = json.loads((folder / "index.json").read_text())
    for name, keys in index["collections"].items():
        path = described["paths"][f"/api/v1/{name}/{{key}}.json"]
        assert path["parameters"][0]["example"] in keys
        schema = path["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        assert {file.stem for file in (folder / name).iterdir()} == set(keys)
        counts: dict[str, int] = {}
        for key in keys:
            document = json.loads((folder / name / f"{key}.json").read_text())
            assert set(document) == set(schema["required"])
            assert document["version"] == index["version"] == described["info"]["version"]
            for table, rows in document["tables"].items():
                reference = schema["properties"]["tables"]["properties"][table]["items"]["$ref"]
                columns = described["components"]["schemas"][reference.rpartition("/")[2]]["properties"]
                assert all(row.keys() <= columns.keys() for row in rows)
                counts[table] = counts.get(table, 0) + len(rows)
        for table in counts.keys() - {"statements"}:
            assert counts[table] == fk.table(table).collect().height


def test_an_entity_has_every_statement_with_its_source_and_units(opened: Path) -> None:
    document = json.loads((opened / "api/v1/clusters/meta_24k.json").read_text())
    statements = fk.table("statements").filter(kind="clusters", entity="meta_24k").collect()
    assert len(document["tables"]["statements"]) == statements.height > 3
    assert all(row["source"] and row["locator"] for row in document["tables"]["statements"])
    assert document["units"]["facility_power_w"] == "W"


def test_the_javascript_of_the_data_page_prints_a_value(served: str, node: str) -> None:
    text = {name: text for name, _, text in WITHOUT_PYTHON}["JavaScript"].replace("SITE", f"http://{served}")
    command = [node, "--input-type=module", "-e", text]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "700 W\n"


def test_rows_of_a_page_become_a_parquet_file(node: str, tmp_path: Path) -> None:
    columns = {"count": [1e26, None, -0.5], "name": ["é", "", None], "none": [None] * 3}
    given = [{"name": name, "number": name == "count", "values": values} for name, values in columns.items()]
    script = (ROOT / "factorykit/site/theme/parquet.js").read_text()
    code = f"""globalThis.window = {{}}; {script}
        const file = window.fkParquet({json.dumps(given)}, {{ credit: "é" }});
        (await import("node:fs")).writeFileSync("rows.parquet", Buffer.from(await file.arrayBuffer()));"""
    subprocess.run([node, "--input-type=module", "-e", code], cwd=tmp_path, check=True)
    file = str(tmp_path / "rows.parquet")
    assert pl.read_parquet(file).to_dict(as_series=False) == columns
    assert duckdb.read_parquet(file).fetchall() == list(zip(*columns.values(), strict=True))
    assert pl.read_parquet_metadata(file)["credit"] == "é"


def test_the_sql_of_the_data_page_runs(opened: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(opened)  # relative paths: the extension for HTTP is not on every machine
    query = WITHOUT_PYTHON[0][2].replace("SITE/", "")
    with duckdb.connect() as database:
        assert database.sql(query.split(";")[0]).fetchall()
        database.execute(query.split(";")[1])
        assert len(database.sql(query.split(";")[2]).fetchall()) == 5


def test_the_dataset_card_names_every_file(opened: Path) -> None:
    _, header, text = (opened / "tables/README.md").read_text().split("---\n", 2)
    card = yaml.safe_load(header)
    assert {each["config_name"]: each["data_files"] for each in card["configs"]} == {
        name: f"{name}.parquet" for name in fk.tables()["table"]
    }
    assert all((opened / "tables" / each["data_files"]).is_file() for each in card["configs"])
    assert card["license"] == "cc-by-4.0"
    assert all(f"| {name} | {rows:,} | " in text for name, rows in fk.tables().select("table", "rows").iter_rows())


def test_texts_for_language_models_name_pages_tables_calls_and_quantities(opened: Path) -> None:
    index, full = (opened / "llms.txt").read_text(), (opened / "llms-full.txt").read_text()
    assert index.startswith("# factorykit\n\n> ")
    assert all(f"](tables/{name}.html)" in index for name in fk.tables()["table"])
    assert all(f"\n## fk.{name}" in full for name in fk.__all__)
    assert all(f"\n- {name} [" in full for name in fk.quantities()["name"])
    assert "](404.html)" not in index
    assert (opened / "AGENTS.md").read_text().startswith("# factorykit for agents")
    assert re.match(r"---\nname: factorykit\ndescription: .{100,1024}\n---\n", (opened / "SKILL.md").read_text())
