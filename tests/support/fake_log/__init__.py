"""A log like Kafka's in one process and one thread, for tests: no real time passes, and all choices come from a seed.

`broker.py` is the broker: `log.py` its partitions, `transactions.py` and `groups.py` its coordinators. `consumer.py`
and `producer.py` are the clients, with confluent_kafka's names, settings, errors and flags; `clients.py` hands them to
a worker. `faults.py` says what may go wrong. What a client does in the background happens whenever the clock moves.

One contract suite (tests/worker/test_log_contract.py) holds it against a real Kafka; where they differ, this is wrong.
"""
