"""Public data sets: renamed and converted on import, credited, cached, and downloaded only on request."""

from __future__ import annotations

import csv
import gzip
import lzma
import re
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.request import Request, build_opener

import polars as pl
import pytest

import factorykit as fk
from factorykit.core.errors import DatasetError, FactorykitError, FactorykitWarning, UnknownName
from factorykit.core.vocabulary import quantity, vocabulary
from factorykit.data import tables
from factorykit.data.public import connectors as module
from factorykit.data.public import download
from factorykit.data.public.connectors import PUBLISHERS

PUBLIC = Path(__file__).parents[3] / "shared" / "public"
NAMES = list(PUBLISHERS)
MADE_UP = {"number": "2", "duration": "2", "text": "word", "boolean": "True", "date": "2026-07-05"}
MADE_UP |= {"moment": "2026-07-05T10:30"}
LANL = """System,machine type,nodes,procstot,procsinnode,nodenum,nodenumz,node install,node prod,node decom,fru type,\
mem,cputype,memtype,num intercon,purpose,Prob Started,Prob Fixed,Down Time,Facilities,Hardware,Human Error,Network,\
Undetermined,Software,Same Event
9,cluster,4,16,4,2,1,1-Jan,1-Feb,current,part,80,1,1,0,compute,3/2/2004 10:30,3/2/2004 11:00,30,,Memory,,,,,No
9,cluster,4,16,4,1,0,1-Jan,1-Feb,current,part,80,1,1,0,compute,3/1/2004 10:30,3/1/2004 10:36,6,,,,,,OS,No
5,cluster,4,16,4,1,0,1-Jan,1-Feb,current,part,80,1,1,0,compute,3/1/2004 9:00,3/1/2004 9:06,6,,,,,,,No
9,cluster,4,16,4,3,2,1-Jan,1-Feb,current,part,80,1,1,0,compute,3/2/2004 10:30,3/2/2004 11:30,60,Power,,,,,,No
"""
TITAN = """SN,time,nlife,nloc,last,col,row,cage,slot,node,max_loc_events,time_max_loc,dbe,dbe_loc,otb,otb_loc,out,\
batch,days,years,dead,dead_otb,dead_dbe
0320117100060,31536000,1,1,2019-08-01 20:07:33,11,2,1,4,1,0,1,0,,0,,FALSE,new,365,1,FALSE,FALSE,FALSE
0320117100061,63072000,1,1,2019-08-01 20:07:33,9,3,1,2,1,0,1,1,,1,,FALSE,new,730,2,TRUE,TRUE,TRUE
0320117100063,15768000,1,1,2016-08-01 20:07:33,6,2,1,2,0,0,1,0,,0,,FALSE,old,182.5,0.5,TRUE,FALSE,TRUE
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, and no connected data set before and after."""
    monkeypatch.setenv("FACTORYKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tables, "_CONNECTED", {})
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(download, "_open", refuse)


@pytest.fixture
def made_up(tmp_path):
    """A file of one row with the columns of a data set; some of its columns and cells may be changed."""

    def write(name: str, **changes: str) -> Path:
        columns = module._columns()[name]
        path = tmp_path / f"{name}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([column.theirs for column in columns])
            writer.writerow([changes.get(column.theirs, MADE_UP[column.type]) for column in columns])
        return path

    return write


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_the_publishers_columns_becomes_a_table(name, made_up):
    frame = fk.connect(name, made_up(name)).collect()
    for column in module._columns()[name]:
        value = frame[column.ours].item()
        assert value == (2 * column.factor if column.type in ("number", "duration") else value), column
        assert value is not None
    assert fk.table(name).collect().equals(frame)
    assert fk.sql(f"select * from {name}").equals(frame)


PUBLISHED = {
    "epoch_ml_hardware": (
        "Hardware name,Manufacturer,Type,Notes,Release date,Release price (USD),Tensor-FP16/BF16 performance (FLOP/s),"
        "FP8 performance (FLOP/s),FP4 performance (FLOP/s),Memory (bytes),Memory bandwidth (byte/s),"
        "Intranode bandwidth (byte/s),Internode bandwidth (bit/s),TDP (W),FP64 (double precision) performance (FLOP/s),"
        "FP32 (single precision) performance (FLOP/s),TF32 (TensorFloat-32) performance (FLOP/s),"
        "FP16 (half precision) performance (FLOP/s),INT8 performance (OP/s),Foundry,Die Size (mm^2),Process size (nm),"
        "Transistors (millions),Link to datasheet,Source for the price,Last modified\n"
        "Chip 1,Maker,GPU,,2026-01-02,,1e15,2e15,,192000000000.0,8e12,1.8e12,4e11,1000.0,,,,,,TSMC,,4,208000,,,"
        "2026-06-04 01:24:20+00:00\n",
        {
            "peak_16bit_flop_per_s": 1e15,
            "accelerator_memory_bytes": 1.92e11,
            "scale_out_bytes_per_s": 5e10,
            "transistors": 2.08e11,
        },
    ),
    "epoch_notable_models": (
        "Model,Organization,Country (of organization),Publication date,Domain,Task,Parameters,Training compute (FLOP),"
        "Training dataset size (total),Epochs,Training time (hours),Training chip-hours,Training hardware,"
        "Hardware quantity,Hardware utilization (MFU),Training power draw (W),Training compute cost (2023 USD),"
        "Frontier model,Model accessibility,Confidence,Link,Authors,Last modified\n"
        'Model 1,"Lab A,Lab B",France,2026-01-02,Language,Chat,7e9,4.2e22,1e12,1,100,51200,NVIDIA H100 SXM5 80GB,512,'
        "0.4,4e5,1e6,True,Open weights (unrestricted),Likely,https://example.org,Author,2026-06-04 01:24:20+00:00\n",
        {
            "wall_s": 3.6e5,
            "training_flop": 4.2e22,
            "accelerator": "h100_sxm",
            "is_frontier": True,
            "as_of": "2026-06-04",
        },
    ),
    "epoch_data_center_chips": (
        "Data center,Date,Chip type,Number of Units,Chip type source,Number of Units source,Owner,User,Notes,Handle\n"
        'Site 1,2026-05-01,B200,1000,Estimate,Estimate,Owner A #confident,"User A #likely, User B #speculative",,x\n',
        {
            "owner": "Owner A",
            "user": "User A; User B",
            "user_confidence": "likely; speculative",
            "accelerators": 1000.0,
        },
    ),
    "epoch_chip_counts": (
        "Name,Chip manufacturer,Owner,Start date,End date,Chip type,Compute estimate in H100e (median),"
        "H100e (5th percentile),H100e (95th percentile),Number of Units,Number of Units (5th percentile),"
        "Number of Units (95th percentile),Total TDP (W),Total TDP (W) (5th percentile),Total TDP (W) (95th percentile)"
        "\na,Nvidia,Meta,10/1/2025,12/31/2025,B200,25,20,30,10,8,12,10000,8000,12000\n",
        {"accelerators_median": 10.0, "h100_equivalents_p95": 30.0, "power_w_median": 1e4, "series": None},
    ),
    "gcp_region_carbon": (
        "Google Cloud Region,Location,Google CFE,Grid carbon intensity (gCO2eq / kWh)\nplace1,Place,0.5,400\n",
        {"carbon_kg_per_kwh": 0.4, "intensity_basis": "operational", "year": None},
    ),
    "ember_eu_wholesale_price_monthly": (
        "Country,ISO3 Code,Date,Price (EUR/MWhe)\nAustria,AUT,2026-01-01,100\n",
        {"month": "2026-01", "wholesale_eur_per_kwh": 0.1},
    ),
    "eia_state_electricity_price": (
        '"Average Price (Cents/kilowatthour) by State by Provider, 1990-2019",,,,,,,,\n'
        "Year,State,Industry Sector Category,Residential,Commercial,Industrial,Transportation,Other,Total\n"
        "2026,AK,Full-Service Providers,9,9,9,9,9,9\n2026,AK,Total Electric Industry,20,15,NA,0,NA,18\n",
        {"commercial_usd_per_kwh": 0.15, "industrial_usd_per_kwh": None, "all_sectors_usd_per_kwh": 0.18},
    ),
    "lanl_failures": (LANL, {"node": 1.0, "hardware": "Memory", "repair_s": 1800.0}),
    "titan_gpus": (TITAN, {"gpu": "0320117100060", "life_s": 31536000.0, "is_dead": False}),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_file_as_its_publisher_gives_it_out_becomes_the_same_table(name, tmp_path, made_up):
    text, wanted = PUBLISHED[name]
    path = tmp_path / "downloaded.csv"
    path.write_text(text, encoding="utf-8")
    row = fk.connect(name, path).collect().row(0, named=True)
    assert {column: row[column] for column in wanted} == pytest.approx(wanted)
    assert list(row) == fk.connect(name, made_up(name)).collect_schema().names()


def test_every_header_leads_to_a_column_of_its_data_set():
    for name in NAMES:
        known = {column.theirs for column in module._columns()[name]}
        for layout in module._layouts(name):
            assert {each.theirs for each in layout} <= known | {""}
            for each in layout:
                assert each.read.startswith("%") or re.compile(each.read).groups == bool(each.read)


def test_a_missing_column_of_a_publisher_is_named_with_the_nearest(tmp_path):
    path = tmp_path / "downloaded.csv"
    path.write_text("Country,ISO3 Code,Month,Price (EUR/MWh)\nAustria,AUT,2026-01,100\n")
    message = r"'Date' is missing.*'Price \(EUR/MWhe\)' is missing, perhaps renamed to 'Price \(EUR/MWh\)'"
    with pytest.raises(DatasetError, match=message):
        fk.connect("ember_eu_wholesale_price_monthly", path)


@pytest.mark.parametrize("name", NAMES)
def test_the_credit_that_the_licence_requires_is_shown(name, made_up):
    fk.connect(name, made_up(name))
    row = fk.sources(name).row(0, named=True)
    assert row["citation"] == f"{PUBLISHERS[name].attribution} {module.CHANGES}"
    assert row["licence"].startswith(PUBLISHERS[name].licence)
    assert row["url"].startswith("https://")
    assert "sha256:" in row["evidence"]
    assert row["locator"] == f"{name}.csv"
    listed = fk.tables().filter(table=name).row(0, named=True)
    assert (listed["licence"], listed["rows"]) == (PUBLISHERS[name].licence, 1)


@pytest.mark.skipif(not PUBLIC.is_dir(), reason="the public data sets in ../shared/public are not here")
@pytest.mark.parametrize("name", NAMES)
def test_the_real_file_is_read_whole(name):
    if not (PUBLIC / f"{name}.csv").is_file():
        pytest.skip(f"{name} is not among the public data sets in ../shared/public")
    with (PUBLIC / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    frame = fk.connect(name, PUBLIC / f"{name}.csv").collect()
    assert frame.height == len(rows)
    for column in module._columns()[name]:
        stated = [row[column.theirs].strip() or None for row in rows]
        assert frame[column.ours].null_count() == stated.count(None), column
        if column.type in ("number", "duration"):
            total = sum(float(cell) for cell in stated if cell) * column.factor
            assert frame[column.ours].sum() == pytest.approx(total, rel=1e-9)
    assert fk.sql(f"select count(*) from {name}").item() == frame.height


@pytest.mark.skipif(not PUBLIC.is_dir(), reason="the public data sets in ../shared/public are not here")
def test_published_facts_come_out_of_the_real_files():
    for name in ("gpu_rental_prices", "infinitehbd_faults", "epoch_gpu_clusters"):
        fk.connect(name, PUBLIC / f"{name}.csv")
    median = (
        "select median(rental_usd_per_accelerator_h) from gpu_rental_prices "
        "where accelerator = 'h100_sxm' and kind = 'on-demand'"
    )
    assert fk.sql(median).item() == pytest.approx(3.25)
    repairs = fk.sql("select median(repair_s) / 3600, avg(repair_s) / 3600 from infinitehbd_faults").row(0)
    assert repairs == (pytest.approx(20.4, abs=0.05), pytest.approx(133, abs=0.5))
    named = fk.sql("select sum(c.accelerators) from epoch_gpu_clusters c join accelerators a using (accelerator)")
    assert named.item() > 1e6


def test_names_are_those_of_the_vocabulary_and_of_the_tables():
    for name in NAMES:
        columns = module._columns()[name]
        assert len({column.ours for column in columns}) == len(columns)
        for column in columns:
            assert column.type in MADE_UP
            assert column.meaning
            if column.ours in vocabulary() and not vocabulary()[column.ours].is_text:
                assert column.unit == quantity(column.ours).unit, (name, column.ours)
    assert set(NAMES) == set(module._columns())
    assert not set(NAMES) & set(tables.resources())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tdp_w", "tdp_watts", r"'tdp_w' is missing, perhaps renamed to 'tdp_watts'"),
        ("tdp_w", "quite_another", r"'tdp_w' is missing; new is 'quite_another'"),
        ("memory_gb,", "", "'memory_gb' is missing"),
        ("tdp_w", "name", "'tdp_w' is missing"),
    ],
)
def test_a_changed_column_is_named(made_up, old, new, message):
    path = made_up("epoch_ml_hardware")
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(DatasetError, match=message):
        fk.connect("epoch_ml_hardware", path)
    assert "epoch_ml_hardware" not in fk.tables()["table"]


def test_a_new_column_is_left_out_with_a_warning(made_up):
    path = made_up("gcp_region_carbon")
    header, row = path.read_text().splitlines()
    path.write_text(f"{header},surplus\n{row},1\n")
    with pytest.warns(FactorykitWarning, match="'surplus' is new and left out"):
        assert "surplus" not in fk.connect("gcp_region_carbon", path).collect_schema()


def test_cells_of_another_type_are_reported_together_and_the_previous_copy_stays(made_up):
    fk.connect("gpu_rental_prices", made_up("gpu_rental_prices"))
    path = made_up(
        "gpu_rental_prices", usd_per_gpu_hour="cheap", date="yesterday", carried_forward="perhaps", vram_gb="nan"
    )
    with pytest.raises(DatasetError, match="4 broken cells; the previous copy is kept") as raised:
        fk.connect("gpu_rental_prices", path)
    assert raised.value.rows is not None
    assert set(raised.value.rows["column"]) == {"usd_per_gpu_hour", "date", "carried_forward", "vram_gb"}
    assert fk.connect("gpu_rental_prices").collect()["rental_usd_per_accelerator_h"].item() == 2.0


@pytest.mark.parametrize(
    ("name", "text", "old", "new", "message"),
    [
        ("lanl_failures", LANL, "3/1/2004 9:00", "soon", "row 4: Prob Started = 'soon': must be a moment"),
        ("lanl_failures", LANL, ",30,,Memory", ",long,,Memory", "row 2: Down Time = 'long': must be a duration"),
        ("lanl_failures", LANL, ",30,,Memory", ",1_000,,Memory", "row 2: Down Time = '1_000': must be a duration"),
        ("lanl_failures", LANL, ",30,,Memory", ",-5,,Memory", "row 2: Down Time = '-5': must be a duration"),
        ("titan_gpus", TITAN, "31536000", "-1", "row 2: time = '-1': must be a duration"),
        ("titan_gpus", TITAN, "FALSE,FALSE,FALSE", "FALSE,FALSE", "row 2 has 22 cells where the header has 23"),
        ("titan_gpus", TITAN, ",dead_dbe", ",dead_db", "'dead_dbe' is missing"),
        ("titan_gpus", TITAN, ",days", ",time", "the column 'time' occurs twice"),
    ],
)
def test_an_invalid_record_of_failures_is_refused_with_its_row(tmp_path, name, text, old, new, message):
    path = tmp_path / "x.csv"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(DatasetError, match=re.escape(message)):
        module.read(name, path)


def test_packed_records_are_read_up_to_a_limit(tmp_path):
    (tmp_path / "lanl.csv.xz").write_bytes(lzma.compress(LANL.encode()))
    read = module.read("lanl_failures", tmp_path / "lanl.csv.xz")
    assert read["started"][0] == datetime(2004, 3, 2, 10, 30)
    assert read["repair_s"].to_list() == [1800.0, 360.0, 360.0, 3600.0]
    zeros = bytes(10_000_000)
    for name, packed in (("x", lzma.compress(zeros, preset=1) * 12), ("g", gzip.compress(zeros, 1) * 12)):
        (tmp_path / name).write_bytes(packed)
        with pytest.raises(FactorykitError, match="larger than 100 MB"):
            module.read("lanl_failures", tmp_path / name)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b'"', b"name\n"])
