//! What approvers say is heard by one connection for all hooks of an account, where one process decides for them: it is there at once, and no
//! hook connects for it.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use super::{desk::Desk, said};
use crate::tool::home::Identity;

/// For how long it is listened after the last hook that wanted to hear.
const LINGERS: Duration = Duration::from_mins(10);

/// After this time it is connected anew, with the profile as it is then.
const LASTS: Duration = Duration::from_mins(30);

/// The connections of an account: one for each of its profiles that agents work with.
#[derive(Debug, Default)]
pub struct Ears(Mutex<HashMap<String, Ear>>);

#[derive(Debug)]
struct Ear {
    listening: JoinHandle<()>,
    /// Until when somebody wants to hear.
    wanted_until: watch::Sender<Instant>,
    /// Whether everything that waited is kept.
    is_up_to_date: watch::Receiver<bool>,
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Ears {
    /// Listens for a while from now on, and returns when what has waited is kept. Without a gateway that never comes.
    pub(super) async fn hear(&self, identity: Identity, desk: &Desk) {
        let mut is_up_to_date = self.wanted(identity, desk);
        // It fails when nothing can be heard, as without a connection.
        drop(is_up_to_date.wait_for(|is_up_to_date| *is_up_to_date).await);
    }

    /// Listens for a while from now on.
    pub(super) fn listen(&self, identity: Identity, desk: &Desk) {
        drop(self.wanted(identity, desk));
    }

    fn wanted(&self, identity: Identity, desk: &Desk) -> watch::Receiver<bool> {
        let until = Instant::now() + LINGERS;
        let mut ears = self.0.lock();
        if let Some(ear) = ears.get(&identity.name).filter(|ear| !ear.listening.is_finished()) {
            ear.wanted_until.send_replace(until);
            return ear.is_up_to_date.clone();
        }
        let (wanted_until, wanted) = watch::channel(until);
        let (up_to_date, is_up_to_date) = watch::channel(false);
        let (name, desk) = (identity.name.clone(), desk.clone());
        let listening = tokio::spawn(async move {
            tokio::select! {
                // The next hook tries again.
                ended = said::attend(&identity, &desk, &up_to_date) => drop(ended),
                () = unwanted(wanted) => {}
            }
        });
        ears.insert(name, Ear { listening, wanted_until, is_up_to_date: is_up_to_date.clone() });
        is_up_to_date
    }
}

/// Returns when nobody wants to hear any more, or it is time to connect anew.
async fn unwanted(wanted_until: watch::Receiver<Instant>) {
    let lasts_until = Instant::now() + LASTS;
    loop {
        let until = lasts_until.min(*wanted_until.borrow());
        if until <= Instant::now() {
            return;
        }
        sleep_until(until).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_is_listened_while_hooks_want_it_and_not_for_ever() {
        let began = Instant::now();
        let (wanted, until) = watch::channel(began + LINGERS);
        unwanted(until.clone()).await;
        assert_eq!(began.elapsed(), LINGERS);
        wanted.send_replace(Instant::now() + LINGERS);
        let (waiting, began) = (tokio::spawn(unwanted(until.clone())), Instant::now());
        tokio::time::sleep(LINGERS / 2).await;
        wanted.send_replace(Instant::now() + LINGERS);
        waiting.await.unwrap();
        assert_eq!(began.elapsed(), LINGERS * 3 / 2);
        let began = Instant::now();
        wanted.send_replace(began + LASTS * 2);
        unwanted(until).await;
        assert_eq!(began.elapsed(), LASTS);
    }
}
