//! The name of a run's folder, by its header.

use crate::fixture;
use journal::{dir_as_created, run_dir};

#[test]
fn the_folder_is_named_as_it_was_created() {
    let mut header = fixture::header();
    let root = tempfile::tempdir().unwrap();
    let created = run_dir(root.path(), header.started_unix_ns, &header.plan.name).unwrap();
    let name = created.file_name().unwrap().to_str().unwrap();
    let mut named = |command: &[&str]| {
        header.command = command.iter().map(|&word| word.to_owned()).collect();
        dir_as_created(&header)
    };
    for (command, root) in [
        (&["cipherbench", "run"][..], Some("runs")),
        (
            &["/usr/bin/cipherbench", "run", "a.yaml", "--out", "b/c"],
            Some("b/c"),
        ),
        (
            &["cipherbench", "run", "--out=/tmp/c/", "--quick"],
            Some("/tmp/c"),
        ),
        (&["cipherbench", "kat", "--device", "softhsm"], Some("runs")),
        // A shell or a document would read these otherwise.
        (&["cipherbench", "run", "--out", "my runs"], None),
        (&["cipherbench", "run", "--out=$HOME"], None),
        (&["cipherbench", "run", "--out=<b>"], None),
        (&["cipherbench", "run", "--out="], None),
        (&["cipherbench", "run", "--out"], None),
        (&[], None),
    ] {
        let expected = root.map(|root| format!("{root}/{name}"));
        assert_eq!(named(command), expected, "{command:?}");
    }
}
