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
