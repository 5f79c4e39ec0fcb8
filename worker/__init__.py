"""The data plane: one process of a fleet, which matches patterns on Kafka topics and keeps its state in Kafka.

An event's way: `loop.py` takes it, `records.py` sorts a batch by partition, `partition.py` feeds the engine,
`publishing.py` sends what it says, `checkpoint.py` commits. Only `arcfleet worker` starts it; nobody imports it.
"""
