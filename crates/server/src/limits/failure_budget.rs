//! How many attempts may fail in a row before further ones have to wait.

use std::{collections::HashMap, hash::Hash, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// Whose budgets are remembered at once. Beyond that, those that have failed least are forgotten.
const MAX_REMEMBERED: usize = 10_000;

/// A token bucket for attempts, of which only failed ones cost anything: one that succeeds gives its token back. So
/// whoever succeeds is limited only while others fail.
#[derive(Debug)]
pub(crate) struct FailureBudget {
    allowance: Allowance,
    spent: Mutex<Spent>,
}

/// A [`FailureBudget`] for each of many.
#[derive(Debug)]
pub(crate) struct FailureBudgets<K> {
    allowance: Allowance,
    spent: Mutex<HashMap<K, Spent>>,
}

#[derive(Debug, Clone, Copy)]
struct Allowance {
    burst: u32,
    /// In which one token comes back.
    interval: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Spent {
    tokens: u32,
    /// Since when the next token is coming back; moves on by one interval with each.
    since: Instant,
}

impl Spent {
    fn nothing() -> Self {
        Self { tokens: 0, since: Instant::now() }
    }

    /// Takes back what has come back meanwhile.
    fn recover(&mut self, allowance: Allowance) {
        let back = self.since.elapsed().as_nanos() / allowance.interval.as_nanos().max(1);
        match u32::try_from(back) {
            Ok(back) if back < self.tokens => {
                self.tokens -= back;
                self.since += allowance.interval * back;
            }
            _ => *self = Self::nothing(),
        }
    }

    fn take(&mut self, allowance: Allowance) -> Result<(), Duration> {
        self.recover(allowance);
        if self.tokens >= allowance.burst {
            return Err(allowance.interval.saturating_sub(self.since.elapsed()));
        }
        self.tokens += 1;
        Ok(())
    }
}

impl FailureBudget {
    pub(crate) fn new(burst: u32, interval: Duration) -> Self {
        Self { allowance: Allowance { burst, interval }, spent: Mutex::new(Spent::nothing()) }
    }

    /// Takes a token; the error is the time until there is one.
    pub(crate) fn take(&self) -> Result<(), Duration> {
        self.spent.lock().take(self.allowance)
    }

    /// Gives back the token of an attempt that succeeded.
    pub(crate) fn give_back(&self) {
        let mut spent = self.spent.lock();
        spent.tokens = spent.tokens.saturating_sub(1);
    }
}

impl<K: Hash + Eq + Clone> FailureBudgets<K> {
    pub(crate) fn new(burst: u32, interval: Duration) -> Self {
        Self { allowance: Allowance { burst, interval }, spent: Mutex::default() }
    }

    pub(crate) fn take(&self, of: &K) -> Result<(), Duration> {
        let mut all = self.spent.lock();
        if all.len() >= MAX_REMEMBERED && !all.contains_key(of) {
            all.values_mut().for_each(|spent| spent.recover(self.allowance));
            let threshold = median(all.values().map(|spent| spent.tokens).collect());
            all.retain(|_, spent| spent.tokens > threshold);
        }
        all.entry(of.clone()).or_insert_with(Spent::nothing).take(self.allowance)
    }

    pub(crate) fn give_back(&self, of: &K) {
        let mut all = self.spent.lock();
        if let Some(spent) = all.get_mut(of) {
            spent.tokens = spent.tokens.saturating_sub(1);
            if spent.tokens == 0 {
                all.remove(of);
            }
        }
    }
}

fn median(mut tokens: Vec<u32>) -> u32 {
    tokens.sort_unstable();
    tokens.get(tokens.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const INTERVAL: Duration = Duration::from_millis(200);

    #[tokio::test(start_paused = true)]
    async fn failures_wait_after_a_burst_and_then_for_their_interval() {
        let budget = FailureBudget::new(3, INTERVAL);
        advance(Duration::from_hours(1)).await;
        for _ in 0..3 {
            budget.take().unwrap();
        }
        assert_eq!(budget.take(), Err(INTERVAL));
        advance(INTERVAL / 2).await;
        assert_eq!(budget.take(), Err(INTERVAL / 2));
        advance(INTERVAL / 2).await;
        budget.take().unwrap();
        assert_eq!(budget.take(), Err(INTERVAL));
        advance(INTERVAL * 2).await;
        budget.take().unwrap();
        budget.take().unwrap();
        budget.take().unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_fails_does_not_use_up_the_budget_of_another() {
        let budgets = FailureBudgets::new(2, INTERVAL);
        for _ in 0..2 {
            budgets.take(&"loud").unwrap();
        }
        assert_eq!(budgets.take(&"loud"), Err(INTERVAL));
        budgets.take(&"quiet").unwrap();
        budgets.give_back(&"quiet");
        assert_eq!(budgets.spent.lock().len(), 1, "who has failed nothing is not remembered");
    }

    #[tokio::test(start_paused = true)]
    async fn who_fails_most_is_not_forgotten_for_a_crowd() {
        let budgets = FailureBudgets::new(2, Duration::from_hours(1));
        for _ in 0..2 {
            budgets.take(&0).unwrap();
        }
        for other in 1..=MAX_REMEMBERED * 2 {
            budgets.take(&other).unwrap();
        }
        budgets.take(&0).unwrap_err();
        assert!(budgets.spent.lock().len() <= MAX_REMEMBERED);
    }

    #[tokio::test(start_paused = true)]
    async fn who_succeeds_does_not_wait_however_often() {
        let budget = FailureBudget::new(1, INTERVAL);
        for _ in 0..100 {
            budget.take().unwrap();
            budget.give_back();
        }
        budget.take().unwrap();
        budget.take().unwrap_err();
    }
}
