import polars as pl
import pytest

import factorykit as fk

RUN = {"accelerators": 1024.0, "training_s": 1e6, "accelerator_mtbf_s": 1.8e8, "checkpoint_write_s": 60.0}
RUN |= {"restart_s": 600.0, "downtime_s": 0.0, "transfer_bytes": 7e13}
PRICE = "rental_usd_per_accelerator_h"


def offers(**columns):
    return pl.DataFrame({"provider": ["dear", "cheap", "small"], PRICE: [3.0, 2.0, 1.0]}).with_columns(
        pl.Series(name, values, pl.Float64) for name, values in columns.items()
    )


def test_the_cheapest_that_has_the_chips_comes_first():
    found = fk.rent(RUN, offers(offered_accelerators=[4096.0, 2048.0, 512.0]))
    assert found["provider"].to_list() == ["cheap", "dear", "small"]
    assert found["over_cheapest"][:2].to_list() == pytest.approx([0.0, 0.5])
    assert found["reason"].to_list() == [None, None, "has 512 accelerators, the run needs 1024"]
    assert found["offer_cost_usd"][2] is None


def test_small_jobs_fill_the_cheapest_first():
    found = fk.rent(RUN, offers(offered_accelerators=[1024.0, 300.0, 512.0]), whole=False)
    assert dict(found.select("provider", "taken").iter_rows()) == {"small": 512.0, "cheap": 300.0, "dear": 212.0}
    alone = fk.rent(RUN, offers().filter(provider="dear"))["offer_cost_usd"].item()
    mixed = (512 * 1.0 + 300 * 2.0 + 212 * 3.0) / (1024 * 3.0)
    assert found["offer_cost_usd"].sum() == pytest.approx(alone * mixed, rel=1e-12)


def test_an_offer_without_a_number_of_accelerators_is_last_and_never_sufficient():
    found = fk.rent(RUN, offers(offered_accelerators=[4096.0, None, 512.0]))
    assert found["provider"].to_list() == ["dear", "small", "cheap"]
    assert found["taken"].to_list() == [1024.0, 0.0, None]
    assert found["reason"].to_list()[2] == "unknown number of accelerators"
    assert found["offer_cost_usd"][2] < found["offer_cost_usd"][0]
    with pytest.raises(fk.FactorykitError, match="have 0 accelerators together"):
        fk.rent(RUN, offers(), whole=False)


def test_reclaims_lower_the_goodput_of_an_offer():
    found = fk.rent(RUN, offers(spot_reclaim_mtbf_s=[None, None, 900.0]))
    assert found["provider"].to_list() == ["cheap", "small", "dear"]
    goodput = dict(found.select("provider", "spot_goodput").iter_rows())
    assert goodput["small"] < 0.5 < 0.95 < goodput["cheap"] == goodput["dear"]


def test_the_move_is_paid_once():
    without, with_ = (fk.rent(RUN, offers(egress_usd_per_byte=[price] * 3)) for price in (0.0, 9e-11))
    assert (with_["offer_cost_usd"] - without["offer_cost_usd"]).to_list() == pytest.approx([6300.0] * 3)


def test_an_offers_own_quantity_takes_the_place_of_the_runs():
    slow = fk.rent(RUN, offers(training_s=[1e6, 2e6, 1e6]).filter(pl.col("provider") != "small"))
    assert slow["provider"].to_list() == ["dear", "cheap"]


def test_prices_of_providers_span_a_factor_of_six():
    """gpurentalprices.com, July and August 2026: H100 SXM on demand from 1.99 to 12.29 USD."""
    listed = fk.rent(RUN)
    assert listed["taken"].null_count() == listed.height
    assert (listed[PRICE].min(), listed[PRICE].max()) == (1.99, 12.29)
    assert listed.height == listed["provider"].n_unique() > 15


def test_offers_may_be_a_list_of_rows():
    assert fk.rent(RUN, offers().to_dicts()).equals(fk.rent(RUN, offers()), null_equal=True)


def test_tiers_of_checkpoints_raise_the_goodput_of_offers():
    tiers = {"level_one_write_s": 2.0, "level_two_write_s": 58.0, "level_one_share": 0.8}
    tiers |= {"level_one_restart_s": 60.0, "level_two_restart_s": 600.0, "spot_goodput": "spot_tiered_goodput"}
    rows = offers(spot_reclaim_mtbf_s=[86400.0] * 3)
    assert fk.rent(RUN | tiers, rows)["spot_goodput"][0] > fk.rent(RUN, rows)["spot_goodput"][0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fk.rent(RUN, offers().drop("provider")), "no column 'provider'"),
        (lambda: fk.rent(RUN, offers().head(0)), "no rows"),
        (lambda: fk.rent(RUN, [{"provider": "a"}]), "no column 'rental_usd_per_accelerator_h'"),
        (lambda: fk.rent(RUN, [{"provider": "a"}, 2.5]), "one of offers must be"),
        (lambda: fk.rent(RUN, []), "no rows"),
        (lambda: fk.rent(7, offers()), "inputs must be a mapping"),
        (
            lambda: fk.rent(RUN, offers().with_columns(egress_usd_per_byte=pl.lit("free"))),
            "column egress_usd_per_byte, row 0: egress_usd_per_byte = 'free' is not a value",
        ),
        (lambda: fk.rent(RUN | {"accelerator": "rubin"}), "no provider of the table"),
        (
            lambda: fk.rent({name: value for name, value in RUN.items() if name != "accelerators"}),
            "accelerators is missing",
        ),
        (lambda: fk.rent(RUN, offers(training_s=[1e6, -1.0, 1e6])), "training_s"),
        (lambda: fk.rent(RUN, offers(offered_accelerators=[-1.0, 8.0, 8.0])), "offered_accelerators"),
        (lambda: fk.rent(RUN, offers(offered_accelerators=[8.0] * 3), whole=False), "have 24 accelerators together"),
    ],
)
def test_offers_that_cannot_be_priced_are_refused(call, message):
    with pytest.raises(fk.FactorykitError, match=message):
        call()


def test_the_accelerator_that_chooses_the_listed_offers_is_used():
    run = {name: value for name, value in RUN.items() if name != "transfer_bytes"} | {"accelerator": "b200"}
    assert fk.rent(run, assume=True)[PRICE].min() > fk.rent(RUN)[PRICE].min()
    with pytest.warns(fk.FactorykitWarning, match="accelerator is not used"):
        fk.rent(run, offers(), assume=True)
