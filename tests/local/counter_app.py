"""A ten-line Faust application: counts words in a table, and says each new count. Run as a worker by test_faust.py."""

import os

import faust

bootstrap, words, counted = (os.environ[name] for name in ("BOOTSTRAP", "WORDS", "COUNTED"))
app = faust.App(
    os.environ["GROUP"],
    broker=f"kafka://{bootstrap}",
    store="memory://",
    topic_partitions=1,
    broker_session_timeout=6,  # after kill -9 the group waits that long for the dead member
    broker_heartbeat_interval=1,
    broker_commit_interval=0.2,
)
counts = app.Table("counts", default=int)
output = app.topic(counted, value_serializer="json")


@app.agent(app.topic(words, value_serializer="raw"))
async def count(stream):
    async for word in stream:
        counts[word.decode()] += 1
        await output.send(key=word, value=counts[word.decode()])


if __name__ == "__main__":
    app.main()
