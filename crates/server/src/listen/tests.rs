use super::*;
use base::settings::ServerSettings;
use base::stop::PATIENCE;
use engine::{Engine, EngineOptions};
use std::io::{Read as _, Write as _};
use std::time::Instant;

fn cluster() -> (tempfile::TempDir, Arc<Cluster>) {
    base::log::set_min_level(base::log::Level::Panic);
    let folder = tempfile::tempdir().unwrap();
    let disk = disk::os(folder.path().to_path_buf()).unwrap();
    let settings = Arc::new(ServerSettings::new());
    settings.set_internal("shared_buffers", base::settings::Value::Int(2048));
    sql::init::init(Arc::clone(&disk), &settings).unwrap();
    let options = EngineOptions { background: false, ..EngineOptions::new(Arc::clone(&settings)) };
    let engine = Engine::open(disk, options).unwrap();
    (folder, Cluster::new(engine, settings).unwrap())
}

/// Two ends of a connection: the client's first.
fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    (client, listener.accept().unwrap().0)
}

/// A startup packet, and a query sent with it.
fn startup_and(query: &str) -> Vec<u8> {
    let names = b"user\0postgres\0database\0postgres\0\0";
    let mut bytes = Vec::new();
    bytes.extend(u32::try_from(names.len() + 8).unwrap().to_be_bytes());
    bytes.extend(0x0003_0000u32.to_be_bytes());
    bytes.extend(names);
    bytes.push(b'Q');
    bytes.extend(u32::try_from(query.len() + 5).unwrap().to_be_bytes());
    bytes.extend(query.as_bytes());
    bytes.push(0);
    bytes
}

/// A session that is made while the server stops is waited for, and does not begin what its client has sent already.
#[test]
fn a_session_that_is_late_for_the_stop_ends_before_it() {
    let (_folder, cluster) = cluster();
    let listener = Listener::bind("127.0.0.1", 0).unwrap();
    let server = Server::start(listener, Arc::clone(&cluster), Tls::off()).unwrap();
    let shared = Arc::clone(&server.shared);
    let armed = base::stop::arm("server.session.let_in");
    let subject = armed.subject();
    let (mut client, stream) = connection();
    client.write_all(&startup_and("CREATE TABLE late (a int)")).unwrap();
    let own = Arc::clone(&shared);
    let session = std::thread::spawn(move || subject.run(|| connection::run(stream, &own)));
    armed.wait_reached();
    let stop = std::thread::spawn(move || {
        server.stop();
        cluster.backends().all().iter().filter(|b| b.kind == txn::BackendKind::Client).count()
    });
    let begun = Instant::now();
    while !shared.sessions.lock().closed {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
    armed.release();
    assert_eq!(stop.join().unwrap(), 0, "sessions after the stop");
    session.join().unwrap();
    let mut told = Vec::new();
    // What it was told may be followed by a reset: there is something that nobody has read.
    let _ = client.read_to_end(&mut told);
    let told = String::from_utf8_lossy(&told).into_owned();
    assert!(!told.contains("CREATE TABLE"), "{told:?}");
    assert!(told.contains("57P01"), "{told:?}");
}

/// Who comes to the door of a stopped server is turned away.
#[test]
fn nobody_is_let_in_after_the_stop() {
    let (_folder, cluster) = cluster();
    let listener = Listener::bind("127.0.0.1", 0).unwrap();
    let server = Server::start(listener, Arc::clone(&cluster), Tls::off()).unwrap();
    let shared = Arc::clone(&server.shared);
    server.stop();
    assert_eq!(shared.let_in().err().unwrap().state(), base::SqlState::CANNOT_CONNECT_NOW);
    let (mut client, stream) = connection();
    client.write_all(&startup_and("SELECT 1")).unwrap();
    connection::run(stream, &shared);
    let mut told = Vec::new();
    let _ = client.read_to_end(&mut told);
    assert!(String::from_utf8_lossy(&told).contains("57P03"), "{told:?}");
}
