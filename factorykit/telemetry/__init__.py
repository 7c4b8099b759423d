"""Cluster telemetry: log readers (Slurm, DCGM, Kubernetes, training frameworks, ...), failure rates, goodput, energy.

A *format* is a row of ``formats.csv`` and some rows of ``columns.csv``: how it is recognised, which shape it has, and
where each column of ours is found and how its cells are parsed. There are four shapes: a ``table`` with a header, a
``line`` from which regular expressions extract values, ``json`` (one record per line, or a document with a list of
records), and ``series``, the answer of Prometheus to a range query. A new format needs rows, no code.

polars reads every file as text, plain or compressed (gzip, zstd, xz, bzip2), and expressions turn it into columns. A
row with a cell that cannot be parsed, or without a required value, is skipped. Skipped rows, lines of other programs,
implausible timestamps, duplicate, unordered and contradicting rows are counted in :attr:`Log.notes`.

======== ============================================================== ==========================================
table    one row per                                                    columns
======== ============================================================== ==========================================
events   event of a node, an accelerator (or a health check) or a job   at, until, node, accelerator, job, kind, cause,
                                                                        code
jobs     attempt of a job: each start                                   job, name, user, state, submitted, started,
                                                                        ended, nodes, accelerators, node_list
steps    logged training step, of the job or of each of its nodes       at, job, node, step, step_s,
                                                                        checkpoint_write_s
power    sample of one accelerator                                      at, node, accelerator, job,
                                                                        accelerator_power_w, utilization
======== ============================================================== ==========================================

Rates need exposure: :attr:`Log.watched` has the nodes and periods that journals, health checks and schedulers observe,
failing or not.

``read_log(…, out="folder/")`` writes logs larger than memory as Parquet by table, format, day and node
(:class:`factorykit.fleet.LogStudy`), in parallel processes or on Ray; called again, it reads what is new.

Timestamps are UTC. Only values with a column are kept: no message, command line or environment enters a table, and
text in names that looks like a key is replaced by a token, the same one for the same text.
"""
