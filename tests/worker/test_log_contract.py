"""What a worker relies on in a log, held against a real Kafka and against the fake one. Where they differ, the fake is
wrong."""

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from support.logs_under_test import CALL_S, error_of


class Watched:
    """A member of a group, and what it was told."""

    def __init__(self, log, group, topic, name, told, **settings):
        self.consumer = log.member(group, **settings)
        self.name, self.told = name, told
        self.messages = []
        self.consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    def _assigned(self, consumer, partitions):
        consumer.incremental_assign([TopicPartition(place.topic, place.partition, 0) for place in partitions])
        self._note("assigned", partitions)

    def _revoked(self, consumer, partitions):
        self._note("revoked", partitions)
        consumer.incremental_unassign(partitions)

    def _lost(self, consumer, partitions):
        self._note("lost", partitions)
        consumer.incremental_unassign(partitions)

    def _note(self, what, partitions):
        if partitions:
            self.told.append((self.name, what, {partition.partition for partition in partitions}))

    def poll(self):
        message = self.consumer.poll(0.05)
        if message is not None:
            self.messages.append(message)

    @property
    def owned(self):
        return {place.partition for place in self.consumer.assignment()}

    @property
    def errors(self):
        return [message.error().code() for message in self.messages if message.error() is not None]


def settled(log, members, *counts):
    """Polls until the members own so many partitions."""

    def holds():
        for member in members:
            member.poll()
        return [len(member.owned) for member in members] == list(counts)

    log.until(holds, f"the group does not settle: {[member.owned for member in members]}")


def transaction(producer, topic, *values):
    """Begun, written, and in the partition."""
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(CALL_S) == 0


def offsets(topic, offset, metadata=""):
    return [TopicPartition(topic, 0, offset, metadata)]


# Transactions --------------------------------------------------------------------------------------------------------


def test_aborted_records_are_invisible_to_who_reads_committed_ones(log):
    topic, producer = log.topic(), log.transactional()
    for values, commits in ((["a", "b"], True), (["wrong"], False), (["c"], True)):
        transaction(producer, topic, *values)
        producer.commit_transaction(CALL_S) if commits else producer.abort_transaction(CALL_S)
    log.until(lambda: log.end(topic, "read_committed") == 7, "the markers do not come")
    assert log.read(topic) == ([(0, b"a"), (1, b"b"), (5, b"c")], 7)
    assert log.read(topic, "read_uncommitted") == ([(0, b"a"), (1, b"b"), (3, b"wrong"), (5, b"c")], 7)


def test_markers_take_offsets(log):
    topic, producer = log.topic(), log.transactional()
    transaction(producer, topic, *[str(number) for number in range(10)])
    producer.commit_transaction(CALL_S)
    log.until(lambda: log.end(topic, "read_committed") == 11, "the marker does not come")
    reader = log.consumer(enable_partition_eof=True)
    reader.assign([TopicPartition(topic, 0, 0)])
    records, end = log.to_end(reader)
    assert ([offset for offset, _ in records], end) == (list(range(10)), 11)
    assert reader.get_watermark_offsets(TopicPartition(topic, 0), cached=True) == (0, 11)


def test_the_last_stable_offset_holds_readers_back(log):
    topic, producer, plain = log.topic(), log.transactional(), log.producer()
    plain.produce(topic, "before", partition=0)
    assert plain.flush(CALL_S) == 0
    transaction(producer, topic, "open")
    plain.produce(topic, "behind", partition=0)
    assert plain.flush(CALL_S) == 0
    assert log.read(topic) == ([(0, b"before")], 1)
    assert log.read(topic, "read_uncommitted")[1] == 3
    assert (log.end(topic, "read_committed"), log.end(topic, "read_uncommitted")) == (1, 3)
    producer.commit_transaction(CALL_S)
    log.until(lambda: log.end(topic, "read_committed") == 4, "the marker does not come")
    assert log.read(topic) == ([(0, b"before"), (1, b"open"), (2, b"behind")], 4)


