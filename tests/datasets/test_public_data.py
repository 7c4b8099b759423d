"""Public data sets: renamed and converted at the border, credited, kept in the cache, never fetched unasked."""

from __future__ import annotations

import csv
import urllib.request
from pathlib import Path

import polars as pl
import pytest

import factorykit.datasets as data
from factorykit.datasets import catalogue
from factorykit.datasets import public_data as module
from factorykit.datasets.public_data import PUBLISHERS
from factorykit.errors import DatasetError, FactorykitWarning, UnknownName
from factorykit.quantities import quantity, vocabulary

PUBLIC = Path(__file__).parents[3] / "shared" / "public"
NAMES = list(PUBLISHERS)
MADE_UP = {"number": "2", "text": "word", "boolean": "True", "date": "2026-07-05"}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, and no connected data set before and after."""
    monkeypatch.setenv("FACTORYKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(catalogue, "_CONNECTED", {})
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    monkeypatch.setattr(module, "urlopen", refuse)


@pytest.fixture
def made_up(tmp_path):
    """A file of one row with the columns of a data set; some of its columns and cells may be changed."""

    def write(name: str, **changes: str) -> Path:
        columns = module._columns(name)
        path = tmp_path / f"{name}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([column.theirs for column in columns])
            writer.writerow([changes.get(column.theirs, MADE_UP[column.type]) for column in columns])
        return path

    return write


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_the_publishers_columns_becomes_a_table(name, made_up):
    frame = data.connect(name, made_up(name)).collect()
    for column in module._columns(name):
        value = frame[column.ours].item()
        assert value == (2 * column.factor if column.type == "number" else value), column
        assert value is not None
    assert data.table(name).collect().equals(frame)
    assert data.sql(f"select * from {name}").equals(frame)


@pytest.mark.parametrize("name", NAMES)
def test_the_credit_that_the_licence_requires_is_shown(name, made_up):
    data.connect(name, made_up(name))
    row = data.sources(name).row(0, named=True)
    assert row["citation"] == f"{PUBLISHERS[name].attribution} {module.CHANGES}"
    assert row["licence"].startswith(PUBLISHERS[name].licence[0])
    assert row["url"].startswith("https://")
    assert "sha256:" in row["evidence"]
    assert row["locator"] == f"{name}.csv"
    listed = data.tables().filter(table=name).row(0, named=True)
    assert (listed["licence"], listed["rows"]) == (PUBLISHERS[name].licence[0], 1)


@pytest.mark.skipif(not PUBLIC.is_dir(), reason="the public data sets in ../shared/public are not here")
@pytest.mark.parametrize("name", NAMES)
def test_the_real_file_is_read_whole(name):
    with (PUBLIC / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    frame = data.connect(name, PUBLIC / f"{name}.csv").collect()
    assert frame.height == len(rows)
    for column in module._columns(name):
        stated = [row[column.theirs].strip() or None for row in rows]
        assert frame[column.ours].null_count() == stated.count(None), column
        if column.type == "number":
            total = sum(float(cell) for cell in stated if cell) * column.factor
            assert frame[column.ours].sum() == pytest.approx(total, rel=1e-9)
    assert data.sql(f"select count(*) from {name}").item() == frame.height


@pytest.mark.skipif(not PUBLIC.is_dir(), reason="the public data sets in ../shared/public are not here")
def test_published_facts_come_out_of_the_real_files():
    for name in ("gpu_rental_prices", "infinitehbd_faults", "epoch_gpu_clusters"):
        data.connect(name, PUBLIC / f"{name}.csv")
    median = (
        "select median(rental_usd_per_accelerator_h) from gpu_rental_prices "
        "where accelerator = 'h100_sxm' and kind = 'on-demand'"
    )
    assert data.sql(median).item() == pytest.approx(3.25)
    repairs = data.sql("select median(repair_s) / 3600, avg(repair_s) / 3600 from infinitehbd_faults").row(0)
    assert repairs == (pytest.approx(20.4, abs=0.05), pytest.approx(133, abs=0.5))
    named = data.sql("select sum(c.accelerators) from epoch_gpu_clusters c join accelerators a using (accelerator)")
    assert named.item() > 1e6


def test_names_are_those_of_the_vocabulary_and_of_the_tables():
    for name in NAMES:
        columns = module._columns(name)
        assert len({column.ours for column in columns}) == len(columns)
        for column in columns:
            assert column.type in MADE_UP
            assert column.meaning
            if column.ours in vocabulary() and not vocabulary()[column.ours].is_text:
                assert column.unit == quantity(column.ours).unit, (name, column.ours)
    assert set(NAMES) == set(module._mapping())
    assert not set(NAMES) & set(catalogue.resources())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("tdp_w", "tdp_watts", r"'tdp_w' is gone, perhaps renamed to 'tdp_watts'"),
        ("tdp_w", "quite_another", r"'tdp_w' is gone; new is 'quite_another'"),
        ("memory_gb,", "", "'memory_gb' is gone"),
        ("tdp_w", "name", "'tdp_w' is gone"),
    ],
)
def test_a_changed_column_is_named(made_up, old, new, said):
    path = made_up("epoch_ml_hardware")
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(DatasetError, match=said):
        data.connect("epoch_ml_hardware", path)
    assert "epoch_ml_hardware" not in data.tables()["table"]


def test_a_new_column_is_left_out_with_a_warning(made_up):
    path = made_up("gcp_region_carbon")
    header, row = path.read_text().splitlines()
    path.write_text(f"{header},surplus\n{row},1\n")
    with pytest.warns(FactorykitWarning, match="'surplus' is new and left out"):
        assert "surplus" not in data.connect("gcp_region_carbon", path).collect_schema()


def test_cells_of_another_type_are_reported_together_and_the_previous_copy_stays(made_up):
    data.connect("gpu_rental_prices", made_up("gpu_rental_prices"))
    path = made_up(
        "gpu_rental_prices", usd_per_gpu_hour="cheap", date="yesterday", carried_forward="perhaps", vram_gb="nan"
    )
    with pytest.raises(DatasetError, match="4 broken cells; the previous copy stays") as raised:
        data.connect("gpu_rental_prices", path)
    assert raised.value.rows is not None
    assert set(raised.value.rows["column"]) == {"usd_per_gpu_hour", "date", "carried_forward", "vram_gb"}
    assert data.connect("gpu_rental_prices").collect()["rental_usd_per_accelerator_h"].item() == 2.0


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b'"', b"name\n"])
def test_a_file_that_is_no_such_table_is_refused(tmp_path, content):
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match="gcp_region_carbon: "):
        data.connect("gcp_region_carbon", path)


def test_a_row_of_another_width_and_an_empty_table_are_refused(made_up):
    path = made_up("gcp_region_carbon")
    header, row = path.read_text().splitlines()
    path.write_text(f"{header}\n{row},1\n")
    with pytest.raises(DatasetError, match="row 2 has 7 cells where the header has 6"):
        data.connect("gcp_region_carbon", path)
    path.write_text(f"{header}\n")
    with pytest.raises(DatasetError, match="has no rows"):
        data.connect("gcp_region_carbon", path)


def test_the_next_session_takes_the_copy_in_the_cache(made_up, monkeypatch):
    made = data.connect("gcp_region_carbon", made_up("gcp_region_carbon")).collect()
    monkeypatch.setattr(catalogue, "_CONNECTED", {})
    assert "gcp_region_carbon" not in data.tables()["table"]
    assert data.connectors().filter(connector="gcp_region_carbon")["state"].item() == "cached"
    assert data.connect("gcp_region_carbon").collect().equals(made)
    assert data.connectors().filter(connector="gcp_region_carbon")["state"].item() == "connected"


def test_nothing_is_fetched_unasked():
    with pytest.raises(DatasetError, match=r"not in the cache .*give its file or address.* Google Cloud, https://"):
        data.connect("gcp_region_carbon")


def test_an_address_is_fetched_when_it_is_given(made_up, monkeypatch):
    content = made_up("gcp_region_carbon").open("rb")
    monkeypatch.setattr(module, "urlopen", lambda *_, **__: content)
    data.connect("gcp_region_carbon", "https://example.org/a.csv")
    assert data.sources("gcp_region_carbon")["locator"].item() == "https://example.org/a.csv"


@pytest.mark.parametrize(
    ("address", "said"),
    [("http://example.org/a.csv", "starts with https://"), ("file:///etc/passwd", "starts with https://")],
)
def test_only_https_is_an_address(address, said):
    with pytest.raises(DatasetError, match=said):
        data.connect("gcp_region_carbon", address)


def test_an_address_that_does_not_answer_is_a_plain_error(monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise OSError("no route")

    monkeypatch.setattr(module, "urlopen", fail)
    with pytest.raises(DatasetError, match=r"cannot be fetched .*no route"):
        data.connect("gcp_region_carbon", "https://example.org/a.csv")


def test_a_damaged_copy_in_the_cache_is_named_with_the_remedy(made_up, cache):
    data.connect("gcp_region_carbon", made_up("gcp_region_carbon"))
    (cache / "connected" / "gcp_region_carbon.parquet").write_bytes(b"")
    with pytest.raises(DatasetError, match="connect gcp_region_carbon again"):
        data.table("gcp_region_carbon")
    assert data.sql("select count(*) from runs").item() > 0
    (cache / "connected" / "gcp_region_carbon.json").write_text("{")
    with pytest.raises(DatasetError, match="in the cache is damaged"):
        data.connect("gcp_region_carbon")


def test_names_that_do_not_exist_are_answered_with_the_nearest(made_up, tmp_path):
    with pytest.raises(UnknownName, match="nearest is 'gcp_region_carbon'"):
        data.connect("gcp_carbon")
    with pytest.raises(DatasetError, match="cannot be read"):
        data.connect("gcp_region_carbon", tmp_path / "none.csv")
    data.connect("gcp_region_carbon", made_up("gcp_region_carbon"))
    with pytest.raises(UnknownName, match="one publisher as a whole"):
        data.sources("gcp_region_carbon", "x")


def test_only_the_columns_asked_for_are_read(made_up):
    plan = data.connect("gcp_region_carbon", made_up("gcp_region_carbon")).select("region").explain()
    assert "PROJECT 1/6 COLUMNS" in plan


def test_connectors_tell_terms_and_credit_of_each():
    found = data.connectors()
    assert found["connector"].to_list() == NAMES
    assert found.null_count().sum_horizontal().item() == 0
    assert found.schema["columns"] == pl.Int64
