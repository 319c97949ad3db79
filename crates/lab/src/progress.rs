//! What every measurement needs: how it fails, and how it says how far it is.

use std::{
    error::Error,
    io::{self, Write as _},
};

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// Prints progress to stderr. Errors are ignored: nobody may be reading.
pub(crate) fn report_progress(progress: &str) {
    let _ = writeln!(io::stderr(), "{progress}");
}
