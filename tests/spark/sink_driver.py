"""A Spark driver that is killed: `python sink_driver.py URL CHECKPOINT`, from `in` to `out`."""

import sys

from quick_java import OPTIONS

from cogwork.pipeline.spark.session import local_session

url, checkpoint = sys.argv[1:]
spark = local_session(
    "killed",
    "local[2]",
    {
        "spark.driver.extraJavaOptions": OPTIONS,
        "spark.sql.shuffle.partitions": "2",
    },
)
rows = (
    spark.readStream.format("cogwork")
    .options(url=url, stream="in", startingOffsets="earliest", maxOffsetsPerTrigger="1000")
    .option("minPartitions", "2")
    .schema("subject string, body binary")
    .load()
)
query = (
    rows.writeStream.format("cogwork")
    .options(url=url, address="stream/out", checkpointLocation=checkpoint)
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