def test_a_reader_waits_at_an_open_transaction_and_goes_on(log):
    topic, producer = log.topic(), log.transactional()
    reader = log.consumer(enable_partition_eof=True, fetch_wait_max_ms=20)
    reader.assign([TopicPartition(topic, 0, 0)])
    transaction(producer, topic, "a")
    assert log.to_end(reader) == ([], 0)
    assert reader.poll(0.3) is None  # an end is told once
    place = TopicPartition(topic, 0)
    assert reader.get_watermark_offsets(place, cached=True) == (0, 1), "what it fetched says what waits there, too"
    producer.commit_transaction(CALL_S)
    assert log.to_end(reader) == ([(0, b"a")], 2)


def test_who_comes_with_the_same_id_aborts_and_fences(log):
    topic, name = log.topic(), log.unique("txn")
    zombie = log.transactional(name)
    transaction(zombie, topic, "zombie")
    assert log.end(topic, "read_committed") == 0
    healthy = log.transactional(name)
    log.until(lambda: log.end(topic, "read_committed") == 2, "the open transaction is not aborted")
    error = error_of(lambda: zombie.commit_transaction(CALL_S))
    assert (error.code(), error.fatal(), error.txn_requires_abort()) == (KafkaError._FENCED, True, False)
    transaction(healthy, topic, "healthy")
    healthy.commit_transaction(CALL_S)
    log.until(lambda: log.end(topic, "read_committed") == 4, "the marker does not come")
    assert log.read(topic)[0] == [(2, b"healthy")]
    again = error_of(lambda: zombie.produce(topic, "more", partition=0))
    assert (again.code(), again.fatal()) == (KafkaError._FATAL, False)


def test_what_a_fenced_producer_sends_is_not_delivered(log):
    topic, name = log.topic(), log.unique("txn")
    zombie = log.transactional(name)
    transaction(zombie, topic, "before")
    log.transactional(name)
    zombie.produce(topic, "after", partition=0)
    error = error_of(lambda: log.until(lambda: zombie.flush(1.0) == 0, "nothing is reported"))
    assert (error.code(), error.fatal()) == (KafkaError._FENCED, True)  # raised by a flush, or a poll
    assert zombie.flush(CALL_S) == 0
    assert error_of(lambda: zombie.commit_transaction(CALL_S)).code() == KafkaError._FENCED
    assert log.read(topic)[0] == []


def test_a_producer_that_finds_itself_fenced_while_it_reports_raises_something_else(log):
    """The library sets an exception and calls the report all the same, which Python does not allow."""
    topic, name, reports = log.topic(), log.unique("txn"), []
    zombie = log.transactional(name)
    transaction(zombie, topic, "before")
    log.transactional(name)
    zombie.produce(topic, "after", partition=0, on_delivery=lambda error, _: reports.append(error))
    with pytest.raises(SystemError) as raised:
        log.until(lambda: zombie.flush(1.0) == 0, "nothing is reported")
    assert isinstance(raised.value.__cause__, KafkaException)
    assert raised.value.__cause__.args[0].code() == KafkaError._FENCED


def test_a_fenced_producer_that_wrote_nothing_commits_nothing(log):
    name = log.unique("txn")
    zombie = log.transactional(name)
    zombie.begin_transaction()
    log.transactional(name)
    zombie.commit_transaction(CALL_S)  # the broker is not asked


def test_records_belong_into_a_transaction(log):
    topic, producer = log.topic(), log.transactional()
    assert error_of(lambda: producer.produce(topic, "a", partition=0)).code() == KafkaError._STATE
    assert error_of(lambda: producer.commit_transaction(CALL_S)).code() == KafkaError._STATE
    producer.begin_transaction()
    assert error_of(producer.begin_transaction).code() == KafkaError._STATE
    producer.abort_transaction(CALL_S)


def test_delivery_tells_the_offset_and_purge_gives_up(log):
    topic, producer, told = log.topic(), log.producer(linger_ms=10_000), []
    producer.produce(topic, "a", partition=0, on_delivery=lambda *report: told.append(report))
    assert producer.flush(CALL_S) == 0
    producer.produce(topic, "b", key="k", partition=0, on_delivery=lambda *report: told.append(report))
    producer.purge()
    assert producer.flush(CALL_S) == 0
    (none, first), (error, _) = told
    assert (none, first.offset(), first.partition()) == (None, 0, 0)
    assert error.code() == KafkaError._PURGE_QUEUE
    assert log.read(topic) == ([(0, b"a")], 1)


