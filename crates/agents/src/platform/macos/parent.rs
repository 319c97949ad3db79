//! The end of whoever has started this process. The system does not say it, so a thread looks.

use std::{io, thread, time::Duration};

use rustix::process::{Pid, Signal, getpid, getppid, kill_process};

/// How often it is looked.
const LOOK_TIME: Duration = Duration::from_millis(250);

/// From now on, the end of the parent asks this process to end too.
pub fn end_with_parent() -> io::Result<()> {
    let parent = getppid();
    let end = move || {
        wait_until_another(parent, getppid, LOOK_TIME);
        // If it can't be asked, so much the better: it has ended.
        let _gone = kill_process(getpid(), Signal::TERM);
    };
    thread::Builder::new().name("parent".to_owned()).spawn(end).map(drop)
}

/// Waits until somebody else is the parent: those without one are given to the first process.
#[expect(clippy::disallowed_methods, reason = "there is no event to wait for without unsafe code")]
fn wait_until_another(parent: Option<Pid>, now: impl Fn() -> Option<Pid>, every: Duration) {
    while parent.is_some() && now() == parent {
        thread::sleep(every);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn it_ends_when_another_is_the_parent() {
        let looks = Cell::new(0);
        let now = || {
            looks.set(looks.get() + 1);
            Pid::from_raw(if looks.get() < 3 { 7 } else { 1 })
        };
        wait_until_another(Pid::from_raw(7), now, Duration::ZERO);
        assert_eq!(looks.get(), 3);
        wait_until_another(None, || None, Duration::ZERO);
    }

    #[test]
    fn whose_parent_lives_goes_on() {
        end_with_parent().unwrap();
    }
}
