"""The table of errors, row by row."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from worker.errors import ResetError, WorkerError
from worker.reactions import (
    CONSUMING,
    PRODUCING,
    Reaction,
    producing,
    raise_for,
    reaction_of_consumer,
    reaction_of_producer,
)

NAMES = {code: KafkaError(code).name() for code in {*CONSUMING, *PRODUCING}}


def outcome(reaction, error):
    try:
        raise_for(reaction, error, "doing it")
    except WorkerError as failed:
        return "ends", failed
    except ResetError as failed:
        return ("fenced" if failed.fenced else "keeps" if failed.keeps_producer else "renews"), failed
    return "goes on", None


EXPECTED = {
    Reaction.GO_ON: "goes on",
    Reaction.WAIT: "goes on",
    Reaction.RESET: "keeps",
    Reaction.RENEW: "renews",
    Reaction.FENCED: "fenced",
    Reaction.END: "ends",
}


@pytest.mark.parametrize("code", PRODUCING, ids=NAMES.get)
def test_errors_of_the_producer(code):
    error = KafkaError(code)
    assert reaction_of_producer(error) is PRODUCING[code]
    what, failed = outcome(PRODUCING[code], error)
    assert what == EXPECTED[PRODUCING[code]]
    assert "doing it" in str(failed)
    assert error.name() in str(failed)


@pytest.mark.parametrize("code", CONSUMING, ids=NAMES.get)
def test_errors_of_the_consumer(code):
    error = KafkaError(code)
    assert reaction_of_consumer(error) is CONSUMING[code]
    assert outcome(CONSUMING[code], error)[0] == EXPECTED[CONSUMING[code]]


def test_unknown_errors_count_as_the_worst_of_their_class():
    code = KafkaError.POLICY_VIOLATION
    assert reaction_of_producer(KafkaError(code)) is Reaction.RENEW
    assert reaction_of_producer(KafkaError(code, fatal=True)) is Reaction.FENCED
    assert reaction_of_producer(KafkaError(code, txn_requires_abort=True)) is Reaction.RESET
    assert reaction_of_consumer(KafkaError(code)) is Reaction.END
    assert reaction_of_consumer(KafkaError(code, retriable=True)) is Reaction.WAIT
    assert reaction_of_consumer(KafkaError(code, retriable=True, fatal=True)) is Reaction.END


@pytest.mark.parametrize(
    "code", [code for code, reaction in (CONSUMING | PRODUCING).items() if reaction is Reaction.END]
)
def test_what_ends_a_worker_says_how_to_mend_it(code):
    with pytest.raises(WorkerError) as caught:
        raise_for(Reaction.END, KafkaError(code), "doing it")
    assert caught.value.fix
    assert caught.value.exit_code == 3


def fenced():
    return KafkaException(KafkaError(KafkaError._FENCED, fatal=True))


def destroyed_report():
    error = SystemError("a callback returned a result with an exception set")
    error.__cause__ = fenced()
    return error


@pytest.mark.parametrize("raised", [fenced(), destroyed_report()], ids=["as it is", "in the midst of reports"])
def test_a_producer_that_finds_itself_fenced_resets(raised):
    with pytest.raises(ResetError, match="flush: _FENCED") as caught, producing("flush"):
        raise raised
    assert caught.value.fenced


def test_what_is_no_error_of_kafka_stays_what_it_is():
    with pytest.raises(SystemError, match="of another kind"), producing("flush"):
        raise SystemError("of another kind")
