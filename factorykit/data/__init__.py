"""Tables of facts: CSV sources built into Parquet, read with polars or queried with SQL."""
