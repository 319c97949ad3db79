//! Running a command only as it was approved: what it is made of is examined before asking, and held after the answer.
//!
//! A file that decides what runs (the program, a script among its operands) is executed from the very bytes that were
//! compared with what was approved. Who renames, replaces or rewrites it afterwards changes nothing. Files that a script
//! opens itself are not covered.

mod held;
mod plan;
mod scripts;
mod shell;
mod stdin;

pub use self::{
    held::{Difference, Held},
    plan::{Plan, PlanError, Prepared},
    shell::examine_shell,
    stdin::{Stdin, read_stdin},
};
