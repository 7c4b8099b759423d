"""Tables of figures that others publish in series: rental prices, grids, electricity, causes of failure."""

from __future__ import annotations

import dataframely as dy

from factorykit.datasets.schemas import Sourced, key, measured, number, reference, share, text


class PriceMonths(Sourced):
    """Rental prices by month.

    A row is the distribution of list prices of one chip in one kind of offer in one month: one price per provider, the
    median of its rows of the month. Nominal US dollars. GPU rental price data by gpurentalprices.com
    (https://gpurentalprices.com), licensed under CC BY 4.0, summarised here.
    """

    price_month = key("chip, kind of offer and month", unique=True, entity=True)
    accelerator = reference("accelerators.accelerator", "chip of the accelerators table, where it is one")
    rental_id = text("chip as the publisher names it; h100 and h200 leave the form factor open", required=True)
    kind = text(
        "kind of offer", required=True, one_of=("on demand", "secure", "community", "spot", "serverless", "reserved")
    )
    month = text("year and month", required=True)
    providers = number("1", "providers with such an offer")
    offers = number("1", "rows of the publisher that went in: one per provider, offer and day")
    rental_usd_per_accelerator_h_min = measured("rental_usd_per_accelerator_h", "cheapest provider")
    rental_usd_per_accelerator_h_quarter = measured("rental_usd_per_accelerator_h", "a quarter of them is cheaper")
    rental_usd_per_accelerator_h_median = measured("rental_usd_per_accelerator_h", "half of them is cheaper")
    rental_usd_per_accelerator_h_three_quarters = measured(
        "rental_usd_per_accelerator_h", "three quarters of them are cheaper"
    )
    rental_usd_per_accelerator_h_max = measured("rental_usd_per_accelerator_h", "dearest provider")


class CountryGrids(Sourced):
    """Grids of countries.

    A row is the electricity of one country in one year: emissions of its mix over the life cycle, and where it comes
    from. From codecarbon (MIT) after Our World in Data (CC BY 4.0), Ember and the Energy Institute.
    """

    country = key("ISO 3166 code of three letters, lower case", unique=True, entity=True)
    name = text("name for reading", required=True)
    year = number("a", "calendar year")
    carbon_kg_per_kwh = measured("carbon_kg_per_kwh", "average of the country's generation, life cycle")
    generated_kwh = number("kWh", "electricity generated in the year")
    coal_share = share("of the electricity generated, from coal")
    gas_share = share("from gas")
    oil_share = share("from oil")
    nuclear_share = share("from nuclear power")
    hydro_share = share("from water")
    wind_share = share("from wind")
    solar_share = share("from the sun")
    low_carbon_share = share("from low-carbon sources of any kind")


class Electricity(Sourced):
    """Electricity prices.

    A row is the mean price of one kind of electricity in one country or state in one year, nominal, in the currency of
    its source. Ember's wholesale prices are under CC BY 4.0; the Energy Information Administration's are public.
    """

    electricity_price = key("area, kind and year", unique=True, entity=True)
    name = text("country or state", required=True)
    country = reference("country_grids.country", "country of the country_grids table", required=True)
    kind = text(
        "who pays it, or wholesale", required=True, one_of=("wholesale", "industrial", "commercial", "all customers")
    )
    year = number("a", "calendar year")
    electricity_usd_per_kwh = measured("electricity_usd_per_kwh", "nominal")
    electricity_eur_per_kwh = number("EUR/kWh", "the same in euro, where the source uses it, nominal")
    months = number("1", "months in the mean")


class RootCauses(Sourced):
    """Root causes of failures.

    A row is one cause in one study: its count, what the count leaves open, and its share. The interval is the exact
    one of 95 % for a Poisson count. `share` follows from the counts, `share_printed` is the study's own.
    """

    root_cause = key("study and cause", unique=True, entity=True)
    study = text("study", required=True)
    organisation = text("whose machines they are", required=True)
    cause = text("cause as the study names it", required=True)
    category = text("class of the cause, as the study groups it")
    accelerators = measured("accelerators")
    window_days = number("d", "time over which was counted")
    count = number("1", "events counted")
    count_low = number("1", "lower end of the interval of the expected count")
    count_high = number("1", "upper end of that interval")
    share = share("count over all events of the study")
    share_printed = dy.Float64(
        nullable=True, min=0.0, max=1.0, description="share as the study prints it", metadata={"unit": "1"}
    )


class Reliability(Sourced):
    """Published reliability figures.

    A row is one figure of one study, in the unit of the row; the note says through which readings it was verified.
    """

    reliability_figure = key("study and figure", unique=True, entity=True)
    study = text("study", required=True)
    organisation = text("whose machines they are", required=True)
    system = text("cluster, fleet or run", required=True)
    accelerator = reference("accelerators.accelerator", "chip, where the source names exactly one")
    accelerator_stated = text("chips as the source writes them")
    accelerators = measured("accelerators")
    window_days = number("d", "time over which was counted")
    metric = text("what is stated", required=True)
    value = dy.Float64(nullable=False, description="its value, in the unit of the row", metadata={"unit": ""})
    unit = text("unit of the value", required=True)
    value_stated = text("what the source adds: about, at least", one_of=("about", "at least"))
    kind = text("how the number came about", required=True, one_of=("measured", "projected"))
