//! Whether what stands between an agent and its actions works.

pub mod model;

pub mod canary;
