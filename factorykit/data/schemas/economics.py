"""Tables of money, electricity and carbon: costs, prices, providers, grids, rules, forecasts."""

from __future__ import annotations

import dataframely as dy

from factorykit.data.schemas.fields import KEY, Derived, Sourced, Stated, key, measured, number, reference, share, text


class Costs(Stated):
    """Costs.

    A row is the statement of one source about one component of cost or one price. Money is in nominal US dollars of the
    time given in ``as_of``. A single number fills both ends of its range; an empty upper end means 'more than'.
    """

    cost = key("item paid for, under one name for all sources", entity=True)
    subject = text("the run, cluster, product or industry spoken about, as the source writes it", required=True)
    run = reference("runs.run", "run of the runs table")
    cluster = reference("clusters.cluster", "cluster of the clusters table")
    accelerator = reference("accelerators.accelerator", "chip of the accelerators table")
    component = text("item paid for", required=True)
    accelerators = measured("accelerators")
    cost_usd_low = number("USD", "lower end of a sum")
    cost_usd_high = number("USD", "upper end of a sum")
    cost_usd_per_year_low = number("USD/a", "lower end of a sum per year")
    cost_usd_per_year_high = number("USD/a", "upper end of a sum per year")
    cost_usd_per_month_low = number("USD/month", "lower end of a sum per month")
    cost_usd_per_month_high = number("USD/month", "upper end of a sum per month")
    cluster_usd_per_h_low = measured("cluster_usd_per_h", "lower end")
    cluster_usd_per_h_high = measured("cluster_usd_per_h", "upper end")
    rental_usd_per_accelerator_h_low = measured("rental_usd_per_accelerator_h", "lower end")
    rental_usd_per_accelerator_h_high = measured("rental_usd_per_accelerator_h", "upper end")
    electricity_usd_per_kwh = measured("electricity_usd_per_kwh")
    share_low = share("lower end of a share of a whole named in component")
    share_high = share("upper end of such a share")
    people_low = number("1", "lower end of a number of people")
    people_high = number("1", "upper end of a number of people")
    factor_per_two_years = number("1", "factor by which it changes in two years")
    basis = text("how the source gets there")


class Prices(Sourced):
    """Rental prices.

    A row is the distribution of list prices of one chip in one kind of offer: one price per provider, the median of its
    days, or the list price of its maker's own cloud. Nominal US dollars, of the time in `as_of`.
    """

    price = key("chip and kind of offer", unique=True, entity=True)
    accelerator = reference("accelerators.accelerator", "chip of the accelerators table", required=True)
    kind = text("kind of offer", required=True, one_of=("on demand", "spot"))
    providers = number("1", "providers with such an offer")
    rental_usd_per_accelerator_h_low = measured("rental_usd_per_accelerator_h", "cheapest provider")
    rental_usd_per_accelerator_h_quarter = measured(
        "rental_usd_per_accelerator_h", "a quarter of the providers is cheaper"
    )
    rental_usd_per_accelerator_h_median = measured("rental_usd_per_accelerator_h", "half of the providers are cheaper")
    rental_usd_per_accelerator_h_three_quarters = measured("rental_usd_per_accelerator_h", "three quarters are cheaper")
    rental_usd_per_accelerator_h_high = measured("rental_usd_per_accelerator_h", "dearest provider")