# Offsets in transactions ---------------------------------------------------------------------------------------------


def test_offsets_come_back_with_their_metadata(log):
    topic, group, producer = log.topic(), log.unique("group"), log.transactional()
    member = Watched(log, group, topic, "a", [])
    settled(log, [member], 1)
    producer.begin_transaction()
    metadata = "{" + "é" * 500 + "}"
    producer.send_offsets_to_transaction(offsets(topic, 7, metadata), member.consumer.consumer_group_metadata(), CALL_S)
    producer.commit_transaction(CALL_S)
    (found,) = member.consumer.committed(offsets(topic, -1001), CALL_S)
    assert (found.offset, found.metadata) == (7, metadata)


def test_offsets_of_an_aborted_transaction_are_not_stored(log):
    topic, group, producer = log.topic(), log.unique("group"), log.transactional()
    member = Watched(log, group, topic, "a", [])
    settled(log, [member], 1)
    producer.begin_transaction()
    producer.send_offsets_to_transaction(offsets(topic, 7, "x"), member.consumer.consumer_group_metadata(), CALL_S)
    producer.abort_transaction(CALL_S)
    (found,) = member.consumer.committed(offsets(topic, -1001), CALL_S)
    assert (found.offset, found.metadata) == (-1001, None)


def test_a_commit_of_no_offsets_is_refused(log):
    member = Watched(log, log.unique("group"), log.topic(), "a", [])
    settled(log, [member], 1)
    error = error_of(lambda: member.consumer.commit(offsets=[], asynchronous=False))
    assert (error.code(), error.retriable()) == (KafkaError._NO_OFFSET, False)


def test_unstable_offsets_are_waited_for_only_by_who_reads_committed_ones(log):
    topic, group, producer = log.topic(), log.unique("group"), log.transactional()
    member = Watched(log, group, topic, "a", [])
    settled(log, [member], 1)
    for offset in (3, 7):
        producer.begin_transaction()
        metadata = member.consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction(offsets(topic, offset, f"at {offset}"), metadata, CALL_S)
        if offset == 3:
            producer.commit_transaction(CALL_S)
            assert member.consumer.committed(offsets(topic, -1001), CALL_S)[0].offset == 3
    error = error_of(lambda: member.consumer.committed(offsets(topic, -1001), 1.0))
    assert (error.code(), error.retriable(), error.fatal()) == (KafkaError._TIMED_OUT, False, False)
    asker = log.consumer(group_id=group, isolation_level="read_uncommitted")
    (found,) = asker.committed(offsets(topic, -1001), CALL_S)
    assert (found.offset, found.metadata) == (3, "at 3")
    producer.commit_transaction(CALL_S)
    assert member.consumer.committed(offsets(topic, -1001), CALL_S)[0].offset == 7


def test_a_commit_of_an_old_generation_is_refused_and_the_producer_kept(log):
    topic, group, producer, told = log.topic(4), log.unique("group"), log.transactional(), []
    first = Watched(log, group, topic, "a", told)
    settled(log, [first], 4)
    old = first.consumer.consumer_group_metadata()
    second = Watched(log, group, topic, "b", told)
    settled(log, [first, second], 2, 2)
    transaction(producer, topic, "zombie")
    error = error_of(lambda: producer.send_offsets_to_transaction(offsets(topic, 1), old, CALL_S))
    flags = (error.fatal(), error.retriable(), error.txn_requires_abort())
    assert (error.code(), flags) == (KafkaError.ILLEGAL_GENERATION, (False, False, True))
    assert error_of(lambda: producer.commit_transaction(CALL_S)).txn_requires_abort()
    producer.abort_transaction(CALL_S)
    transaction(producer, topic, "healthy")
    producer.send_offsets_to_transaction(offsets(topic, 5), first.consumer.consumer_group_metadata(), CALL_S)
    producer.commit_transaction(CALL_S)
    assert first.consumer.committed(offsets(topic, -1001), CALL_S)[0].offset == 5


