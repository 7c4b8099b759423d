"""Tables of who says it and what things are called: sources, organisations, other names."""

from __future__ import annotations

import dataframely as dy

from factorykit.datasets.schemas.fields import DAY, Sourced, Stated, Table, key, text


class Sources(Table):
    """Sources.

    A row is a document, paper, page, repository or data set that other tables take facts from.
    """

    source = key("name by which rows refer to it", unique=True, entity=True)
    title = text("title, and the part that was used", required=True)
    author = text("who wrote or published it")
    kind = text(
        "what it is",
        required=True,
        one_of=("document", "paper", "documentation", "article", "repository", "dataset", "datasheet", "note"),
    )
    published = dy.String(nullable=True, regex=DAY, description="when it appeared, as exact as known")
    accessed = dy.String(nullable=True, regex=DAY, description="when the facts were read")
    url = dy.String(nullable=True, regex=r"^https?://\S+$", description="where it is found")
    file = text("file name of a document that is no public page")
    licence = text("terms under which its facts are used here", required=True)
    evidence = text("how it was read: in full, an excerpt, quoted by others, from memory", required=True)
    facts = text("the facts taken from it")
    note = text("what to know before relying on it")


class Organisations(Stated):
    """Organisations.

    A row is what one source says an organisation is: a lab, a vendor, a cloud, a partner. The key names it in all
    tables.
    """

    organisation = key("name of the organisation in all tables", entity=True)
    name = text("name as the source writes it", required=True)
    role = text("what it is, as the source sees it", required=True)


class Aliases(Sourced):
    """Aliases.

    A row is one name under which one thing goes, and its key in all tables. Joined on `alias`, a name as it is written
    becomes a key; `identify` does the same for a single name and is not particular about case, dashes and makers.
    """

    kind = dy.String(
        primary_key=True,
        regex="^(accelerator|organisation|cluster|model)$",
        description="what sort of thing",
    )
    alias = dy.String(
        primary_key=True,
        nullable=False,
        min_length=1,
        description="name as somebody writes it; one name may stand for things of several sorts",
        metadata={"entity": True},
    )
    key = key("key of the accelerators, organisations or clusters table; for a model, of the runs table")
