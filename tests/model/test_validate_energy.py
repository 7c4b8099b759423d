import polars as pl
import pytest

import factorykit as fk


def test_every_measured_energy_is_reproduced_within_a_fifth():
    measured = fk.validate_energy().filter(pl.col("evidence") != "assumed power times hours")
    assert measured.height == 8
    assert set(measured["verdict"]) == {"reproduced"}
    assert measured["error"].abs().max() < 0.2


def test_assumed_power_is_no_evidence_however_well_it_fits():
    assumed = fk.validate_energy().filter(evidence="assumed power times hours")
    assert set(assumed["verdict"]) == {"no evidence"}
    assert assumed["reason"].null_count() == 0


def test_hours_come_from_compute_where_nobody_published_them():
    from_compute = fk.validate_energy().filter(hours_from="compute")
    assert set(from_compute["name"]) == {"GLaM", "OLMo 1 7B (A100)", "OLMo 2 7B"}


def test_emissions_of_palm_follow_from_its_energy():
    """PaLM, section 4: 271.43 t at 0.079 kg/kWh."""
    energy = fk.validate_energy().filter(name="PaLM 540B")["computed_kwh"].item()
    carbon = fk.evaluate({"training_energy_kwh": energy, "carbon_kg_per_kwh": 0.079}, "training_carbon_kg")
    assert carbon["training_carbon_kg"] == pytest.approx(271_430, rel=0.001)


def test_a_run_without_hours_or_compute_says_so():
    row = {"name": "x", "evidence": "measured", "stated_kwh": 1.0, "power_w_per_accelerator": 400.0}
    found = fk.validate_energy(pl.DataFrame([row]))
    assert found["verdict"].item() == "not computable"
    assert "neither hours" in found["reason"].item()


def test_missing_columns_are_named():
    with pytest.raises(fk.FactorykitError, match="stated_kwh"):
        fk.validate_energy(pl.DataFrame({"name": ["x"], "evidence": ["measured"], "power_w_per_accelerator": [1.0]}))
