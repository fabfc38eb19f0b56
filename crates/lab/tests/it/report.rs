//! The folder that a run leaves.

use crate::fixture;
use lab::report;
use lab::results::Results;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

#[test]
fn the_folder_holds_everything_and_reads_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let results = fixture::results();
    report::write(&results, folder.path()).expect("written");
    assert!(
        report::read(folder.path()).expect("read") == results,
        "the results changed on the way"
    );
    if let Some(keep) = std::env::var_os("EBB_LAB_KEEP") {
        report::write(&results, std::path::Path::new(&keep)).expect("written");
    }
}

/// Written again after each experiment: it says what is missing, and nothing of that at the end.
#[test]
fn a_run_that_goes_on_says_what_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).expect(name);
    let whole = fixture::results();
    let names: Vec<String> = whole.experiments.iter().map(|e| e.name.clone()).collect();
    for finished in 1..=names.len() {
        let so_far = Results {
            experiments: whole.experiments[..finished].to_vec(),
            unfinished: names[finished..].to_vec(),
            ..whole.clone()
        };
        report::write(&so_far, folder.path()).expect("written");
        assert!(report::read(folder.path()).expect("read") == so_far);
        let line = format!("Not finished when this was written: {}.", names[finished..].join(", "));
        for name in ["report.md", "report.html"] {
            assert_eq!(text(name).contains(&line), finished < names.len(), "{name} {finished}");
        }
        for (at, name) in names.iter().enumerate() {
            let has = text("samples.csv").contains(&format!("\n{name},"));
            assert_eq!(has, at < finished, "{name} of {finished}");
        }
    }
    // The last one is as if there had been none before it.
    let alone = tempfile::tempdir().expect("a folder");
    report::write(&whole, alone.path()).expect("written");
    assert_eq!(files(folder.path()), files(alone.path()));
    assert!(
        !text("report.md").contains("Not finished") && !text("results.json").contains("unfinished")
    );
}

/// Who had a file open, or was killed before the last of them, has all of the old text.
#[test]
fn files_are_replaced_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut results = fixture::results();
    results.unfinished.push("longtx".into());
    report::write(&results, folder.path()).expect("written");
    let before = files(folder.path());
    let kept = tempfile::tempdir_in(folder.path().parent().expect("its folder")).expect("another");
    for name in before.keys() {
        fs::hard_link(folder.path().join(name), kept.path().join(name)).expect("linked");
    }
    results.unfinished.clear();
    results.machine.date = "2026-11-23 00:12:00 UTC".into();
    // What a killed run was about to put there.
    fs::write(folder.path().join("report.md.new"), "# ebb").expect("written");
    report::write(&results, folder.path()).expect("written");
    assert_eq!(files(kept.path()), before);
    let after = files(folder.path());
    assert!(after.keys().eq(before.keys()), "{:?}", after.keys());
    for name in ["report.md", "report.html", "machine.json", report::RESULTS] {
        assert_ne!(after[name], before[name], "{name}");
    }
}

/// The files of a folder, with their text.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).expect("listed").map(|e| e.expect("an entry"));
    let named = entries.map(|e| {
        let text = fs::read_to_string(e.path()).expect("text");
        (e.file_name().to_string_lossy().into_owned(), text)
    });
    named.collect()
}