def test_a_file_of_another_content_is_refused(tmp_path, content):
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match="gcp_region_carbon: "):
        fk.connect("gcp_region_carbon", path)


def test_json_is_answered_with_the_columns_of_a_csv_file(tmp_path):
    path = tmp_path / "fault_trace.json"
    path.write_text('[{"node_id": "a", "event_time": 0.0}]')
    with pytest.raises(
        DatasetError, match=r"infinitehbd_faults: the file is JSON; .* columns node, start_day, end_day"
    ):
        fk.connect("infinitehbd_faults", path)


def test_a_row_of_another_width_and_an_empty_table_are_refused(made_up):
    path = made_up("gcp_region_carbon")
    header, row = path.read_text().splitlines()
    path.write_text(f"{header}\n{row},1\n")
    with pytest.raises(DatasetError, match="row 2 has 7 cells where the header has 6"):
        fk.connect("gcp_region_carbon", path)
    path.write_text(f"{header}\n")
    with pytest.raises(DatasetError, match="has no rows"):
        fk.connect("gcp_region_carbon", path)


def test_the_next_session_uses_the_copy_in_the_cache(made_up, monkeypatch):
    made = fk.connect("gcp_region_carbon", made_up("gcp_region_carbon")).collect()
    monkeypatch.setattr(tables, "_CONNECTED", {})
    assert "gcp_region_carbon" not in fk.tables()["table"]
    assert fk.connectors().filter(connector="gcp_region_carbon")["state"].item() == "cached"
    assert fk.connect("gcp_region_carbon").collect().equals(made)
    assert fk.connectors().filter(connector="gcp_region_carbon")["state"].item() == "connected"


