//! What stands between a coding agent and the program that hosts it: the hook, its rules, its installation and its checks.
//!
//! Each line imports only from the lines above it.
//!
//! | to find | look in |
//! |---|---|
//! | what differs by operating system | [`platform`] |
//! | exit codes, output, terminal, profiles | [`tool`] |
//! | the line that a host runs: which host, mode and time | [`hook_line`] |
//! | what each program reads, writes, runs and sends | [`programs`] |
//! | what a command does | [`examine`] |
//! | running exactly what was approved | [`execution`] |
//! | asking, with what the person who waits sees; what approvers say about devices | [`asking`], [`hearing`] |
//! | what an agent wants to do, and the verdict | [`calls`] |
//! | editing the settings of hosts | [`install`] |
//! | the hosts, each in a folder of its own | [`hosts`] |
//! | which calls are allowed, asked about and denied | [`rules`] |
//! | what a hook and a keeper say to each other | [`call_socket`] |
//! | the process that a host starts | [`hook`] |
//! | what the tool's own commands ask about | [`proposals`] |
//! | a place for an agent that is built from nothing | [`sandbox`] |
//! | the process that decides for all hooks of a user | [`keeper`] |
//! | whether hooks work | [`doctor`] |

pub mod platform;

pub mod hook_line;
pub mod tool;

pub mod programs;

pub mod examine;

pub mod asking;
pub mod calls;
pub mod execution;
pub mod hearing;

pub mod install;

pub mod hosts;

pub mod call_socket;
pub mod rules;

pub mod hook;
pub mod sandbox;

pub mod proposals;

pub mod keeper;

pub mod doctor;