def test_a_commit_of_who_has_left_is_refused(log):
    topic, group, producer, told = log.topic(2), log.unique("group"), log.transactional(), []
    first, second = Watched(log, group, topic, "a", told), Watched(log, group, topic, "b", told)
    settled(log, [first, second], 1, 1)
    old = first.consumer.consumer_group_metadata()
    first.consumer.close()
    settled(log, [second], 2)
    producer.begin_transaction()
    error = error_of(lambda: producer.send_offsets_to_transaction(offsets(topic, 1), old, CALL_S))
    assert (error.code(), error.txn_requires_abort()) == (KafkaError.UNKNOWN_MEMBER_ID, True)


def test_a_commit_of_who_knows_that_it_has_left_is_refused(log):
    topic, group, producer, told = log.topic(2), log.unique("group"), log.transactional(), []
    first, second = Watched(log, group, topic, "a", told), Watched(log, group, topic, "b", told)
    settled(log, [first, second], 1, 1)
    first.consumer.unsubscribe()
    settled(log, [first, second], 0, 2)
    producer.begin_transaction()
    now = first.consumer.consumer_group_metadata()
    error = error_of(lambda: producer.send_offsets_to_transaction(offsets(topic, 1), now, CALL_S))
    assert (error.code(), error.txn_requires_abort()) == (KafkaError.UNKNOWN_MEMBER_ID, True)


def test_a_commit_of_who_was_thrown_out_is_refused_until_it_has_joined_again(log):
    """Also once it knows: only who joins again has another generation, and what it had is called lost before that."""
    topic, group, producer, told = log.topic(2), log.unique("group"), log.transactional(), []
    first, second = Watched(log, group, topic, "a", told), Watched(log, group, topic, "b", told)
    settled(log, [first, second], 1, 1)

    def refused():
        producer.begin_transaction()
        now = first.consumer.consumer_group_metadata()
        error = error_of(lambda: producer.send_offsets_to_transaction(offsets(topic, 1), now, CALL_S))
        producer.abort_transaction(CALL_S)
        return error.code() == KafkaError.UNKNOWN_MEMBER_ID

    log.evict(group, first.consumer.memberid())
    settled(log, [second], 2)
    log.until(lambda: not first.consumer.memberid(), "a heartbeat finds out")
    assert ("a", "lost", {0}) not in told
    assert ("a", "lost", {1}) not in told  # callbacks are called by polls only
    assert refused()
    log.until(lambda: first.poll() or told[-1][:2] == ("a", "lost"), "it is not told")


def test_a_commit_of_who_was_not_polled_for_too_long_is_refused(log):
    topic, group, producer = log.topic(2), log.unique("group"), log.transactional()
    first = Watched(log, group, topic, "a", [], max_poll_interval_ms=6000)
    second = Watched(log, group, topic, "b", [])
    settled(log, [first, second], 1, 1)
    settled(log, [second], 2)
    producer.begin_transaction()
    now = first.consumer.consumer_group_metadata()
    error = error_of(lambda: producer.send_offsets_to_transaction(offsets(topic, 1), now, CALL_S))
    assert (error.code(), error.txn_requires_abort()) == (KafkaError.UNKNOWN_MEMBER_ID, True)


def test_a_commit_of_who_was_never_a_member_is_taken(log):
    """So nobody may commit with what a consumer says of itself before it joins."""
    topic, group, producer = log.topic(), log.unique("group"), log.transactional()
    member, stranger = Watched(log, group, topic, "a", []), log.member(group)
    settled(log, [member], 1)
    producer.begin_transaction()
    producer.send_offsets_to_transaction(offsets(topic, 9), stranger.consumer_group_metadata(), CALL_S)
    producer.commit_transaction(CALL_S)
    assert member.consumer.committed(offsets(topic, -1001), CALL_S)[0].offset == 9


def test_a_commit_of_a_static_member_that_was_replaced_is_refused(log):
    topic, group, producer = log.topic(), log.unique("group"), log.transactional()
    zombie = Watched(log, group, topic, "a", [], group_instance_id="w1")
    settled(log, [zombie], 1)
    old = zombie.consumer.consumer_group_metadata()
    healthy = Watched(log, group, topic, "b", [], group_instance_id="w1")
    settled(log, [healthy], 1)
    producer.begin_transaction()
    error = error_of(lambda: producer.send_offsets_to_transaction(offsets(topic, 1), old, CALL_S))
    assert (error.code(), error.txn_requires_abort()) == (KafkaError.FENCED_INSTANCE_ID, True)
    log.until(lambda: zombie.poll() or KafkaError._FATAL in zombie.errors, "the zombie is not told")
    told = next(message.error() for message in zombie.messages if message.error().code() == KafkaError._FATAL)
    assert not told.fatal()


