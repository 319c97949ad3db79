//! Running a command only as it was approved: what it is made of is examined before asking, and held after the answer.
//!
//! A file that decides what runs (the program, its script) is executed from the very bytes that were compared with what was
//! approved. Who renames, replaces or rewrites it afterwards changes nothing. A script that needs the files beside it runs in
//! place, with a folder that is bound (`--with`). Everything else that an argument names is compared immediately before the
//! start. Files that a program opens itself are not covered.

mod folder;
mod held;
mod neighbours;
mod plan;
mod planned;
mod run_as;
mod stdin;

pub use self::{
    folder::{Folder, FolderError},
    held::{Difference, Held},
    plan::{KIND, Plan, PlanError, Prepared, StartError, Wanted},
    run_as::RunAs,
    stdin::{Reads, Stdin, read_stdin, unread},
};
