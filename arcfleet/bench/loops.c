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
