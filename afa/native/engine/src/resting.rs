//! Which keys are cleaned when, and what becomes of those of which nothing need be kept: they rest for a while, because
//! they may be met again soon, and count as unknown.

use crate::engine::Engine;
use crate::key::Key;

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
        if let Some(key) = &mut self.keys[number] {
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
            let Some(mut key) = self.keys[number].take() else {
                continue;
            };
            let is_its = key.domain() == domain && !key.is_resting;
            let ready = key.spine.last_ts().is_none_or(|last| last < punctuation);
            if is_its {
                self.clean_key(&mut key, punctuation);
            }
            key.queued = false;
            if key.is_idle() {
                self.lay_down(number, &mut key);
                self.keys[number] = Some(key);
                continue;
            }
            misses += usize::from(!ready || key.spine.is_empty());
            self.keys[number] = Some(key);
            self.queue_key(number);
        }
        self.let_resting_go();
    }

    /// Cleans every key exactly to the punctuation, for whoever looks at them.
    pub fn clean_all(&mut self) {
        for number in 0..self.keys.len() {
            let Some(mut key) = self.keys[number].take() else {
                continue;
            };
            if let Some(punctuation) = self.domains[key.domain()].effective {
                self.clean_key(&mut key, punctuation);
            }
            if key.is_idle() {
                self.lay_down(number, &mut key);
            }
            self.keys[number] = Some(key);
        }
    }

    /// Nothing of a key need be kept.
    fn lay_down(&mut self, number: usize, key: &mut Key) {
        self.numbers.lay_down(&key.name);
        key.rest();
        if !key.is_listed_as_resting {
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
            // One that is still in the queue is laid down again when its turn comes.
            if key.is_resting && !key.queued {
                self.numbers.remove(&key.name);
                self.keys[number] = None;
                self.free_keys.push(number);
            }
        }
    }
}
