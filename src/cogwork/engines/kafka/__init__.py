"""The engine `kafka`: streams on Apache Kafka, each a topic of one partition.

Theory of operation. An entry is a message; its position is Kafka's offset and one. Kafka appends
whatever comes, so that an entry which lost a race is in the topic, too; every reader passes over it
by the rule of the chain, and the writer whose it was tries again. The idempotent producer keeps the
library's own repetitions out. Kafka answers (`acks=all`) when all replicas in step have the
message, and synchronises disks when it sees fit, unless the topic says `flush.messages=1`. A
consumer is shown what fewer replicas have than are asked for, so that agreement is not uniform.

The library's calls block, or answer in threads of its own: each consumer has a thread here.
"""