# Groups --------------------------------------------------------------------------------------------------------------


def test_a_partition_is_revoked_before_it_is_assigned_elsewhere(log):
    topic, group, told = log.topic(4), log.unique("group"), []
    first = Watched(log, group, topic, "a", told)
    settled(log, [first], 4)
    second = Watched(log, group, topic, "b", told)
    settled(log, [first, second], 2, 2)
    assert told[0] == ("a", "assigned", {0, 1, 2, 3})
    (revoked,) = [numbers for name, what, numbers in told if (name, what) == ("a", "revoked")]
    later = told[told.index(("a", "revoked", revoked)) + 1 :]
    assert later == [("b", "assigned", revoked)]  # and what stays is not touched
    assert first.owned == {0, 1, 2, 3} - revoked


def test_who_was_not_polled_for_too_long_has_lost_its_partitions(log):
    topic, group, told = log.topic(2), log.unique("group"), []
    first = Watched(log, group, topic, "a", told, max_poll_interval_ms=6000)
    second = Watched(log, group, topic, "b", told)
    settled(log, [first, second], 1, 1)
    log.until(lambda: second.poll() or len(second.owned) == 2, "nobody takes over")
    assert ("a", "lost", {0}) not in told
    assert ("a", "lost", {1}) not in told  # callbacks are called by polls only
    settled(log, [first, second], 1, 1)
    # Whoever came first may have had both, and given one up.
    assert [what for name, what, _ in told if name == "a"][-2:] == ["lost", "assigned"]
    assert KafkaError._MAX_POLL_EXCEEDED in first.errors


def test_a_static_member_that_comes_back_gets_what_it_had_and_nobody_else_notices(log):
    topic, group, told = log.topic(4), log.unique("group"), []
    first = Watched(log, group, topic, "a", told, group_instance_id="w1")
    second = Watched(log, group, topic, "b", told, group_instance_id="w2")
    settled(log, [first, second], 2, 2)
    had = first.owned
    first.consumer.close()
    told.clear()
    again = Watched(log, group, topic, "c", told, group_instance_id="w1")
    settled(log, [again, second], 2, 2)
    assert told == [("c", "assigned", had)]


class Dying(Watched):
    """Dies when it has to give partitions up, and is there again as another process."""

    again = None

    def _revoked(self, consumer, partitions):
        if partitions and self.again is None:
            self.again = self.revive()
            self.log.until(lambda: self.survivor.poll() or self.again.poll() or self.again.owned, "it gets nothing")
        super()._revoked(consumer, partitions)


def test_what_a_static_member_was_giving_up_when_it_was_replaced_belongs_to_nobody(log):
    topic, group, told = log.topic(4), log.unique("group"), []
    first = Dying(log, group, topic, "a", told, group_instance_id="w1")
    settled(log, [first], 4)
    first.log, first.survivor = log, Watched(log, group, topic, "b", told, group_instance_id="w2")
    first.revive = lambda: Watched(log, group, topic, "c", told, group_instance_id="w1")
    log.until(lambda: first.survivor.poll() or first.poll() or first.again, "nothing is revoked")
    log.until(lambda: first.poll() or KafkaError._FATAL in first.errors, "it does not hear that it was replaced")
    members = [first.again, first.survivor]
    until = log.now() + 3
    while log.now() < until:
        for member in members:
            member.poll()
        log.wait(0.05)
    assert [len(member.owned) for member in members] == [2, 0]
    first.again.consumer.unsubscribe()
    settled(log, members, 0, 4)  # whoever leaves makes the group share out anew


def test_a_dynamic_member_that_closes_hands_over_at_once(log):
    topic, group, told = log.topic(2), log.unique("group"), []
    first, second = Watched(log, group, topic, "a", told), Watched(log, group, topic, "b", told)
    settled(log, [first, second], 1, 1)
    first.consumer.close()
    assert told[-1][:2] == ("a", "revoked")
    settled(log, [second], 2)
