//! Which keys are cleaned when, and what becomes of those of which nothing need be kept: they rest for a while, because
//! they may be met again soon, and count as unknown.

use crate::engine::Engine;
use crate::input::index_of;
use crate::keys::folded::Folded;

/// Keys at the front of the queue that may not be ready before the search for ready ones stops.
const MISSES: usize = 32;
/// So many keys may rest, and a quarter as many as are known.
const SPARE_KEYS: usize = 64;

impl Engine {
    /// Puts a key into the queue of those to be cleaned.
    pub(crate) fn queue_key(&mut self, number: usize) {
        let Some(key) = self.keys[number].as_mut().filter(|key| !key.queued) else {
            return;
        };
        key.queued = true;
        self.domains[key.domain()].queue.push_back(number);
    }

    /// A key that rests is met again, in a partition.
    #[cold]
    pub(crate) fn wake_key(&mut self, number: usize, domain: usize) {
        self.unfold_key_of_other(number, domain);
        if let Some(key) = &mut self.keys[number] {
            if key.domain() != domain {
                // What is kept of it elsewhere is not what it is here.
                self.dirty.begin_key(number);
            }
            key.begin_again(domain);
        }
        self.queue_key(number);
    }

    /// Cleans keys that have waited longest, as long as there are such with something to be cleaned up.
    pub(crate) fn clean_queue(&mut self, domain: usize, punctuation: i64) {
        let mut misses = 0;
        let mut examined = self.domains[domain].queue.len();
        while misses < MISSES && examined > 0 {
            examined -= 1;
            let Some(number) = self.domains[domain].queue.pop_front() else {
                break;
            };
            let Some(is_cleaned) = self.clean_queued(number, domain, punctuation) else {
                continue;
            };
            misses += usize::from(is_cleaned);
            self.queue_key(number);
        }
        self.let_resting_go();
    }

    /// Cleans a key that waited in the queue. None if there is none any more or nothing of it need be kept; else whether
    /// no more of it can be let go.
    fn clean_queued(&mut self, number: usize, domain: usize, punctuation: i64) -> Option<bool> {
        if self.clean_folded(number, domain, punctuation) {
            let key = self.keys[number].as_mut()?;
            key.queued = false;
            if self.folded[number].is_idle() {
                self.lay_down(number);
                return None;
            }
            return Some(true);
        }
        let mut key = self.keys[number].take()?;
        let is_its = key.domain() == domain && !key.is_resting;
        let ready = key.spine.last_ts().is_none_or(|last| last < punctuation);
        if is_its {
            self.clean_key(&mut key, punctuation);
        }
        key.queued = false;
        let (is_idle, is_cleaned) = (key.is_idle(), !ready || key.spine.is_empty());
        self.keys[number] = Some(key);
        if is_idle {
            self.lay_down(number);
            return None;
        }
        Some(is_cleaned)
    }

    /// Cleans a key that is folded and stays so; false if it is not. One of which something expires is unfolded.
    fn clean_folded(&mut self, number: usize, domain: usize, punctuation: i64) -> bool {
        let folded = &mut self.folded[number];
        if !folded.is_folded() {
            return false;
        }
        if folded.count() > 0 && folded.expires() <= punctuation {
            self.unfold_key(number);
            return false;
        }
        if folded.domain() == domain {
            self.settle_folded(number, punctuation);
        }
        true
    }

    /// Cleans every key exactly to the punctuation, for whoever looks at them.
    pub fn clean_all(&mut self) {
        self.unfold_all();
        for number in 0..self.keys.len() {
            let Some(mut key) = self.keys[number].take() else {
                continue;
            };
            if let Some(punctuation) = self.domains[key.domain()].effective {
                self.clean_key(&mut key, punctuation);
            }
            let is_idle = key.is_idle();
            self.keys[number] = Some(key);
            if is_idle {
                self.lay_down(number);
            }
        }
    }

    /// Nothing of a key need be kept.
    pub(crate) fn lay_down(&mut self, number: usize) {
        let Some(key) = &mut self.keys[number] else {
            return;
        };
        self.numbers.lay_down(index_of(number));
        key.rest();
        self.mark_idle(index_of(number));
        self.list_as_resting(number);
    }

    /// Puts a key that rests into the queue of those to be let go.
    pub(crate) fn list_as_resting(&mut self, number: usize) {
        if let Some(key) = &mut self.keys[number]
            && key.is_resting
            && !key.is_listed_as_resting
        {
            key.is_listed_as_resting = true;
            self.resting.push_back(number);
        }
    }

    /// Lets keys go that have rested longest, if many rest.
    fn let_resting_go(&mut self) {
        while self.resting.len() > SPARE_KEYS + self.numbers.len() / 4 {
            let Some(number) = self.resting.pop_front() else {
                return;
            };
            let Some(key) = &mut self.keys[number] else {
                continue;
            };
            key.is_listed_as_resting = false;
            // One that is still in the queue is laid down again when its turn comes; one that is dirty is listed again
            // when it is clean.
            if key.is_resting && !key.queued && !self.dirty.has(number) {
                self.numbers.remove(&key.name);
                (self.keys[number], self.folded[number]) = (None, Folded::NOT);
                self.free_keys.push(number);
            }
        }
    }
}
