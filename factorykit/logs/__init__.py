"""Logs in: what schedulers, monitors and trainers write becomes four tidy tables.

A *format* is a row of ``formats.csv`` and some of ``columns.csv``: by what it is recognised, which shape it has, and
for each of our columns what theirs is called and how its cells are read. There are four shapes: a ``table`` with a
header, a ``line`` of which regular expressions take parts, ``json`` (one record a line, or a document with a list of
them), and ``series``, Prometheus' answer to a range query. Nothing else is known about a format: a new one is rows.

Everything is read as text by polars, in batches, plain or packed (gzip, zstd), and turned into columns by expressions.
A cell that says something that cannot be read makes its line a bad one. Bad lines, lines of something else, repeated,
unordered and contradicting rows are counted in :attr:`Log.notes`; nothing is dropped without a word.

======== ============================================================== ==========================================
table    one row per                                                    columns
======== ============================================================== ==========================================
events   thing that happened to a node or a job                         at, until, node, job, kind, cause, code
jobs     attempt of a job: each start of it                             job, user, state, submitted, started, ended,
                                                                        nodes, accelerators, on (names of nodes)
steps    training step told, by the job or by each of its nodes         at, job, node, step, step_s,
                                                                        checkpoint_write_s
power    sample of one accelerator                                      at, node, accelerator, job,
                                                                        accelerator_power_w, utilization
======== ============================================================== ==========================================

Moments are UTC. Only what has a column is kept: no message, command line or environment enters a table, and what looks
like a key in a name is hidden on the way in. ``logs`` stands beside ``datasets``: it imports what lies below both, and
the model (``model/fleet``) asks it.
"""
