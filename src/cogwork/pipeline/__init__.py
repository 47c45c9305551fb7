"""The data pipeline: streams as tables, and what is built on them.

`arrow` reads ranges of a stream as Arrow record batches, `spark` is the data source, sink and
session for PySpark, `archive` keeps streams as Apache Iceberg tables, `audit` proves from an
archive that nothing was lost, `analytics` sums archives up, `pages` writes their HTML. Each needs
the extra of its name. The command line and user programs import from here; the broker never does.
Begin reading at `spark.source` and `archive.archiver`.
"""
