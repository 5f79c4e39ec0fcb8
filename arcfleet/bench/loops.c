/* The yardsticks: one loop per query, written for that query alone. No pattern is read, no late event is possible,
 * nothing can be changed while it runs, and (but for q1_keyed) there is one key.
 *
 * Every loop reads columns in memory and writes each match as (start, end), both a ts, to `out`. It returns the number
 * of matches, or -1 if the stream needs more room than the loop was given. A change is never 0 in these streams. */

#include <stdint.h>
#include <string.h>

typedef struct {
    int64_t start, end;
} match_t;

/* ---------------------------------------------------------------- Q1, k = 2 */

/* Call level the downticks minus upticks so far. A run begun at event s of one fall matches in the rise after the next
 * fall, at the uptick whose level is that of s. Within a fall the level grows by one with each event, so s is found by
 * subtraction, and no list of runs is kept. (A loop that keeps one takes a quarter more time.) */
int64_t q1(const int64_t *ts, const double *change, int64_t count, int64_t window, match_t *out) {
    int64_t found = 0, level = 0, falling = 0;
    int64_t fall = 0, fall_level = 0, fall_length = 0;      /* the last fall: first event, level there, events */
    int64_t earlier = 0, earlier_level = 0, earlier_starts = 0; /* the fall before; its last event starts nothing */
    for (int64_t at = 0; at < count; at++) {
        if (change[at] < 0) {
            level++;
            if (!falling) {
                earlier = fall, earlier_level = fall_level, earlier_starts = fall_length - 1;
                fall = at, fall_level = level, fall_length = 0;
            }
            fall_length++;
            falling = 1;
        } else {
            level--;
            const int64_t offset = level - earlier_level;
            if (offset >= 0 && offset < earlier_starts) {
                const int64_t start = earlier + offset;
                out[found] = (match_t){ts[start], ts[at]};
                found += (change[start] < -0.25) & (ts[at] - ts[start] < window);
            }
            falling = 0;
        }
    }
    return found;
}

/* ---------------------------------------------------------------- Q1 over many keys */

enum { RUNS_MAX = 31 };

/* The events of a key are not neighbours, so its starts are kept: those of the last fall and of the fall before, side by
 * side, because the first few are all that is touched. 512 bytes. */
typedef struct {
    int32_t level;
    uint8_t count[2];
    uint8_t last;    /* which of the two belongs to the last fall */
    uint8_t falling;
    int64_t unused;
    struct {
        int64_t start : 40;
        int64_t level : 24;
    } runs[RUNS_MAX][2];
} slot_t;

int64_t q1_slot_bytes(void) { return sizeof(slot_t); }

int64_t q1_keyed(const int64_t *ts, const double *change, const int32_t *key, int64_t count, int64_t window,
                 slot_t *slots, int64_t keys, match_t *out) {
    enum { AHEAD = 12 };
    int64_t found = 0;
    memset(slots, 0, (size_t)keys * sizeof(slot_t));
    for (int64_t at = 0; at < count; at++) {
        if (at + AHEAD < count) __builtin_prefetch(&slots[key[at + AHEAD]], 1);
        slot_t *slot = &slots[key[at]];
        const int64_t now = ts[at];
        if (change[at] < 0) {
            if (!slot->falling) slot->last ^= 1, slot->count[slot->last] = 0, slot->falling = 1;
            const int last = slot->last, runs = slot->count[last];
            if (runs == RUNS_MAX) return -1;
            slot->level++;
            slot->runs[runs][last].start = now;
            slot->runs[runs][last].level = slot->level;
            slot->count[last] = (uint8_t)(runs + (change[at] < -0.25));
        } else {
            const int last = slot->last, earlier = last ^ 1;
            int runs = slot->count[last];
            /* The last event of a fall starts nothing: its next event is no downtick. */
            if (slot->falling && runs && slot->runs[runs - 1][last].level == slot->level) slot->count[last]--;
            slot->falling = 0;
            slot->level--;
            runs = slot->count[earlier];
            while (runs && slot->runs[runs - 1][earlier].level > slot->level) runs--;
            slot->count[earlier] = (uint8_t)runs;
            if (runs && slot->runs[runs - 1][earlier].level == slot->level) {
                const int64_t start = slot->runs[runs - 1][earlier].start;
                out[found] = (match_t){start, now};
                found += now - start < window;
            }
        }
    }
    return found;
}

/* ---------------------------------------------------------------- Q2 */

