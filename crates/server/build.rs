//! Writes the table of the page's files, which `src/page.rs` includes. Empty if `page/dist` does not exist, so that the build
//! needs no Node.

use std::{
    env,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=page");
    let dist = Path::new("page/dist");
    let mut files = Vec::new();
    if dist.is_dir() {
        collect(dist, &mut files)?;
    }
    files.sort();
    let mut table = String::from("&[\n");
    for file in &files {
        let path = file.strip_prefix(dist).map_err(io::Error::other)?;
        let path =
            path.to_str().ok_or_else(|| io::Error::other("a path that is not UTF-8"))?.replace('\\', "/");
        // Not the whole path: two checkouts may share one target folder, and Cargo runs this for the first only.
        let file = format!("concat!(env!(\"CARGO_MANIFEST_DIR\"), {:?})", format!("/page/dist/{path}"));
        writeln!(table, "    ({:?}, include_bytes!({file})),", format!("/{path}"))
            .map_err(io::Error::other)?;
    }
    table.push_str("]\n");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?;
    fs::write(PathBuf::from(out).join("page.rs"), table)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { collect(&path, files)? } else { files.push(path) }
    }
    Ok(())
}
