//! Letting go of a partition, which another process has now.

use crate::engine::Engine;
use crate::keys::folded::Folded;
use crate::progress::domain::Domain;
use crate::progress::gauges::Walk;

impl Engine {
    /// Forgets a partition, as if its records had never been fed.
    pub fn drop_partition(&mut self, partition: u32) {
        let Some(gone) = self.find_domain(partition) else {
            return;
        };
        for number in 0..self.keys.len() {
            let domain = self.keys[number].as_ref().map(|key| key.domain());
            if domain == Some(gone) {
                self.drop_key(number);
            } else if let Some(later) = domain.filter(|domain| *domain > gone) {
                self.move_key(number, later - 1);
            }
        }
        let keys = &self.keys;
        self.resting.retain(|number| keys[*number].is_some());
        for domain in &mut self.domains {
            domain.queue.retain(|number| keys[*number].is_some());
        }
        // Those that waited here for another partition wait there now.
        for number in self.domains.remove(gone).queue {
            if let Some(key) = &mut self.keys[number] {
                key.queued = false;
            }
            self.queue_key(number);
        }
        // Its sums are by numbers of partitions.
        self.walk = Walk::default();
        if self.domains.is_empty() {
            self.domains.push(Domain::new(0, self.programs.len()));
            self.recall_epochs();
        }
    }

    fn drop_key(&mut self, number: usize) {
        let mut key = self.take_key(number);
        self.empty_key(&mut key);
        self.numbers.remove(&key.name);
        self.folded[number] = Folded::NOT;
        self.free_keys.push(number);
    }

    /// The partition of a key has another number.
    fn move_key(&mut self, number: usize, domain: usize) {
        self.folded[number].move_to(domain);
        if let Some(key) = &mut self.keys[number] {
            key.move_to(domain);
        }
    }
}