/* Once a fall has been confirmed by a second downtick, a run lives for the whole window and matches at every uptick
 * that reaches the price before the fall. `starts` and `prices` hold the runs, oldest first, with room for every event. */
int64_t q2(const int64_t *ts, const double *change, const double *price, int64_t count, int64_t window,
           int64_t *starts, double *prices, match_t *out) {
    int64_t oldest = 0, live = 0, found = 0;
    for (int64_t at = 0; at < count; at++) {
        while (oldest < live && ts[at] - starts[oldest] >= window) oldest++;
        /* The newest run may have begun at the event before: an uptick ends it. */
        if (change[at] > 0) {
            live -= live > oldest && at > 0 && starts[live - 1] == ts[at - 1];
            const double now = price[at];
            for (int64_t run = oldest; run < live; run++) {
                out[found] = (match_t){starts[run], ts[at]};
                found += now >= prices[run];
            }
        }
        starts[live] = ts[at];
        prices[live] = price[at] - change[at];
        live += change[at] < -0.25;
    }
    return found;
}

/* ---------------------------------------------------------------- Q3: a shift register */

int64_t q3(const int64_t *ts, const double *change, int64_t count, int64_t window, match_t *out) {
    enum { UDUDDUUD = 0xa6, STEPS = 8 };
    int64_t found = 0;
    uint8_t ups = 0;
    for (int64_t at = 0; at < count; at++) {
        ups = (uint8_t)(ups << 1 | (change[at] > 0));
        if (__builtin_expect(ups == UDUDDUUD, 0) && at >= STEPS - 1) {
            const int64_t start = ts[at - STEPS + 1];
            out[found] = (match_t){start, ts[at]};
            found += ts[at] - start < window;
        }
    }
    return found;
}

/* ---------------------------------------------------------------- the self-loop that ignores */

/* `starts` has room for every event. */
int64_t selfloop(const int64_t *ts, const int64_t *x, int64_t count, int64_t window, int64_t *starts, match_t *out) {
    int64_t oldest = 0, live = 0, found = 0;
    for (int64_t at = 0; at < count; at++) {
        if (__builtin_expect(x[at] == 2, 0)) {
            while (oldest < live && ts[at] - starts[oldest] >= window) oldest++;
            for (int64_t run = oldest; run < live; run++) out[found++] = (match_t){starts[run], ts[at]};
        }
        starts[live] = ts[at];
        live += x[at] == 1;
    }
    return found;
}

/* ---------------------------------------------------------------- SASE+: a[] and b of one symbol out of two */

/* Every event with a price of k * 500 starts a run, which takes all later events of its symbol; each of them with a
 * volume below 150 ends a match. So a match is a start and a later end of its symbol within the window, and what it binds
 * is all that the symbol has between them. Events are looked at in blocks of 64, as bits: few of them are either. */
enum { BLOCK = 64 };

typedef struct {
    uint64_t begins, ends, odd; /* odd: of the second symbol */
} block_t;

static inline uint64_t bits_of(const uint8_t *flags) {
    uint64_t bits = 0;
    for (int byte = 0; byte < BLOCK / 8; byte++) {
        uint64_t eight;
        memcpy(&eight, flags + 8 * byte, 8);
        bits |= (eight * 0x0102040810204080u >> 56) << 8 * byte;
    }
    return bits;
}

/* A multiple of 500 = 4 * 125, by the inverse of 125: a remainder is no work for vectors. */
static inline uint8_t is_multiple_of_500(int64_t price) {
    const uint64_t quotient = (uint64_t)price * 0x1cac083126e978d5u;
    return (quotient >> 2 | quotient << 62) <= UINT64_MAX / 500;
}

static inline __attribute__((always_inline)) block_t block_of(const int64_t *symbol, const int64_t *price,
                                                              const int64_t *volume, int length) {
    uint8_t begins[BLOCK] = {0}, ends[BLOCK] = {0}, odd[BLOCK] = {0};
    for (int at = 0; at < length; at++) begins[at] = is_multiple_of_500(price[at]);
    for (int at = 0; at < length; at++) ends[at] = volume[at] < 150;
    for (int at = 0; at < length; at++) odd[at] = symbol[at] & 1;
    return (block_t){bits_of(begins), bits_of(ends), bits_of(odd)};
}

