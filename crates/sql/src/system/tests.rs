use super::*;

#[test]
fn every_body_belongs_to_a_function_of_postgresql() {
    for bodies in [
        activity::BODIES,
        describe::BODIES,
        functions::BODIES,
        locks::BODIES,
        privileges::BODIES,
        progress::BODIES,
        sequences::BODIES,
        session::BODIES,
        sizes::BODIES,
        statistics::BODIES,
        visible::BODIES,
    ] {
        for (name, _) in bodies {
            let bare = name.split('(').next().unwrap();
            assert!(!types::facts::procs_by_name(bare).is_empty(), "{name}");
        }
    }
}

#[test]
fn the_views_parse() {
    let statements = crate::parse::parse(script()).expect("views.sql parses");
    assert!(statements.len() > 50);
}

#[test]
fn every_system_view_can_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = disk::os(folder.path().to_path_buf()).expect("a disk");
    let settings = Arc::new(base::settings::ServerSettings::new());
    crate::init::init(Arc::clone(&disk), &settings).expect("init");
    let options = engine::EngineOptions {
        background: false,
        ..engine::EngineOptions::new(Arc::clone(&settings))
    };
    let engine = engine::Engine::open(disk, options).expect("open");
    let cluster = crate::cluster::Cluster::new(Arc::clone(&engine), settings).expect("cluster");
    let kind = txn::BackendKind::Internal;
    let mut session =
        crate::session::Session::internal(&cluster, "postgres", kind).expect("session");
    let mut client = crate::client::Quiet;
    let views: Vec<String> = script()
        .lines()
        .filter_map(|l| l.strip_prefix("CREATE VIEW "))
        .filter_map(|l| l.split_whitespace().next().map(str::to_owned))
        .collect();
    assert!(views.len() > 60);
    for view in views {
        session
            .simple_query(&format!("SELECT * FROM {view} LIMIT 5"), &mut client)
            .unwrap_or_else(|e| panic!("{view}: {e}"));
    }
    session.close();
    drop(cluster);
    engine.shutdown().expect("shutdown");
}

#[test]
fn functions_of_our_own_have_numbers_of_their_own() {
    let mut seen = std::collections::BTreeSet::new();
    let own = [super::session::OWN, super::statistics::OWN, super::backlog::OWN].concat();
    for f in own.into_iter().chain(super::extensions::functions()) {
        assert!(seen.insert(f.oid), "{} is there twice: {}", f.oid, f.name);
        assert!(types::facts::proc(base::Oid(f.oid)).is_none(), "{} is PostgreSQL's", f.oid);
    }
}
