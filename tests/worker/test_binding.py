"""What a commit binds to offsets: there and back, and what strangers may have left there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afa.reading import Fault
from worker.binding import METADATA_CHARACTERS_MAX, PER_SOURCE_CHARACTERS, Binding, Mark, check_room
from worker.errors import WorkerError

offsets = st.integers(0, 2**63 - 1)
times = st.none() | st.integers(-(2**63), 2**63 - 1)


@st.composite
def marks(draw):
    positions = draw(st.dictionaries(st.text("abc.-", min_size=1, max_size=20), offsets, min_size=1, max_size=3))
    return Mark(positions, {topic: draw(times) for topic in positions}, draw(offsets))


counts = st.none() | st.integers(1, 1000)
bits = st.integers(0, 1 << 200)
ends = st.dictionaries(st.text("xyz", min_size=1), offsets, max_size=2)


@given(marks(), marks(), st.tuples(offsets, offsets, offsets), counts, st.lists(times, min_size=3), bits, ends)
def test_a_binding_comes_back_from_its_text(restore, committed, numbers, partitions, largest, untold, ended):
    told = dict(zip(committed.positions, largest, strict=False))
    told = told if any(ts is not None for ts in told.values()) else {}
    binding = Binding(restore, committed, *numbers, "fleet-worker-1", partitions, told, untold, ended)
    assert Binding.read(binding.text()) == binding


def test_what_an_earlier_worker_wrote_is_read():
    told = '"restore":[[["t",1,null]],0],"committed":[[["t",2,5]],0],"arcs":3,"snapshots":1,"checksum":9,"owner":"f-w1"'
    mark = Mark({"t": 1}, {"t": None}, 0)
    assert Binding.read(f'{{"v":1,{told}}}') == Binding(mark, Mark({"t": 2}, {"t": 5}, 0), 3, 1, 9, "f-w1")


@pytest.mark.parametrize(
    "text", ["", "x", "[]", "{}", '{"v":2}', '{"v":1}', '{"v":1,"restore":[1],"committed":[[],0]}']
)
def test_what_no_worker_wrote_is_refused(text):
    with pytest.raises(Fault):
        Binding.read(text)


def test_too_many_topics_for_the_broker_are_refused():
    positions = {f"{'t' * 240}{number}": number for number in range(10)}
    mark = Mark(positions, dict.fromkeys(positions), 0)
    with pytest.raises(ValueError, match="too many sources"):
        Binding(mark, mark, 0, 0, 0, "w").text()
    assert METADATA_CHARACTERS_MAX < 4096


def test_largest_times_are_left_out_where_there_is_no_room():
    positions = {f"{'t' * 240}{number}": number for number in range(7)}
    mark, largest = Mark(positions, dict.fromkeys(positions), 0), dict.fromkeys(positions, 1_700_000_000_000_000_000)
    room = METADATA_CHARACTERS_MAX - len(Binding(mark, mark, 0, 0, 0, "").text())
    told = Binding(mark, mark, 0, 0, 0, "w" * room, largest=largest).text()
    assert (len(told), Binding.read(told).largest) == (METADATA_CHARACTERS_MAX, {})
    told = Binding(mark, mark, 0, 0, 0, "w" * (room - 200), largest=largest).text()
    assert Binding.read(told).largest == largest
    told = Binding(mark, mark, 0, 0, 0, "w" * (room - 200), largest=largest, ended={"e" * 100: 1}).text()
    assert (Binding.read(told).largest, Binding.read(told).ended) == ({}, {"e" * 100: 1})
    told = Binding(mark, mark, 0, 0, 0, "w" * room, largest=largest, ended={"e" * 100: 1}).text()
    assert (Binding.read(told).largest, Binding.read(told).ended) == ({}, {})


def topics(count, characters):
    return [f"{number:0{characters}}" for number in range(count)]


@pytest.mark.parametrize(("most", "characters"), [(35, 8), (25, 30), (6, 249)])
def test_so_many_sources_have_room_with_the_largest_offsets(most, characters):
    check_room(topics(most, characters), "shop-worker-1")
    with pytest.raises(WorkerError, match=f"{most + 1} sources .* characters of offset metadata") as caught:
        check_room(topics(most + 1, characters), "shop-worker-1")
    assert caught.value.exit_code == 1


def test_what_each_source_needs_is_told_right():
    low, least = 2**63 - 1, -(2**63) + 1
    sizes = []
    for names in (["a" * 10], ["a" * 10, "b" * 10]):
        mark = Mark(dict.fromkeys(names, low), dict.fromkeys(names, least), 0)
        sizes.append(len(Binding(mark, mark, 0, 0, 0, "w").needed()))
    assert sizes[1] - sizes[0] == PER_SOURCE_CHARACTERS + 2 * 10
