"""New files of publishers: changes are reported by row, better values are written, and a changelog records them."""

from __future__ import annotations

import csv
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from datetime import date
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import factorykit as fk
from factorykit.cli import main
from factorykit.core.errors import DatasetError, UnknownName
from factorykit.data import tables
from factorykit.data.build import build
from factorykit.data.public.refresh import refresh

HEADER = (
    "iso_code,country,year,carbon_intensity_gco2e_per_kwh,total_twh,fossil_twh,coal_twh,gas_twh,oil_twh,nuclear_twh,"
    "hydro_twh,solar_twh,wind_twh,biofuel_twh,other_renewable_twh,low_carbon_twh,renewables_twh\n"
)
FRANCE = "FRA,France,2024,21.3,540,20,1,18,1,360,70,25,45,10,9,519,159\n"
GERMANY = "DEU,Germany,2023,,500,240,130,90,20,10,20,60,140,40,0,270,260\n"
POLAND = "POL,Poland,2019,800,160,130,110,15,5,0,2,1,15,6,6,30,30\n"
NOWHERE = "XKX,Kosovo,2023,901,7,6.5,6.5,0,0,0,0.2,0.1,0.2,0,0,0.5,0.5\n"
DAY = date(2027, 1, 2)


@pytest.fixture
def published(tmp_path) -> Path:
    """A folder with the file of one publisher: one country newer, one without a value, one older, one new."""
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / "grid_energy_mix.csv").write_text(HEADER + FRANCE + GERMANY + POLAND + NOWHERE, encoding="utf-8")
    return folder


def rows(folder: Path, table: str) -> dict[str, dict[str, str]]:
    with (folder / "sources" / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return {next(iter(row.values())): row for row in csv.DictReader(file)}


def test_the_tables_equal_the_files_of_their_publishers(shared):
    assert refresh(shared / "public").rows() == []


def test_a_new_file_is_reported_row_by_row_and_nothing_is_written_without_apply(copy, published):
    before = {path.name: path.read_bytes() for path in (copy / "sources").iterdir()}
    changes = {(row["row"], row["column"]): row for row in refresh(published).to_dicts()}
    assert changes["fra", "carbon_kg_per_kwh"]["change"] == "changed"
    assert float(changes["fra", "carbon_kg_per_kwh"]["now"]) == pytest.approx(0.0213)
    assert changes["fra", "nuclear_share"]["now"] == "0.666667"
    assert changes["xkx", None]["change"] == "added"
    assert {row["change"] for (name, _), row in changes.items() if name == "pol"} == {"kept"}
    assert changes["pol", "carbon_kg_per_kwh"]["why"].startswith("the file is of 2019")
    assert changes["deu", None]["change"] == changes["usa", None]["change"] == "gone"
    assert before == {path.name: path.read_bytes() for path in (copy / "sources").iterdir()}


@pytest.fixture
def served(published, tmp_path) -> Iterator[tuple[str, Path]]:
    """The published folder served over https on this machine: its address and its certificate."""
    openssl = shutil.which("openssl")
    if not openssl:
        pytest.skip("openssl is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    named = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([openssl, *options.split(), *named], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with ThreadingHTTPServer(("localhost", 0), partial(SimpleHTTPRequestHandler, directory=published)) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"https://localhost:{server.server_port}", certificate
        server.shutdown()
        thread.join()


def test_an_address_with_a_trusted_certificate_is_read(copy, published, served, monkeypatch):
    address, certificate = served
    monkeypatch.setenv("no_proxy", "localhost")
    with pytest.raises(DatasetError, match=r"cannot be downloaded .*certificate"):
        refresh(f"grid_energy_mix={address}/grid_energy_mix.csv")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    changes = refresh(f"grid_energy_mix={address}/grid_energy_mix.csv")
    assert changes.height > 100
    assert changes.equals(refresh(published))
    with pytest.raises(DatasetError, match=r"cannot be downloaded .*404"):
        refresh(f"grid_energy_mix={address}/elsewhere.csv")


def test_better_values_are_written_and_noted_in_the_changelog(copy, published):
    before, log = rows(copy, "country_grids"), rows(copy, "data_changes")
    count = refresh(published, apply=True, day=DAY).filter(change="changed").height + 1
    after = rows(copy, "country_grids")
    assert {name for name in after if after[name] != before.get(name)} == {"fra", "xkx"}
    assert (after["fra"]["as_of"], after["fra"]["locator"]) == ("2024", "FRA, 2024")
    new = [row for name, row in rows(copy, "data_changes").items() if name not in log]
    assert len(new) == count
    assert {(row["day"], row["source"]) for row in new} == {("2027-01-02", "grid_mix")}
    assert rows(copy, "sources")["grid_mix"]["accessed"] == "2027-01-02"
    assert build()["changed"].any()
    fresh = fk.table("freshness").filter(source="grid_mix").collect()
    assert fresh["accessed"].item() == "2027-01-02"
    assert set(refresh(published)["change"]) == {"kept", "gone"}


def test_a_cell_that_is_empty_in_the_file_is_kept(copy, published):
    (published / "grid_energy_mix.csv").write_text(HEADER + FRANCE.replace(",360,", ",,"), encoding="utf-8")
    old = rows(copy, "country_grids")["fra"]["nuclear_share"]
    kept = refresh(published, apply=True, day=DAY).filter(change="kept").to_dicts()
    assert [(row["row"], row["column"], row["was"]) for row in kept] == [("fra", "nuclear_share", old)]
    assert rows(copy, "country_grids")["fra"]["nuclear_share"] == old


def test_manual_edits_are_reported_against_an_earlier_copy(copy, edit, tmp_path):
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    for path in (copy / "sources").iterdir():
        (earlier / path.name).write_bytes(path.read_bytes())
    edit("levers", "\nspot", "\nspot_again")
    edit("price_levels", "313.689", "313.7")
    changes = fk.changes(earlier, apply=True, day=DAY)
    assert sorted(changes.select("table", "change").rows()) == [
        ("levers", "added"),
        ("levers", "removed"),
        ("price_levels", "changed"),
    ]
    last = list(rows(copy, "data_changes").values())[-1]
    assert (last["table"], last["was"], last["now"]) == ("price_levels", "313.689", "313.7")


def test_a_file_that_cannot_be_read_is_an_error(copy, published, tmp_path):
    with pytest.raises(UnknownName, match="nearest is 'grid_energy_mix'"):
        refresh(f"grid_energy_mx={published / 'grid_energy_mix.csv'}")
    with pytest.raises(DatasetError, match="is not a folder"):
        refresh(tmp_path / "nowhere")
    with pytest.raises(DatasetError, match="no publisher's file in"):
        refresh(copy)


def test_the_command_line_prints_changes_before_it_applies_them(copy, published, capsys):
    assert main(["data", "refresh", str(published)]) == 0
    assert "--apply writes it" in capsys.readouterr().out
    assert main(["data", "refresh", str(published), "--apply"]) == 0
    assert "factorykit data build" in capsys.readouterr().out
    assert main(["data", "changes", "--json"]) == 0
    assert len(tables.table("data_changes").collect()) >= 250
