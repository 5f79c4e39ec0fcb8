"""Least privilege (P21): a worker runs with the rights that docs/fleet.md lists, and names each that is missing."""

import re
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from support.fleets import FleetRun, until
from support.logins import GUESSED, login

from arcfleet.fleet.document import load_fleet
from arcfleet.fleet.rights import worker_rights
from arcfleet.local import LocalBroker
from arcfleet.local.security import authoriser, scram_listener
from worker.cluster import check_cluster, naming_rights
from worker.errors import WorkerError
from worker.process import Options, Process, publish_patterns

PAGE = Path(__file__).parents[2] / "docs" / "fleet.md"
USER, PASSWORD = "worker", "worker-secret"
KINDS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}
LISTED = list(worker_rights(load_fleet(None, {"fleet": "shop"}), publishes=True))


def rights_table():
    yield "| resource | rights |"
    yield "|---|---|"
    for kind, name in dict.fromkeys((right.kind, right.name) for right in LISTED):
        operations = [right.operation for right in LISTED if (right.kind, right.name) == (kind, name)]
        which = f"{kind}s that begin with `{name}`" if kind == "transactional-id" else f"{kind} `{name}`"
        shown = which.replace("`events`", "`clicks`").replace("transactional-ids", "transactional ids")
        yield f"| {shown} | {', '.join(f'`{operation}`' for operation in operations)} |"


def test_the_page_lists_them():
    table = "\n".join(rights_table())
    text = re.sub(
        r"<!-- rights -->.*<!-- /rights -->",
        f"<!-- rights -->\n{table}\n<!-- /rights -->",
        PAGE.read_text(),
        flags=re.S,
    )
    assert PAGE.read_text() == text


@pytest.fixture(scope="module")
def broker():
    with LocalBroker(listeners={"SASL": scram_listener()}, scram={USER: PASSWORD}, settings=authoriser()) as started:
        yield started


@pytest.fixture(scope="module")
def run(broker, tmp_path_factory):
    """A fleet whose workers come in by a door that knows them, with all rights that are listed."""
    run = FleetRun(broker.bootstrap, "shop", tmp_path_factory.mktemp("shop"))
    run.make_topics()
    kafka = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }
    document = {"bootstrap": broker.address("SASL"), "kafka": kafka, "start_deadline": "20s"}
    run.write(document, punctuation={"slack": "500ms"})
    run.write_patterns(GUESSED)
    grant(broker, *rights(run))
    yield run
    run.close()


def rights(run):
    return list(worker_rights(fleet_of(run), publishes=True))


def fleet_of(run):
    return load_fleet(run.folder / "fleet.yaml", {})


def bindings(kind, listed):
    for right in listed:
        pattern = ResourcePatternType.PREFIXED if right.is_prefix else ResourcePatternType.LITERAL
        operation = AclOperation[re.sub("(?<=[a-z])(?=[A-Z])", "_", right.operation).upper()]
        place = (KINDS[right.kind], right.name, pattern, f"User:{USER}", "*", operation, AclPermissionType.ALLOW)
        yield kind(*place)


def grant(broker, *listed):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for done in admin.create_acls(list(bindings(AclBinding, listed))).values():
        done.result(30)


def take(broker, *listed):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for done in admin.delete_acls(list(bindings(AclBindingFilter, listed))).values():
        done.result(30)


def test_they_are_enough(run):
    """For all that a worker does: matches, late and bad records, state and a restore."""
    worker = run.start("w1", "--patterns", str(run.folder / "patterns"))
    run.publish([login(1, "ann", 1000, False), login(2, "ann", 4000, False), login(9, "ann", 900, False)])
    producer = run.producer()
    producer.produce(run.source, b"no event", key=b"ann")
    producer.flush(30)
    run.await_processed()
    worker.kill()
    run.start("w1", "--patterns", str(run.folder / "patterns"))
    run.publish([login(3, "ann", 4200, True)])
    run.await_processed()
    assert [change["op"] for change in run.changes() if change["op"] != "punctuation"] == ["insert"]
    assert (len(run.read("late")), len(run.read("dead-letter"))) == (1, 1)
    assert run.workers["w1"].end() == 0


def begin(run, said):
    """A worker up to its first step, within this process."""
    fleet = fleet_of(run)
    cluster = check_cluster(fleet, lambda _, **told: said.append(str(told)), publishes=True)
    process = Process(fleet, Options("w2", True), lambda *_, **__: None, cluster=cluster)
    with naming_rights(fleet):
        publish_patterns([], fleet.name, process.clients)
        process.start()
    process._parts.consumer.close()


@pytest.mark.parametrize("number", range(len(LISTED)), ids=[f"{right.operation} {right.name}" for right in LISTED])
def test_each_that_is_missing_is_named_with_what_grants_it(broker, run, number):
    right = rights(run)[number]
    take(broker, right)
    said = []

    def is_named():
        said.clear()
        try:
            begin(run, said)
        except WorkerError as error:
            said.append(str(error))
        return any(f"--operation {right.operation} --{right.kind} {right.name}" in told for told in said)

    try:
        until(is_named, f"{right.what}: {said}", 20.0)
    finally:
        grant(broker, right)
