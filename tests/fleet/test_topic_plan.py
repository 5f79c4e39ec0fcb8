"""What the topics of a fleet should be and what differs: the decision alone, without a broker."""

from __future__ import annotations

import pytest

from afa.contracts import contract
from arcfleet.fleet.document import load_fleet
from arcfleet.fleet.topics import Configure, Create, Seen, own_topics, plan_topics, topic_names

DEFINED = [topic["suffix"] for topic in contract("topics")["topics"]]


def fleet(tmp_path, sources="{topic: trades}, {topic: quotes}", **flags):
    file = tmp_path / "fleet.yaml"
    file.write_text(f"fleet: f\nsources: [{sources}]\n", encoding="utf-8")
    return load_fleet(file, flags)


def as_they_should_be(of, partitions=3):
    """The facts of a cluster where nothing differs."""
    sources = {source.topic: Seen(partitions, {"message.timestamp.type": "CreateTime"}) for source in of.sources}
    own = {topic.name: Seen(topic.partitions, dict(topic.config)) for topic in own_topics(of, partitions)}
    return sources | own


def what(plan):
    return [difference.what for difference in plan.differences]


def test_on_an_empty_cluster_sources_are_asked_for(tmp_path):
    two = fleet(tmp_path)
    seen = {name: Seen() for name in topic_names(two)}
    plan = plan_topics(two, seen)
    assert [one.topic.name for one in plan.create] == ["f.arcs", "f.arcs.log", "f.arcs.requests", "f.progress"]
    assert [problem.what for problem in plan.left_alone] == [
        "the source topic trades is missing",
        "the source topic quotes is missing",
    ]
    assert all("--sources N" in problem.fix for problem in plan.left_alone)


def test_on_an_empty_cluster_everything_is_made(tmp_path):
    two = fleet(tmp_path)
    plan = plan_topics(two, {name: Seen() for name in topic_names(two)}, sources=6)
    made = {one.topic.name: one.topic.partitions for one in plan.create}
    assert list(made) == ["trades", "quotes", *(f"f.{suffix}" for suffix in DEFINED)]
    assert {name for name, count in made.items() if count == 1} == {
        "f.arcs", "f.arcs.log", "f.arcs.requests", "f.progress"
    }  # fmt: skip
    assert set(made.values()) == {1, 6}
    assert plan.differences == plan.create == plan.blocking
    state = next(one.topic for one in plan.create if one.topic.name == "f.state")
    assert state.config["cleanup.policy"] == "compact"
    assert state.replication == -1


@pytest.mark.parametrize("sources", [None, 3])
def test_where_nothing_differs_there_is_nothing_to_do(tmp_path, sources):
    two = fleet(tmp_path)
    plan = plan_topics(two, as_they_should_be(two), sources)
    assert (plan.steps, plan.partitions) == ((), 3)


def test_a_missing_topic_blocks(tmp_path):
    two = fleet(tmp_path)
    plan = plan_topics(two, as_they_should_be(two) | {"f.state": Seen()})
    (create,) = plan.blocking
    assert isinstance(create, Create)
    assert create.what.startswith("the topic f.state is missing (3 partitions, cleanup.policy=compact,")


def test_a_missing_source_is_made_only_when_asked(tmp_path):
    two = fleet(tmp_path)
    seen = as_they_should_be(two) | {"quotes": Seen()}
    assert what(plan_topics(two, seen)) == ["the source topic quotes is missing"]
    assert what(plan_topics(two, seen, sources=3)) == ["the topic quotes is missing (3 partitions)"]
    other = plan_topics(two, seen, sources=4)
    assert what(other) == ["the source topic trades has 3 partitions, and --sources asks for 4"]
    assert not other.create


def test_sources_have_one_number_of_partitions(tmp_path):
    two = fleet(tmp_path)
    plan = plan_topics(two, as_they_should_be(two) | {"quotes": Seen(4, {})})
    three = fleet(tmp_path, "{topic: none}, {topic: trades}, {topic: quotes}")
    unequal = as_they_should_be(three) | {"none": Seen(), "quotes": Seen(4, {})}
    assert "the source topic quotes has 4 partitions, but trades has 3" in what(plan_topics(three, unequal))
    assert plan.partitions is None
    assert what(plan) == ["the source topic quotes has 4 partitions, but trades has 3"]
    assert plan.blocking


def test_partitions_are_left_alone(tmp_path):
    two = fleet(tmp_path)
    seen = as_they_should_be(two)
    plan = plan_topics(two, seen | {"f.matches": Seen(1, seen["f.matches"].config)})
    (problem,) = plan.blocking
    assert problem.what == "the topic f.matches has 1 partition, and should have 3"
    assert "another name" in problem.fix
    assert plan.steps == (problem,)


def test_a_setting_that_differs_is_changed(tmp_path):
    two = fleet(tmp_path)
    config = {"cleanup.policy": "delete", "retention.ms": "1", "max.message.bytes": "999999999"}
    plan = plan_topics(two, as_they_should_be(two) | {"f.late": Seen(3, config)})
    assert plan.configure == (Configure("f.late", "retention.ms", "1", "604800000"),), "more room is as good"
    assert plan.blocking == ()


def test_a_policy_that_differs_blocks(tmp_path):
    two = fleet(tmp_path)
    seen = as_they_should_be(two)
    wrong = dict(seen["f.state"].config) | {"cleanup.policy": "delete,compact"}
    (change,) = plan_topics(two, seen | {"f.state": Seen(3, wrong)}).blocking
    assert change.what == "the topic f.state has cleanup.policy=delete,compact, and should have compact"


def test_the_matches_topic_is_compacted_for_upserts(tmp_path):
    upsert = fleet(tmp_path, envelope="upsert")
    changes = fleet(tmp_path)
    assert plan_topics(upsert, as_they_should_be(changes)).configure == (
        Configure("f.matches", "cleanup.policy", "delete", "compact"),
    )
    assert not plan_topics(upsert, as_they_should_be(upsert)).steps


@pytest.mark.parametrize(("time", "stamped", "warned"), [("record", "LogAppendTime", 1), ("ts", "LogAppendTime", 0)])
def test_a_broker_that_stamps_the_event_time_is_warned_of(tmp_path, time, stamped, warned):
    one = fleet(tmp_path, f"{{topic: trades, time: {time}}}")
    plan = plan_topics(one, as_they_should_be(one) | {"trades": Seen(3, {"message.timestamp.type": stamped})})
    assert (len(plan.warnings), plan.differences) == (warned, ())


def test_a_right_that_is_missing_is_named(tmp_path):
    two = fleet(tmp_path)
    seen = as_they_should_be(two) | {"trades": Seen(denied="Describe"), "f.state": Seen(3, denied="DescribeConfigs")}
    unseen, unread = plan_topics(two, seen).left_alone
    assert (unseen.what, unseen.blocks) == ("this user may not see the topic trades", True)
    assert "kafka-acls --add --allow-principal User:NAME --operation Describe --topic trades" in unseen.fix
    assert (unread.what, unread.blocks) == ("this user may not read the settings of the topic f.state", False)
    assert "--operation DescribeConfigs --topic f.state" in unread.fix