/* The block from here on; the last one may be shorter, and has no events of either symbol beyond its end. */
static inline block_t next_block(const int64_t *symbol, const int64_t *price, const int64_t *volume, int64_t left) {
    return left >= BLOCK ? block_of(symbol, price, volume, BLOCK) : block_of(symbol, price, volume, (int)left);
}

/* The ends that can matter: those after the first start, if no run is live. */
static inline uint64_t useful_ends(uint64_t begins, uint64_t ends, int any_live) {
    return any_live ? ends : begins ? ends & -(begins & -begins) << 1 : 0;
}

typedef struct {
    int64_t *starts, *places; /* runs, oldest first, with room for every event; places only with bindings */
    int64_t oldest, live;
} runs_t;

int64_t sase_pairs(const int64_t *ts, const int64_t *symbol, const int64_t *price, const int64_t *volume, int64_t count,
                   int64_t window, int64_t *room, match_t *out) {
    int64_t found = 0;
    runs_t both[2] = {{room, 0, 0, 0}, {room + count, 0, 0, 0}};
    for (int64_t from = 0; from < count; from += BLOCK) {
        const block_t block = next_block(symbol + from, price + from, volume + from, count - from);
        for (int of = 0; of < 2; of++) {
            const uint64_t own = of ? block.odd : ~block.odd, begins = block.begins & own;
            runs_t runs = both[of];
            const uint64_t ends = useful_ends(begins, block.ends & own, runs.oldest < runs.live);
            for (uint64_t todo = begins | ends; todo; todo &= todo - 1) {
                const int bit = __builtin_ctzll(todo);
                const int64_t now = ts[from + bit];
                while (runs.oldest < runs.live && now - runs.starts[runs.oldest] >= window) runs.oldest++;
                if (ends >> bit & 1)
                    for (int64_t run = runs.oldest; run < runs.live; run++)
                        out[found++] = (match_t){runs.starts[run], now};
                if (begins >> bit & 1) runs.starts[runs.live++] = now;
            }
            both[of] = runs;
        }
    }
    return found;
}

/* The same with what each match binds: its event numbers are numbers[offsets[match]] to numbers[offsets[match + 1]], the
 * last one bound to b. `owned` lists the events of each symbol while one of its runs may be live, so that the events of
 * a match lie side by side. */
int64_t sase_bindings(const int64_t *ts, const int64_t *symbol, const int64_t *price, const int64_t *volume, int64_t count,
                      int64_t window, int64_t *room, int64_t *numbers, int64_t *offsets) {
    int64_t found = 0, used = 0, listed[2] = {0, 0};
    int64_t *const owned[2] = {room + 4 * count, room + 5 * count};
    runs_t both[2] = {{room, room + count, 0, 0}, {room + 2 * count, room + 3 * count, 0, 0}};
    offsets[0] = 0;
    for (int64_t from = 0; from < count; from += BLOCK) {
        const int64_t left = count - from;
        const block_t block = next_block(symbol + from, price + from, volume + from, left);
        const uint64_t whole = left < BLOCK ? ((uint64_t)1 << left) - 1 : UINT64_MAX;
        for (int of = 0; of < 2; of++) {
            const uint64_t own = (of ? block.odd : ~block.odd) & whole, begins = block.begins & own;
            runs_t runs = both[of];
            const uint64_t ends = useful_ends(begins, block.ends & own, runs.oldest < runs.live);
            if (!(begins | ends) && runs.oldest == runs.live) continue;
            const int64_t first = listed[of];
            for (uint64_t todo = own; todo; todo &= todo - 1) owned[of][listed[of]++] = from + __builtin_ctzll(todo);
            for (uint64_t todo = begins | ends; todo; todo &= todo - 1) {
                const int bit = __builtin_ctzll(todo);
                const int64_t now = ts[from + bit];
                const int64_t place = first + __builtin_popcountll(own & (((uint64_t)1 << bit) - 1));
                while (runs.oldest < runs.live && now - runs.starts[runs.oldest] >= window) runs.oldest++;
                for (int64_t run = ends >> bit & 1 ? runs.oldest : runs.live; run < runs.live; run++) {
                    const int64_t bound = place - runs.places[run] + 1;
                    memcpy(numbers + used, owned[of] + runs.places[run], (size_t)bound * sizeof(int64_t));
                    used += bound;
                    offsets[++found] = used;
                }
                if (begins >> bit & 1) runs.starts[runs.live] = now, runs.places[runs.live++] = place;
            }
            both[of] = runs;
        }
    }
    return found;
}
