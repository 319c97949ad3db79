//! What ends a wait from outside.

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

use crate::tool::exit::{Exit, Failure};

/// What ends a wait from outside: Ctrl-C, a request to end, a closed terminal; or a caller that has hung up.
#[derive(Debug)]
pub struct Interruption(Cause);

#[derive(Debug)]
enum Cause {
    Signals { interrupt: Signal, terminate: Signal, hangup: Signal },
    Caller(watch::Receiver<()>),
}

impl Interruption {
    /// From now on these signals take a request back instead of ending the process.
    pub fn watch() -> Result<Self, Failure> {
        let watch = |kind| signal(kind).map_err(|error| Failure::new(Exit::Failed, error));
        Ok(Self(Cause::Signals {
            interrupt: watch(SignalKind::interrupt())?,
            terminate: watch(SignalKind::terminate())?,
            hangup: watch(SignalKind::hangup())?,
        }))
    }

    /// Happens when the other end is dropped.
    pub fn by_caller(gone: watch::Receiver<()>) -> Self {
        Self(Cause::Caller(gone))
    }

    /// Waits until one of them arrives.
    pub async fn happens(&mut self) {
        match &mut self.0 {
            Cause::Signals { interrupt, terminate, hangup } => tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            },
            Cause::Caller(gone) => while gone.changed().await.is_ok() {},
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_caller_that_hangs_up_interrupts() {
        let (gone, seen) = watch::channel(());
        let mut interruption = Interruption::by_caller(seen);
        gone.send_replace(());
        let soon = std::time::Duration::from_millis(50);
        assert!(tokio::time::timeout(soon, interruption.happens()).await.is_err());
        drop(gone);
        interruption.happens().await;
        interruption.happens().await;
    }
}
