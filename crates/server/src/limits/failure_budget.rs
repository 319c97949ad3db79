//! How many attempts may fail in a row before further ones have to wait.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// A token bucket for attempts, of which only failed ones cost anything: one that succeeds gives its token back. So
/// whoever succeeds is limited only while others fail.
#[derive(Debug)]
pub(crate) struct FailureBudget {
    burst: u32,
    /// In which one token comes back.
    interval: Duration,
    spent: Mutex<Spent>,
}

#[derive(Debug)]
struct Spent {
    tokens: u32,
    /// Since when the next token is coming back; moves on by one interval with each.
    since: Instant,
}

impl FailureBudget {
    pub(crate) fn new(burst: u32, interval: Duration) -> Self {
        Self { burst, interval, spent: Mutex::new(Spent { tokens: 0, since: Instant::now() }) }
    }

    /// Takes a token; the error is the time until there is one.
    pub(crate) fn take(&self) -> Result<(), Duration> {
        let mut spent = self.spent.lock();
        let elapsed = spent.since.elapsed();
        let back = elapsed.as_nanos() / self.interval.as_nanos().max(1);
        match u32::try_from(back) {
            Ok(back) if back < spent.tokens => {
                spent.tokens -= back;
                spent.since += self.interval * back;
            }
            _ => *spent = Spent { tokens: 0, since: Instant::now() },
        }
        if spent.tokens >= self.burst {
            return Err(self.interval.saturating_sub(spent.since.elapsed()));
        }
        spent.tokens += 1;
        Ok(())
    }

    /// Gives back the token of an attempt that succeeded.
    pub(crate) fn give_back(&self) {
        let mut spent = self.spent.lock();
        spent.tokens = spent.tokens.saturating_sub(1);
    }
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
