import polars as pl
import pytest

import factorykit as fk

RUN = {"id": "x", "model": "x", "hardware": "H100-80GB SXM", "energy_mwh": 700.0, "energy_basis": "measured"}
HOURS = {"gpu_hours": 1e6, "power_w_per_accelerator": 700.0}


def one(**row):
    return fk.validate_energy(pl.DataFrame([row])).row(0, named=True)


def test_every_measured_energy_is_reproduced_within_a_fifth():
    measured = fk.validate_energy().filter(pl.col("evidence").str.starts_with("measured"))
    assert measured.height == 8
    assert set(measured["verdict"]) == {"reproduced"}
    assert measured["error"].abs().max() < 0.2


def test_rows_with_other_column_names_are_read(shared):
    """The file of facts beside the project, with its own names of columns."""
    rows = pl.read_csv(shared / "facts" / "training_runs.csv", infer_schema_length=None)
    found = fk.validate_energy(rows)
    assert found["id"].to_list() == rows["id"].to_list()
    measured = found.filter(pl.col("evidence").str.starts_with("measured"))
    assert set(measured["verdict"]) == {"reproduced"}
    assert found.filter(~pl.col("verdict").is_in(["reproduced", "missed"]))["reason"].null_count() == 0


def test_a_measured_run_without_its_power_is_reproduced_from_the_chip_alone():
    """MLPerf's meters saw 856 and 896 W for each H100; 700 W and a share of the host follow from the chip."""
    rows = fk.table("training_runs").filter(kind="energy_measured").collect()
    found = fk.validate_energy(rows.with_columns(power_w_per_accelerator=pl.lit(None, pl.Float64)))
    assert found["error"].abs().max() < 0.06
    assert found["assumed"].str.contains("thermal design power").all()


def test_assumed_power_is_no_evidence_however_well_it_fits():
    assumed = fk.validate_energy().filter(evidence="assumed power times hours")
    assert assumed.height == 13
    assert set(assumed["verdict"]) == {"no evidence"}
    assert assumed["reason"].null_count() == 0


def test_hours_come_from_compute_where_they_are_not_published():
    from_compute = fk.validate_energy().filter(hours_from="compute")
    assert set(from_compute["name"]) == {"GLaM", "OLMo 1 7B (A100)", "OLMo 2 7B"}


def test_a_run_does_not_use_its_own_utilization():
    """PaLM alone gives its utilization to GLaM, on the same chip; itself it borrows from all others."""
    palm = fk.table("training_runs").filter(id="google-dense-001").collect()
    hidden = ("gpu_hours", "mfu", "tokens_per_s_per_gpu", "step_time_s")
    blind = palm.with_columns(pl.lit(None, pl.Float64).alias(name) for name in hidden)
    kept, renamed = (fk.validate_energy(rows) for rows in (blind, blind.with_columns(id=pl.lit("another"))))
    assert renamed["error"].item() == pytest.approx(0.0, abs=1e-3)
    assert abs(kept["error"].item()) > 0.01
    assert kept["assumed"].item() == "utilization of other runs"


def test_power_of_a_chip_without_a_data_sheet_is_that_of_other_runs_on_it():
    """Google publishes no power; GLaM's chips drew 326 and PaLM's 378.5 W."""
    rows = fk.table("training_runs").filter(id="google-dense-001").drop("power_w_per_accelerator")
    found = fk.validate_energy(rows).row(0, named=True)
    assert found["computed_kwh"] == pytest.approx(8_404_992 * 0.326 * 1.08)
    assert found["assumed"] == "power measured in other runs"
    assert found["verdict"] == "reproduced"


@pytest.mark.parametrize(
    ("row", "hours_from"),
    [
        ({"gpu_hours": 1e6}, "published"),
        ({"accelerator_count": 1000.0, "wall_days": 1e6 / 24000}, "days"),
        ({"tokens": 3.6e12, "tokens_per_s_per_gpu": 1000.0}, "throughput"),
        ({"tokens": 3.6e12, "step_time_s": 1.0, "accelerator_count": 1e3, "global_batch_tokens": 1e6}, "throughput"),
        ({"tokens": 1e12, "active_params": 356.2e9, "mfu": 0.6}, "compute"),
    ],
)
def test_every_way_to_the_hours_leads_to_the_same_energy(row, hours_from):
    found = one(**RUN, power_w_per_accelerator=700.0, **row)
    assert found["hours_from"] == hours_from
    assert found["computed_kwh"] == pytest.approx(7e5, rel=2e-3)
    assert found["verdict"] == "reproduced"


def test_a_pue_counts_unless_the_energy_excludes_it():
    assert one(**RUN, **HOURS, pue=1.2)["computed_kwh"] == pytest.approx(8.4e5)
    assert one(**RUN, **HOURS, pue=1.2, energy_boundary="it_equipment")["computed_kwh"] == pytest.approx(7e5)
    assert one(**RUN, **HOURS)["assumed"] == "PUE 1"


def test_a_large_error_is_a_miss():
    assert one(**RUN | {"energy_mwh": 500.0}, **HOURS)["verdict"] == "missed"


def test_emissions_of_palm_follow_from_its_energy():
    """PaLM, section 4: 271.43 t at 0.079 kg/kWh."""
    energy = fk.validate_energy().filter(name="PaLM 540B")["computed_kwh"].item()
    carbon = fk.evaluate({"training_energy_kwh": energy, "carbon_kg_per_kwh": 0.079}, "training_carbon_kg")
    assert carbon["training_carbon_kg"] == pytest.approx(271_430, rel=0.001)


@pytest.mark.parametrize(
    ("row", "verdict", "reason"),
    [
        (RUN | {"power_w_per_accelerator": 400.0}, "not computable", "no gpu_hours"),
        (RUN | {"hardware": "abacus", "gpu_hours": 1e6}, "not computable", "abacus is no accelerator"),
        (RUN | HOURS | {"energy_mwh": None}, "not stated", "states no energy"),
        (RUN | HOURS | {"energy_basis": None}, "no evidence", "energy_basis must be"),
    ],
)
def test_a_row_without_evidence_has_a_reason(row, verdict, reason):
    found = one(**row)
    assert found["verdict"] == verdict
    assert reason in found["reason"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pl.DataFrame({"energymwh": [1.0]}), "none of the columns energy_mwh"),
        (pl.DataFrame({"energy_mwh": []}), "no rows"),
        ([1], "must be a polars DataFrame"),
    ],
)
def test_frames_that_hold_no_runs_are_refused(rows, message):
    with pytest.raises(fk.FactorykitError, match=message):
        fk.validate_energy(rows)


def test_an_energy_that_is_no_number_causes_a_warning():
    rows = pl.DataFrame({"hardware": ["H100"], "gpu_hours": [1e6], "energy_mwh": ["1000 MWh"]})
    with pytest.warns(fk.FactorykitWarning, match="energy_mwh = '1000 MWh' is not compared; give a number"):
        assert fk.validate_energy(rows)["verdict"].item() == "not stated"