def test_nothing_is_fetched_without_a_request():
    with pytest.raises(DatasetError, match=r"not in the cache .*give its file or address.* Google Cloud, https://"):
        fk.connect("gcp_region_carbon")


@pytest.fixture
def serve(monkeypatch):
    """Answer every address by a local server, with a body and its headers, over HTTP/1.1."""
    servers = []

    def start(body: bytes, headers: dict[str, str]) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.send_response(302 if "Location" in headers else 200)
                for header in headers.items():
                    self.send_header(*header)
                self.end_headers()
                self.wfile.write(body)
                self.close_connection = True

            def log_message(self, *_):
                pass

        servers.append(server := ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        local = Request(f"http://127.0.0.1:{server.server_port}/a.csv")
        monkeypatch.setattr(download, "_open", lambda _: build_opener(download.HttpsRedirects).open(local, timeout=5.0))

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_an_address_is_downloaded_when_it_is_given(made_up, serve):
    content = made_up("gcp_region_carbon").read_bytes()
    serve(content, {"Content-Length": str(len(content))})
    fk.connect("gcp_region_carbon", "https://example.org/a.csv")
    assert fk.sources("gcp_region_carbon")["locator"].item() == "https://example.org/a.csv"


@pytest.mark.parametrize(
    ("body", "headers", "message"),
    [
        (b"half", {"Content-Length": "8"}, "it ends after 4 bytes, 4 are missing"),
        (b"8\r\nhalf", {"Transfer-Encoding": "chunked"}, "IncompleteRead"),
        (b"half", {}, "does not state the length"),
        (b"", {"Content-Length": "0", "Location": "http://example.org/a.csv"}, "does not start with https://"),
        (b"", {"Content-Length": "0", "Location": "file:///etc/passwd"}, "not allowed|does not start with"),
    ],
)
def test_a_truncated_or_redirected_download_leaves_the_cache_as_it_was(body, headers, message, made_up, serve, cache):
    fk.connect("gcp_region_carbon", made_up("gcp_region_carbon"))
    before = {path.name: path.read_bytes() for path in (cache / "connected").iterdir()}
    serve(body, headers)
    with pytest.raises(DatasetError, match=message):
        fk.connect("gcp_region_carbon", "https://example.org/a.csv")
    assert {path.name: path.read_bytes() for path in (cache / "connected").iterdir()} == before


def test_a_download_that_never_ends_is_given_up(serve, monkeypatch):
    serve(b"x" * 1000, {"Content-Length": "1000"})
    monkeypatch.setattr(download, "DEADLINE_S", 0.0)
    with pytest.raises(DatasetError, match="it takes longer than 0 s"):
        fk.connect("gcp_region_carbon", "https://example.org/a.csv")


@pytest.mark.parametrize(
    ("address", "message"),
    [("http://example.org/a.csv", "starts with https://"), ("file:///etc/passwd", "starts with https://")],
)
def test_only_https_is_an_address(address, message):
    with pytest.raises(DatasetError, match=message):
        fk.connect("gcp_region_carbon", address)


def test_an_address_that_does_not_answer_is_a_plain_error(monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise OSError("no route")

    monkeypatch.setattr(download, "_open", fail)
    with pytest.raises(DatasetError, match=r"cannot be downloaded .*no route"):
        fk.connect("gcp_region_carbon", "https://example.org/a.csv")


def test_a_damaged_copy_in_the_cache_is_named_with_the_remedy(made_up, cache):
    fk.connect("gcp_region_carbon", made_up("gcp_region_carbon"))
    (cache / "connected" / "gcp_region_carbon.parquet").write_bytes(b"")
    with pytest.raises(DatasetError, match="connect gcp_region_carbon again"):
        fk.table("gcp_region_carbon")
    assert fk.sql("select count(*) from runs").item() > 0
    (cache / "connected" / "gcp_region_carbon.json").write_text("{")
    with pytest.raises(DatasetError, match="in the cache is damaged"):
        fk.connect("gcp_region_carbon")


def test_names_that_do_not_exist_are_answered_with_the_nearest(made_up, tmp_path):
    with pytest.raises(UnknownName, match="nearest is 'gcp_region_carbon'"):
        fk.connect("gcp_carbon")
    with pytest.raises(DatasetError, match="cannot be read"):
        fk.connect("gcp_region_carbon", tmp_path / "none.csv")
    fk.connect("gcp_region_carbon", made_up("gcp_region_carbon"))
    with pytest.raises(UnknownName, match="comes from one publisher"):
        fk.sources("gcp_region_carbon", "x")


def test_only_the_requested_columns_are_read(made_up):
    plan = fk.connect("gcp_region_carbon", made_up("gcp_region_carbon")).select("region").explain()
    assert "PROJECT 1/6 COLUMNS" in plan


def test_connectors_list_terms_and_credit_of_each():
    found = fk.connectors()
    assert found["connector"].to_list() == NAMES
    assert found.null_count().sum_horizontal().item() == 0
    assert found.schema["columns"] == pl.Int64
