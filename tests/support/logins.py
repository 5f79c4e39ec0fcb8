"""Failed log-ins, then one that succeeds: a pattern, and its events."""

GUESSED = {
    "pattern": "guessed-password",
    "within": "5m",
    "start": "idle",
    "final": ["inside"],
    "registers": {"failures": 0},
    "arcs": [
        {"id": "first", "from": "idle", "to": "guessing", "when": "not e.ok", "set": {"failures": "1"}},
        {
            "id": "again",
            "from": "guessing",
            "to": "guessing",
            "when": "not e.ok",
            "set": {"failures": "r.failures + 1"},
        },
        {"id": "hit", "from": "guessing", "to": "inside", "when": "e.ok and r.failures >= 2"},
    ],
}


def login(number, key, ts, ok, **more):
    return {"id": f"e{number}", "key": key, "ts": ts, "type": "login", "data": {"ok": ok}} | more