class PriceMonths(Sourced):
    """Rental prices by month.

    A row is the distribution of list prices of one chip in one kind of offer in one month: one price per provider, the
    median of its rows of the month; of earlier years the same from the dated revisions of a public list, the list price
    of one provider, and an index of contracts of a year. Nominal US dollars. GPU rental price data by
    gpurentalprices.com (https://gpurentalprices.com), licensed under CC BY 4.0, summarised here.
    """

    price_month = key("chip, kind of offer and month", unique=True, entity=True)
    accelerator = reference("accelerators.accelerator", "chip of the accelerators table, where it is one")
    rental_id = text("chip as the publisher names it; h100 and h200 leave the form factor open", required=True)
    kind = text(
        "kind of offer",
        required=True,
        one_of=("on demand", "on demand at AWS", "secure", "community", "spot", "serverless", "reserved"),
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


class CloudProviders(Stated):
    """Cloud providers.

    A row is the statement of one source about one provider of accelerators: tier, offer, price and judgement.
    """

    cloud_provider = reference("organisations.organisation", "who rents them out", required=True, entity=True)
    name = text("name as the source writes it", required=True)
    tier = text("class in which the source puts it", required=True)
    offer = text("offer, as the source writes it")
    price_stated = text("price or saving as the source writes it")
    advantages = text("advantages according to the source")
    limits = text("limits according to the source")


class Levers(Sourced):
    """Cost levers.

    A row is one way to lower the cost of a run, with the saving that the source gives for it.
    """

    lever = key("name of the lever", unique=True, entity=True)
    name = text("as the source writes it", required=True)
    saving_low = share("lower end of the saving")
    saving_high = share("upper end of the saving")
    quantity = dy.String(nullable=True, regex=KEY, description="input that it moves", metadata={"vocabulary": True})
    detail = text("details in the source")


class Rules(Sourced):
    """Decision rules.

    A row is one condition under which a source advises to build, to rent, or to aim at a value.
    """

    rule = key("name of the rule", unique=True, entity=True)
    decision = text("decision", required=True)
    branch = text("recommended option")
    condition = text("the condition in the source's words", required=True)
    quantity = dy.String(nullable=True, regex=KEY, description="quantity compared", metadata={"vocabulary": True})
    comparator = text("how it is compared", one_of=("<", "<=", ">", ">="))
    threshold = number("", "threshold in the unit of the quantity", positive=False)


class Forecasts(Sourced):
    """Forecasts.

    A row is a forecast of a source for a year, or a size that it compares sites with.
    """

    forecast = key("name of the row", unique=True, entity=True)
    year = text("year or time spoken about")
    subject = text("subject of the forecast", required=True)
    stated = text("in the source's words", required=True)
    accelerators_low = measured("accelerators", "lower end")
    accelerators_high = measured("accelerators", "upper end; empty if the source states 'more than'")
    facility_power_w_low = measured("facility_power_w", "lower end")
    facility_power_w_high = measured("facility_power_w", "upper end")
    cost_usd = number("USD", "sum spoken about, nominal")
    factor = number("1", "factor spoken about")


class Grids(Sourced):
    """Grids of cloud regions.

    A row is the electricity of one cloud region in one year as its operator counts it; the average of its country is in
    country_grids.
    """

    grid = key("operator and region", unique=True, entity=True)
    name = text("name for reading", required=True)
    country = reference("country_grids.country", "country of the region", required=True)
    carbon_kg_per_kwh = measured("carbon_kg_per_kwh", "operational, average of the grid")
    carbon_free_share = measured("carbon_free_share")


class CloudRegions(Sourced):
    """Cloud regions.

    A row is one region of a cloud in one year: its efficiency, its water and its electricity as the operator publishes
    them, and the carbon of its grid.
    """

    cloud_region = key("operator and region", unique=True, entity=True)
    name = text("name for reading", required=True)
    operator = text("who runs it", required=True)
    country = reference("country_grids.country", "country of the region", required=True)
    latitude = number("degree", "north of the equator", positive=False)
    longitude = number("degree", "east of Greenwich", positive=False)
    pue = measured("pue")
    water_l_per_kwh = measured("water_l_per_kwh", "on the site")
    carbon_free_share = measured("carbon_free_share", "mean of the year")
    carbon_kg_per_kwh = measured("carbon_kg_per_kwh", "average of the electricity consumed on its grid")


class RentalOffers(Sourced):
    """Rental offers by provider.

    A row is the price of one provider for one chip in one kind of offer: the median of its list prices over seven
    weeks, or the list price on its own page. Nominal US dollars. How many chips it has, and how often it takes them
    away, providers do not publish. GPU rental price data by gpurentalprices.com (https://gpurentalprices.com), licensed
    under CC BY 4.0, summarised here.
    """

    rental_offer = key("provider, chip and kind of offer", unique=True, entity=True)
    provider = text("provider as the publisher names it", required=True)
    accelerator = reference("accelerators.accelerator", "chip of the accelerators table, where it is one")
    rental_id = text("chip as the publisher names it; h100 and h200 leave the form factor open", required=True)
    kind = text(
        "kind of offer", required=True, one_of=("on demand", "secure", "community", "spot", "serverless", "reserved")
    )
    rental_usd_per_accelerator_h = measured("rental_usd_per_accelerator_h", "median of the rows")
    rental_usd_per_accelerator_h_min = measured("rental_usd_per_accelerator_h", "lowest of the rows")
    rental_usd_per_accelerator_h_max = measured("rental_usd_per_accelerator_h", "highest of the rows")
    least_accelerators = number("1", "fewest chips that can be rented at once")
    days = number("1", "days on which the provider was asked")
    offers = number("1", "rows of the publisher that went in")


class EgressPrices(Sourced):
    """Egress prices.

    A row is the price of one provider for a byte sent to the internet; zero where it is free.
    """

    egress_price = key("provider", unique=True, entity=True)
    provider = text("provider, as in the table of rental offers", required=True)
    egress_usd_per_byte = measured("egress_usd_per_byte", "first bytes of a month, as listed")
    egress_usd_per_byte_bulk = measured("egress_usd_per_byte", "lowest listed step, for large volumes")


class ChipPrices(Sourced):
    """Prices of chips at release.

    A row is one chip with a price and a rate: its price when it came out, in nominal US dollars of that year, and its
    dense peak rates. Release prices and estimates, no quotations: large buyers pay less. Selected and
    converted from Epoch AI, "Data on Machine Learning Hardware", https://epoch.ai/data/machine-learning-hardware, CC BY
    4.0.
    """

    chip_price = key("the chip whose price it is", unique=True, entity=True)
    name = text("name as the data set writes it", required=True)
    vendor = text("who designs it", required=True)
    kind = text("type of chip", required=True, one_of=("GPU", "TPU", "ASIC"))
    market = text("to whom it is sold", required=True, one_of=("data centre", "workstation", "consumer"))
    accelerator = reference("accelerators.accelerator", "chip of the accelerators table, where it is one")
    released = text("day of release", required=True)
    accelerator_usd = measured("accelerator_usd", "nominal, of the year of release")
    peak_16bit_flop_per_s = measured("peak_16bit_flop_per_s", "of the matrix units")
    peak_32bit_flop_per_s = number("FLOP/s", "peak of the vector units in fp32")
    price_address = text("page on which the data set found the price")


class PriceLevels(Sourced):
    """Price levels.

    A row is the level of consumer prices in one country in one year. Dollars of one year become dollars of another by
    the ratio of their levels.
    """

    price_level_year = key("country and year", unique=True, entity=True)
    country = reference("country_grids.country", "country", required=True)
    year = number("a", "calendar year")
    price_level = measured("price_level", "mean of 1982 to 1984 is 100")


class HalvingTimes(Sourced):
    """Halving times of the price of compute.

    A row is the statement of one source about how fast a FLOP gets cheaper. Where a source doubles the rate per dollar,
    the dollars per rate halve.
    """

    halving_time = key("the row's own name", unique=True, entity=True)
    subject = text("whose price falls", required=True)
    basis = text("numerator and denominator", required=True)
    cost_halving_years = measured("cost_halving_years")
    cost_halving_years_low = measured("cost_halving_years", "lower end of the source's interval")
    cost_halving_years_high = measured("cost_halving_years", "upper end of that interval")
    chips = number("1", "chips behind the figure")
    first_year = number("a", "first year of release")
    last_year = number("a", "last year of release")


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


class ExchangeRates(Sourced):
    """Exchange rates.

    A row is the mean of one year's daily rates of one currency in US dollars.
    """

    exchange_rate = key("currency and year", unique=True, entity=True)
    currency = text("ISO 4217 code", required=True)
    year = number("a", "calendar year")
    usd_per_unit = number("USD", "US dollars for one unit")
    days = number("1", "days in the mean")


class Electricity(Sourced):
    """Electricity prices.

    A row is the mean price of one kind of electricity in one country or state in one year, nominal. Euro
    values have their value in dollars at the year's mean in `exchange_rates` beside them. Ember's wholesale prices are
    under CC BY 4.0; the Energy Information Administration's are public.
    """

    electricity_price = key("area, kind and year", unique=True, entity=True)
    name = text("country or state", required=True)
    country = reference("country_grids.country", "country of the country_grids table", required=True)
    region = text("part of the country, by its postal code; empty for all of it")
    kind = text(
        "who pays it, or wholesale", required=True, one_of=("wholesale", "industrial", "commercial", "all customers")
    )
    year = number("a", "calendar year")
    electricity_usd_per_kwh = measured("electricity_usd_per_kwh", "nominal")
    electricity_eur_per_kwh = number("EUR/kWh", "the same in euro, where the source uses it, nominal")
    months = number("1", "months in the mean")


class ElectricityMonths(Sourced):
    """Electricity prices by month.

    A row is the mean day-ahead wholesale price of one area in one month, nominal; a data centre pays another price.
    In euro as in the source, and in dollars at the year's mean in `exchange_rates`. Ember, European Wholesale
    Electricity Price Data, CC BY 4.0, based on ENTSO-E and others.
    """

    electricity_month = key("area and month", unique=True, entity=True)
    name = text("area as the source writes it", required=True)
    country = reference("country_grids.country", "country of the country_grids table", required=True)
    month = key("calendar month", pattern=r"^[0-9]{4}-[0-9]{2}$")
    electricity_usd_per_kwh = number(
        "USD/kWh", "nominal; below zero where wind and sun gave more than was wanted", positive=False
    )
    electricity_eur_per_kwh = number("EUR/kWh", "the same in euro", positive=False)


class Months(Derived, Sourced):
    """History by month.

    A row is the value of one series in one month, computed from the rows of other tables that speak of that time: chips
    of the largest cluster so far, power of the sites as it was and as it is planned, chips sold by designer, the lowest
    price of a rate at which a chip came out, rent and rent per FLOP of each chip, electricity. A value holds
    until the next statement.
    """

    month_of_series = key("quantity, subject and month", unique=True, entity=True)
    quantity = key("value in the unit of the quantity", vocabulary=True)
    of = text("subject of the series", required=True)
    month = key("calendar month", pattern=r"^[0-9]{4}-[0-9]{2}$")
    value = number("", "in the quantity's unit", required=True, positive=False)
    rows = number("1", "rows of other tables behind it", required=True)
    status = text("whether it was so or is planned, where both are there", one_of=("existing", "planned"))
