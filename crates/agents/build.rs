//! Embeds the hashes of the page that was built beside this tool, which `doctor` compares with what a gateway serves. None if
//! it was not built.

use std::{env, fs, io, path::PathBuf};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=../server/page");
    let hashes = fs::read_to_string("../server/page/dist/hashes.json").unwrap_or_else(|_| "{}".to_owned());
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?;
    fs::write(PathBuf::from(out).join("page-hashes.json"), hashes)
}
