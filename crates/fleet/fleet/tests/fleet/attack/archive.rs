//! Lists of runs and files in the archive that an attacker wrote.

use super::{connect, open_server, put};
use async_nats::jetstream::object_store::ObjectMetadata;
use fleet::{Server, fetch, upload};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use testing::attack;

/// What the SHA-256 of the attacker's file is, `abc` (FIPS 180-4).
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// Puts a file into the archive as any client of the server can.
async fn put_file(server: &Server, name: &str, content: &[u8]) {
    let client = async_nats::connect(&server.access().url).await.unwrap();
    let context = async_nats::jetstream::new(client);
    let files = context.get_object_store("fleet-files").await.unwrap();
    let meta = ObjectMetadata {
        name: name.to_owned(),
        ..ObjectMetadata::default()
    };
    let mut content = content;
    files.put(meta, &mut content).await.unwrap();
}

fn list(job: &str, run: &str, files: &[(&str, u64, &str)]) -> Value {
    let file = |(path, bytes, sha256): &(&str, u64, &str)| json!({ "path": path, "bytes": bytes, "sha256": sha256 });
    json!({ "job": job, "run": run, "files": files.iter().map(file).collect::<Vec<_>>() })
}

/// All files and links below a folder.
fn entries(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        all.push(entry.path().display().to_string());
        if entry.file_type().unwrap().is_dir() {
            all.extend(entries(&entry.path()));
        }
    }
    all.sort();
    all
}

#[test]
fn no_list_makes_fetch_write_outside_of_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = open_server(&folder) else {
        return;
    };
    let into = folder.path().join("into");
    fs::create_dir(&into).unwrap();
    let outside = folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, into.join("link")).unwrap();
    let absolute = outside.join("run").display().to_string();
    let hostile = [
        (absolute.as_str(), "journal.jsonl"),
        ("../outside/run", "journal.jsonl"),
        ("..", "journal.jsonl"),
        (".ssh", "authorized_keys"),
        ("", "journal.jsonl"),
        ("run", "../../outside/x"),
        ("run", absolute.as_str()),
        ("run", "a/../../../outside/x"),
        ("run", ".profile"),
        ("run", "a/.ssh/authorized_keys"),
        // An entry of the target folder that leads elsewhere.
        ("link", "x"),
        ("link/x", "x"),
    ];
    let before = (entries(&into), entries(&outside));
    let made = fleet::run(async {
        server.set_up().await.unwrap();
        put_file(&server, ABC, b"abc").await;
        let mut made = 0;
        for (number, (run, path)) in hostile.iter().enumerate() {
            let job = format!("evil-{number}");
            let list = list(&job, run, &[(path, 3, ABC)]);
            put(&server, "fleet-runs", &job, list.to_string()).await;
            let fetched = fetch(&connect(&server).await, &job, &into).await;
            made += usize::from(fetched.is_ok());
        }
        made
    });
    attack("runs that a list placed outside of the folder", made, 0);
    let new = usize::from((entries(&into), entries(&outside)) != before);
    attack("entries that such a list made", new, 0);
}

#[test]
fn a_fetched_run_is_read_by_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = open_server(&folder) else {
        return;
    };
    let run = folder.path().join("a-run");
    fs::create_dir_all(run.join("captures")).unwrap();
    fs::write(run.join("journal.jsonl"), "{}\n").unwrap();
    fs::write(run.join("captures/x.esp_sa"), "a key").unwrap();
    fs::write(run.join("empty"), "").unwrap();
    let fetched = fleet::run(async {
        let fleet = server.set_up().await.unwrap();
        upload(&fleet, "1", &run).await.unwrap();
        let into = folder.path().join("into");
        fetch(&fleet, "1", &into).await.unwrap().unwrap()
    });
    let all = entries(&fetched);
    assert_eq!(all.len(), 4, "{all:?}");
    assert_eq!(
        fs::read(fetched.join("captures/x.esp_sa")).unwrap(),
        b"a key"
    );
    let top = fetched.display().to_string();
    let readable = all.iter().chain([&top]).filter(|path| {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        mode & 0o077 != 0
    });
    attack("entries of a run that others read", readable.count(), 0);
}

#[test]
fn lists_with_false_sizes_are_refused_before_anything_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = open_server(&folder) else {
        return;
    };
    let into = folder.path().join("into");
    let many: Vec<String> = (0..3).map(|number| format!("f{number}")).collect();
    let huge: Vec<_> = many
        .iter()
        .map(|path| (path.as_str(), u64::MAX / 2, ABC))
        .collect();
    let hostile = [
        // More than any disk has, in one file and by an overflow of the sum.
        list("1", "run", &[("journal.jsonl", u64::MAX, ABC)]),
        list("1", "run", &huge),
        // Less and more than the file has.
        list("1", "run", &[("journal.jsonl", 2, ABC)]),
        list("1", "run", &[("journal.jsonl", 4, ABC)]),
        list("1", "run", &[("journal.jsonl", 1 << 30, ABC)]),
        // The same file twice, no hash, and the list of another job.
        list("1", "run", &[("a", 3, ABC), ("a", 3, ABC)]),
        list("1", "run", &[("a", 3, "../../x")]),
        list("2", "run", &[("journal.jsonl", 3, ABC)]),
    ];
    let taken = fleet::run(async {
        server.set_up().await.unwrap();
        put_file(&server, ABC, b"abc").await;
        let mut taken = 0;
        for list in &hostile {
            put(&server, "fleet-runs", "1", list.to_string()).await;
            let fetched = fetch(&connect(&server).await, "1", &into).await;
            taken += usize::from(fetched.is_ok());
        }
        taken
    });
    attack("lists with false sizes that were fetched", taken, 0);
    let left = if into.exists() {
        entries(&into).len()
    } else {
        0
    };
    attack("entries that they left", left, 0);
}

#[test]
fn entries_of_files_that_lie_end_in_an_error_and_not_in_a_loop() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = open_server(&folder) else {
        return;
    };
    let into = folder.path().join("into");
    let entry = |more: Value| {
        let mut entry = json!({
            "name": ABC, "bucket": "fleet-files", "nuid": "abc", "size": 3, "chunks": 1,
            "mtime": "2026-01-01T00:00:00Z", "digest": "SHA-256=x", "deleted": false,
        });
        entry
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        entry.to_string()
    };
    let hostile = [
        // A link to itself, which the client's own `get` follows for ever.
        entry(json!({ "options": { "link": { "name": ABC, "bucket": "fleet-files" } } })),
        // Parts of everything in the archive.
        entry(json!({ "nuid": ">" })),
        entry(json!({ "nuid": "*" })),
        entry(json!({ "nuid": "" })),
        // No parts at all.
        entry(json!({})),
    ];
    let taken = fleet::run(async {
        server.set_up().await.unwrap();
        put_file(&server, "another", b"other").await;
        let client = async_nats::connect(&server.access().url).await.unwrap();
        let context = async_nats::jetstream::new(client);
        let name = base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE, ABC);
        let list = list("1", "run", &[("journal.jsonl", 3, ABC)]);
        put(&server, "fleet-runs", "1", list.to_string()).await;
        let mut taken = 0;
        for entry in hostile {
            let subject = format!("$O.fleet-files.M.{name}");
            context
                .publish(subject, entry.into())
                .await
                .unwrap()
                .await
                .unwrap();
            let fetched = fetch(&connect(&server).await, "1", &into).await;
            taken += usize::from(fetched.is_ok());
        }
        taken
    });
    attack("files with lying entries that were fetched", taken, 0);
}
