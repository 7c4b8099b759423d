"""Tables of the audit: claims of documents, primary sources, contradictions, expected values."""

from __future__ import annotations

import dataframely as dy
import polars as pl

from factorykit.data.schemas.fields import Sourced, Stated, key, number, reference, sources, text


class Facts(Sourced):
    """Facts.

    A row is one number from a source that is nearer to the fact than the documents that are audited, and that no other
    table holds.
    """

    fact = key("name of the fact in recipes", unique=True, entity=True)
    subject = text("subject of the number", required=True)
    meaning = text("meaning of the number", required=True)
    value = number("", "the number, in the unit of its row", required=True, positive=False)
    unit = text("unit of the number", required=True)


class Claims(Sourced):
    """Claims.

    A row is one quantitative statement of an audited document. ``recipe`` recomputes it from quantities,
    formulas and table cells; no answer is stored here, the audit computes it.
    """

    claim = key("name of the claim: document and number", unique=True, entity=True)
    subject = text("subject of the claim", required=True)
    claimed = text("claimed property", required=True)
    printed = text("the number as printed, with its unit", required=True)
    printed_unit = text("unit as printed", required=True)
    stated = number("", "the number in `unit`; of a range the middle", positive=False)
    stated_low = number("", "lower end of a range; without an upper one 'at least'", positive=False)
    stated_high = number("", "upper end of a range; without a lower one 'at most'", positive=False)
    unit = text("unit of the stated numbers: one of the vocabulary's, or a plain one like them", required=True)
    exact_to = dy.Float64(
        nullable=True,
        min_exclusive=0.0,
        description="step of the last printed digit, where the number must come out exactly, as counts and years do",
        metadata={"unit": ""},
    )
    recipe = text("how it is recomputed; if it cannot be, empty, with the reason in `why`")
    other_unit = text("recipe for which the number is right, if its unit was confused with another one")
    superseded_by = reference("sources.source", "source nearer to the fact whose value the recipe takes")
    compared_with = sources("sources that the claim was compared with")
    why = text("one sentence: result of the recomputation, or the reason why there is none", required=True)

    @dy.rule()
    def a_claim_states_a_number_or_a_bound(cls) -> pl.Expr:  # noqa: N805
        """Refuse a claim without any number."""
        return pl.any_horizontal(pl.col("stated", "stated_low", "stated_high").is_not_null())


class Conflicts(Sourced):
    """Conflicts.

    A row is one contradiction: two statements about one fact, in two documents or inside one, the evidence, and the
    side that was chosen. `source` and `locator` are those of the first statement.
    """

    conflict = key("name of the conflict", unique=True, entity=True)
    kind = text(
        "where the two sides stand",
        required=True,
        one_of=("between documents", "inside one document", "documents agree, literature differs"),
    )
    subject = text("subject of the two statements", required=True)
    quantity = text("property stated twice", required=True)
    first = text("the first statement", required=True)
    second = text("the second statement", required=True)
    second_source = reference("sources.source", "source of the second statement", required=True)
    second_locator = text("where the second stands", required=True)
    unit = text("unit of both")
    evidence = text("value according to primary sources or the document's own numbers")
    evidence_from = sources("sources of the evidence")
    choice = text("the side that is taken", required=True, one_of=("first", "second", "both", "neither", "undecided"))
    reason = text("why that side", required=True)


class ExpectedValues(Stated):
    """Expected values.

    A row is one case of one capability: the result of the document's own rule, the printed value, and the one that
    comes out once it is put right. Numbers are in the row's `unit`; a single number fills both ends of its range.
    """

    expected_value = key("capability and case", entity=True)
    function = reference("functions.function", "the capability", required=True)
    case = text("the case as the source writes it", required=True)
    inputs = text("inputs")
    as_written_low = number("", "result of the document's own rule, lower end", positive=False)
    as_written_high = number("", "result of the document's own rule, upper end", positive=False)
    printed = text("value printed in the document")
    corrected_low = number("", "correct value, lower end", positive=False)
    corrected_high = number("", "correct value, upper end", positive=False)
    unit = text("unit of the numbers, as the inventory writes it")
    recipe_as_written = text("how the document's own rule is repeated, in the language of the audit")
    recipe_corrected = text("how the right number is computed, in the language of the audit")


class Coverage(Sourced):
    """Coverage.

    A row is a topic of the audited documents: where they speak of it, which quantities, verbs, tables and notebooks are
    about it, which published figure these reproduce, and what is missing.
    """

    topic = key("name of the topic", unique=True, entity=True)
    name = text("name for reading", required=True)
    places = text("documents and lines that speak of it, parted by semicolons", required=True)
    quantities = text("quantities of the vocabulary that compute it, parted by semicolons")
    verbs = text("verbs of the package that compute it, parted by semicolons")
    tables = text("tables with statements about it, separated by semicolons")
    notebooks = text("numbers of the notebooks that ask about it, parted by semicolons")
    reproduces = text("published figure that is met")
    misses = text("part that is not computed")
