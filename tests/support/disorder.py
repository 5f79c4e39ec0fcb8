"""Disordered events with revisions and retractions, and a pattern that changes in their middle."""

import random

from arcfleet.fleet.arcs import StampedArc

EVENTS, KEYS = 400, 12
MIDDLE = EVENTS * 10 // 2
CLIMB = {
    "pattern": "climb",
    "within": 400,
    "start": "s",
    "final": ["f"],
    "registers": {"n": 0},
    "arcs": [
        {"id": "low", "from": "s", "to": "m", "when": "e.x < 3", "set": {"n": "1"}},
        {"id": "more", "from": "m", "to": "m", "when": "e.x >= 3", "set": {"n": "r.n + 1"}},
        {"id": "high", "from": "m", "to": "f", "when": "e.x > 8"},
    ],
}
HIGHER = {"id": "higher", "from": "m", "to": "f", "when": "e.x > 8 and r.n >= 3"}


def changes_at(middle):
    """From there on a match needs three events on its way; the old arc ends there."""
    return [
        StampedArc("climb", 100, CLIMB["arcs"][2], (None, middle)),
        StampedArc("climb", 101, HIGHER, (middle, None)),
    ]


CHANGES = changes_at(MIDDLE)


def disordered_events(seed, events=EVENTS, keys=KEYS):
    rnd = random.Random(seed)
    records = []
    for number in range(events):
        late = rnd.choice([0, 0, 0, 0, 300, 1500])
        record = {"id": f"e{number}", "key": f"k{rnd.randrange(keys)}", "ts": max(0, 10 * number - late), "type": "t"}
        records.append(record | {"data": {"x": rnd.randrange(10)}})
        if rnd.random() < 0.05:
            old = rnd.choice(records[-50:])
            if "op" not in old:
                again = {"rev": old.get("rev", 0) + 1}
                gone = {"op": "retract", "id": old["id"], "key": old["key"], "ts": old["ts"]}
                records.append(gone | again if rnd.random() < 0.4 else old | again | {"data": {"x": rnd.randrange(10)}})
    return records


def punctuated(events, when=None):
    """With a punctuation after every 25 events, behind which some are late; now and then one with a condition, too."""
    records = []
    for record in events:
        records.append(record)
        newest = max(old.get("ts", 0) for old in records)
        if len(records) % 25 == 0:
            records.append({"op": "punctuation", "ts": newest - 400})
        if when is not None and len(records) % 95 == 0:
            records.append({"op": "punctuation", "ts": newest + 600, "when": when})
    return records


def assert_promises_are_kept(simulation):
    """After a punctuation nothing changes about matches that end before it."""
    promised = {}
    for change in simulation.changes():
        place = (change["partition"], change["pattern"])
        if change["op"] == "punctuation":
            assert change["ts"] > promised.get(place, change["ts"] - 1), (simulation.seed, change)
            promised[place] = change["ts"]
        else:
            assert change["end"] >= promised.get(place, change["end"]), (simulation.seed, change)
