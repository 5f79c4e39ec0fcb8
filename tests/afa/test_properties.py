"""What must hold for every pattern and every tape."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given, note
from hypothesis import strategies as st
from support.generated import MAX_TS, arc_records, documents, event_records, events, merged, punctuated
from support.runs import Run, net

from afa.records import EmittedPunctuation, MatchChange


@given(st.data(), documents(), event_records())
def test_arrival_order_does_not_matter(data: st.DataObject, document: dict[str, Any], records: list[Any]) -> None:
    changes = data.draw(arc_records(document))
    one = data.draw(merged(records, changes))
    other = data.draw(merged(data.draw(st.permutations(records)), changes))
    assert net(document, one) == net(document, other)


@given(st.data(), documents())
def test_a_prefix_means_what_its_set_of_records_means(data: st.DataObject, document: dict[str, Any]) -> None:
    """Also with punctuations, late records and what the engine forgets: compared with a run that has none of these."""
    records = data.draw(merged(data.draw(event_records()), data.draw(arc_records(document))))
    run, accepted = Run(document), []
    for record in data.draw(punctuated(records)):
        step = run.offer(record)
        if step and not step.late and record.get("op") != "punctuation":
            accepted.append(record)
        changes = [record for record in accepted if str(record.get("op")).startswith("arc")]
        others = sorted((record for record in accepted if record not in changes), key=lambda record: record["ts"])
        assert run.net == net(document, changes + others)


@given(st.data(), documents(), event_records(), events("ghost"), st.integers(0, 2))
def test_insert_and_retract_leave_no_trace(
    data: st.DataObject, document: dict[str, Any], records: list[Any], ghost: dict[str, Any], rev: int
) -> None:
    pair = [ghost | {"rev": rev}, {"op": "retract", "id": "ghost", "key": ghost["key"], "ts": ghost["ts"], "rev": rev}]
    assert net(document, data.draw(merged(records, data.draw(st.permutations(pair))))) == net(document, records)


@given(st.data(), documents(), event_records(), st.integers(0, MAX_TS))
def test_splitting_a_lifetime_changes_nothing(
    data: st.DataObject, document: dict[str, Any], records: list[Any], at: int
) -> None:
    split = deepcopy(document)
    arc = data.draw(st.sampled_from(split["arcs"]))
    le, re = arc.get("valid", [None, None])
    if (le is not None and at < le) or (re is not None and at > re):
        at = le if le is not None else re
    split["arcs"].append(arc | {"id": "second half", "valid": [at, re]})
    arc["valid"] = [le, at]
    assert net(split, records) == net(document, records)


@given(st.data(), documents(), event_records())
def test_a_second_equal_arc_changes_nothing(data: st.DataObject, document: dict[str, Any], records: list[Any]) -> None:
    twin = data.draw(st.sampled_from(document["arcs"])) | {"id": "twin"}
    assert net(document | {"arcs": [*document["arcs"], twin]}, records) == net(document, records)


settings = st.fixed_dictionaries(
    {
        "speculation": st.sampled_from([0, 2, float("inf")]),
        "hold_output": st.booleans(),
        "gap_free": st.booleans(),
    }
)


@given(st.data(), documents(), settings)
def test_nothing_changes_below_an_emitted_punctuation(
    data: st.DataObject, document: dict[str, Any], chosen: dict[str, Any]
) -> None:
    records = data.draw(merged(data.draw(event_records()), data.draw(arc_records(document))))
    run = Run(document, **chosen)
    promised = -1
    for record in data.draw(punctuated(records, arcs=True)):
        step = run.offer(record)
        for change in step.changes if step else ():
            if isinstance(change, EmittedPunctuation):
                assert change.ts > promised
                promised = change.ts
            else:
                assert change.match.end >= promised


@given(st.data(), documents(), settings)
def test_one_record_never_inserts_and_retracts_one_match(
    data: st.DataObject, document: dict[str, Any], chosen: dict[str, Any]
) -> None:
    records = data.draw(merged(data.draw(event_records()), data.draw(arc_records(document))))
    run = Run(document, **chosen)
    for record in data.draw(punctuated(records, arcs=True)):
        step = run.offer(record)
        changes = [change for change in (step.changes if step else ()) if isinstance(change, MatchChange)]
        assert len({change.id for change in changes}) == len(changes)
        retracts = [change for change in changes if change.op == "retract"]
        inserts = [change for change in changes if change.op == "insert"]
        assert changes == retracts + inserts, "retracts come first"
        for group in (retracts, inserts):
            assert group == sorted(group, key=lambda change: change.order)


@given(st.data(), documents(windows=(6, 10)), st.sampled_from([0, 3]), st.booleans(), st.integers(1, 12))
def test_every_setting_agrees_below_the_punctuation(
    data: st.DataObject, document: dict[str, Any], sigma: int, hold: bool, count: int
) -> None:
    """Cleanse, hold and AFA+O on a gap-free stream: below an emitted punctuation all tell the same."""
    ordered = sorted(
        (data.draw(events(f"e{i:02d}")) | {"key": "A"} for i in range(count)), key=lambda e: (e["ts"], e["id"])
    )
    numbered = [event | {"seq": seq} for seq, event in enumerate(ordered, 1)]
    tape = data.draw(punctuated(data.draw(st.permutations(numbered))))
    plain = Run(document)
    others = [Run(document, speculation=sigma, hold_output=hold), Run(document, gap_free=True, hold_output=hold)]
    for record in tape:
        plain.feed(record)
        promised = plain.engine.effective_punctuation
        settled = {id_ for id_, match in plain.net.items() if match.end < promised}
        for other in others:
            other.feed(record)
            note(f"after {record}")
            assert {id_ for id_, match in other.net.items() if match.end < promised} == settled


@given(st.data(), documents(), st.integers(1, 12))
def test_gap_free_is_never_wrong(data: st.DataObject, document: dict[str, Any], count: int) -> None:
    """Without revisions it retracts nothing; in any order it ends where plain matching ends."""
    ordered = sorted(
        (data.draw(events(f"e{i:02d}")) | {"key": "A"} for i in range(count)), key=lambda e: (e["ts"], e["id"])
    )
    numbered = [event | {"seq": seq} for seq, event in enumerate(ordered, 1)]
    run = Run(document, gap_free=True).feed_all(data.draw(st.permutations(numbered)))
    if not isinstance(document.get("within"), str):  # a window in events moves when an earlier event comes in
        assert all(change.op == "insert" for change in run.log if isinstance(change, MatchChange))
    assert run.net == net(document, numbered)
