//! Waiting for what happens in its own time.

use std::time::Duration;

use tokio::time::{sleep, timeout};

/// Asks until it is so, and fails after so many seconds.
pub async fn until<F: Future<Output = bool>>(what: &str, seconds: u64, is_so: impl Fn() -> F) {
    let asking = async {
        while !is_so().await {
            sleep(Duration::from_millis(50)).await;
        }
    };
    let result = timeout(Duration::from_secs(seconds), asking).await;
    assert!(result.is_ok(), "not within {seconds} s: {what}");
}
