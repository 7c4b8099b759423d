"""Tables of sources, organisations and other names."""

from __future__ import annotations

import dataframely as dy

from factorykit.data.entities import SOURCE_KINDS
from factorykit.data.schemas.fields import (
    STATEMENT,
    Derived,
    Entity,
    Sourced,
    Stated,
    Table,
    address,
    day,
    key,
    number,
    text,
)


class Sources(Table):
    """Sources.

    A row is a document, paper, page, repository or data set that other tables take facts from.
    """

    source = key("name by which rows refer to it", unique=True, entity=True)
    title = text("title, and the part that was used", required=True)
    author = text("who wrote or published it")
    kind = text("description", required=True, one_of=tuple(SOURCE_KINDS))
    published = day("when it appeared, as exact as known")
    accessed = day("when the facts were read, or checked last")
    url = dy.String(nullable=True, regex=r"^https?://\S+$", description="where it is found")
    file = text("file name of a document that is no public page")
    licence = text("terms under which its facts are used here", required=True)
    evidence = text("how it was read: in full, an excerpt, quoted by others, from memory", required=True)
    facts = text("the facts taken from it")
    note = text("caveat")


class OrganisationFields(dy.Schema):
    """Columns of the tables about organisations."""

    name = text("name as the source writes it", required=True)
    role = text("role according to the source", required=True)


class OrganisationStatements(OrganisationFields, Stated):
    """Statements about organisations.

    A row is the role of an organisation according to one source: a lab, a vendor, a cloud, a partner.
    """

    organisation = key("name of the organisation in all tables", entity=True)


class Organisations(OrganisationFields, Entity):
    """Organisations.

    A row is one organisation. The key names it in all tables.
    """

    organisation = key("name of the organisation in all tables", unique=True, entity=True)


class Freshness(Derived, Table):
    """Freshness.

    A row is the age of one source: when it appeared, when it was read, how many rows rest on it, and the
    newest time of which one of them speaks.
    """

    source = key("name of the source", unique=True, entity=True)
    published = day("when it appeared")
    accessed = day("when its facts were read, or checked last")
    newest = day("newest time of which a row from it speaks")
    rows = number("1", "rows of all tables that name it", required=True)
    tables = text("tables with such rows, separated by '; '")


class DataChanges(Sourced):
    """Changes of the data.

    A row is one change of one cell, or one row that came or went: when, of which table, old and new value, and who
    states the new. `factorykit data refresh --apply` writes it, `factorykit data changes` shows it.
    """

    data_change = key("day and number of the change", unique=True, entity=True)
    day = day("day on which it was made", required=True)
    table = text("table that changed", required=True)
    row = text("key of the row", required=True)
    change = text("kind of change", required=True, one_of=("added", "changed", "removed"))
    column = text("column that changed; empty where the whole row came or went")
    was = text("previous value; empty for a new one")
    now = text("new value; of a new row its name")


class Statements(Derived, Sourced):
    """Statements.

    A row is one value of one field that one source states about one entity, picked or not. The tables `clusters`,
    `sites`, `models`, `runs` and `organisations` hold the values whose `preferred` is filled with the reason.
    """

    kind = key("table of the entity", unique=True)
    entity = text("key of the entity in that table", required=True)
    field = key("column of that table", unique=True)
    value = dy.Float64(nullable=True, description="the value where it is a number, in the column's unit", metadata={})
    words = text("the value where it is none")
    statement = key(
        "the row of the table of statements that it is taken from", unique=True, pattern=STATEMENT, entity=True
    )
    address = address()
    preferred = text("why this value is picked for the field; empty for those that are not")


class Aliases(Sourced):
    """Aliases.

    A row is one name of one entity, and its key in all tables. Joined on `alias`, a name as it is written
    becomes a key; `identify` does the same for a single name and is not particular about case, dashes and makers.
    """

    kind = key("kind of entity", unique=True, pattern="^(accelerator|organisation|cluster|model|architecture|country)$")
    alias = dy.String(
        primary_key=True,
        nullable=False,
        min_length=1,
        description="name as written elsewhere; one name may stand for entities of several kinds",
        metadata={"entity": True},
    )
    key = key("key of the accelerators, organisations, clusters or architectures table; for a model, of the runs table")
