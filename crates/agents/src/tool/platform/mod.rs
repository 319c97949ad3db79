//! Tests of `files` that hold on one system only. They ask which one it is, so they are in a folder `platform`.

#[cfg(not(target_os = "macos"))]
mod files;
