"""A job of PySpark: the mean delay on arrival by carrier, from the archive of the flights.

cogwork pipeline run examples/flights/carriers.py FOLDER STREAM` is the command.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from pyspark.sql import functions

from cogwork.pipeline.archive import Archive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLIGHT = "carrier string, arr_delay double"


def main(spark: SparkSession, folder: str, stream: str) -> None:
    """Print a JSON object: each carrier with its mean delay in minutes."""
    records = spark.read.parquet(*Archive.open(folder).files(stream))
    flights = records.select(
        functions.from_json(functions.col("body").cast("string"), FLIGHT).alias("flight")
    )
    means = flights.groupBy("flight.carrier").agg(functions.avg("flight.arr_delay").alias("mean"))
    print(json.dumps({row["carrier"]: row["mean"] for row in means.collect()}))


if __name__ == "__main__":
    main(spark, *sys.argv[1:])  # noqa: F821  # `cogwork pipeline run` gives the session
