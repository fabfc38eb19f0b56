//! The folder that a run leaves.

use crate::fixture;
use lab::report;

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
