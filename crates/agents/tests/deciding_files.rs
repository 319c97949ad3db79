//! The column of the table of files that decide which says who writes them: what `install` changes is what it lists.

use std::{collections::BTreeSet, path::Path, time::Duration};

use countersign_agents::{
    hook_line::{HookLine, mode::Mode, place::Place},
    hosts,
    install::{
        deciding_files::{Base, DecidingFile, OF_EVERY_HOST, User},
        places::Places,
        plan::Wish,
    },
};

#[test]
fn install_changes_what_the_table_says_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let places = Places::under(root.path());
    for host in hosts::ALL {
        let folder = (host.files.folder)(&places);
        for is_managed in [false, true] {
            let line = HookLine {
                program: "/usr/local/bin/countersign".to_owned(),
                host: host.names,
                place: Place::default(),
                keeper: None,
                mode: Mode::Gate,
                host_timeout: Duration::from_mins(10),
            };
            // Not every host has a place for administrators.
            let plan = (host.files.install)(&places, &Wish { line, is_managed }).unwrap_or_default();
            let changed: BTreeSet<_> = plan.changes.iter().map(|it| it.file.path().to_owned()).collect();
            let listed = host.files.deciding.iter().filter_map(DecidingFile::one).filter(|row| {
                row.is_used_by(User::Install) && matches!(row.base, Base::Managed(_)) == is_managed
            });
            let listed: BTreeSet<_> =
                listed.map(|row| row.path(&folder, &places, Path::new("/project"))).collect();
            assert_eq!(changed, listed, "{host:?}, managed: {is_managed}");
            assert!(is_managed || !changed.is_empty(), "{host:?}");
        }
    }
}

#[test]
fn one_file_has_a_name_without_stars() {
    let rows = hosts::ALL.into_iter().flat_map(|host| host.files.deciding).chain(OF_EVERY_HOST);
    for file in rows.filter_map(DecidingFile::one) {
        assert!(!file.name.is_empty() && !file.name.contains('*'), "{file:?}");
    }
}
