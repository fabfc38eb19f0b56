//! TLS: what psql sees, what a client that speaks first sees, and which files a server refuses.

use crate::support::{cluster, have, refused_to_serve, root};
use lab::client::{Client, Target};
use lab::load::Load;
use lab::servers::{Server, free_port};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Gives a cluster one of the certificates of tests/tls, with its key.
fn give(server: &Server, certificate: &str, key: &str) {
    let from = root().join("tests/tls");
    let to = server.data_folder();
    fs::copy(from.join(certificate).with_extension("crt"), to.join("server.crt")).unwrap();
    let _ = fs::remove_file(to.join("server.key"));
    fs::copy(from.join(key).with_extension("key"), to.join("server.key")).unwrap();
    fs::set_permissions(to.join("server.key"), fs::Permissions::from_mode(0o600)).unwrap();
}

fn with_certificate(certificate: &str, settings: &[(&str, &str)]) -> Server {
    let mut all = vec![("ssl", "on")];
    all.extend_from_slice(settings);
    let mut server = cluster(&all);
    give(&server, certificate, certificate);
    server.start().unwrap();
    server
}

/// What psql answers, or says on standard error.
fn psql(server: &Server, connection: &str, sql: &str) -> Result<String, String> {
    let port = server.port();
    let root = root().join("tests/tls");
    let output = Command::new("psql")
        .args(["-XAtq", "-c", sql])
        .arg(format!("host=127.0.0.1 port={port} dbname=postgres user=postgres {connection}"))
        .env_remove("PGSSLMODE")
        .env("PGPASSWORD", "secret")
        .current_dir(root)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

const MINE: &str =
    "SELECT ssl, version, cipher, bits, client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()";

#[test]
fn psql_connects_encrypted() {
    if !have("psql") {
        return;
    }
    for certificate in ["ecdsa", "rsa"] {
        let server = with_certificate(certificate, &[]);
        assert_eq!(
            psql(&server, "sslmode=require", MINE).unwrap(),
            "t|TLSv1.3|TLS_AES_256_GCM_SHA384|256|"
        );
        let verified = format!("sslmode=verify-full sslrootcert={certificate}.crt");
        assert_eq!(psql(&server, &verified, "SELECT 1").unwrap(), "1");
        let old = psql(&server, "sslmode=require ssl_max_protocol_version=TLSv1.2", MINE).unwrap();
        assert!(old.starts_with("t|TLSv1.2|ECDHE-") && old.ends_with("|256|"), "{old}");
        assert_eq!(psql(&server, "sslmode=disable", MINE).unwrap(), "f||||");

        // Many records in both directions.
        let long = psql(&server, "sslmode=require", "SELECT repeat(md5('x'), 200000)").unwrap();
        assert_eq!(long.len(), 6_400_000);
        let rows = psql(&server, "sslmode=require", "SELECT g FROM generate_series(1, 100000) g");
        assert_eq!(rows.unwrap().lines().last(), Some("100000"));
        let insert = format!("SELECT length('{}')", "y".repeat(100_000));
        assert_eq!(psql(&server, "sslmode=require", &insert).unwrap(), "100000");
        let error = psql(&server, "sslmode=require", "SELECT 1/0").unwrap_err();
        assert_eq!(error, "ERROR:  division by zero");

        // A password goes over SCRAM, bound to the certificate.
        psql(&server, "", "CREATE ROLE guest LOGIN PASSWORD 'secret'").unwrap();
        for binding in ["require", "prefer", "disable"] {
            let connection = format!("user=guest sslmode=require channel_binding={binding}");
            assert_eq!(psql(&server, &connection, "SELECT current_user").unwrap(), "guest");
        }
        let plain = "user=guest sslmode=disable channel_binding=require";
        assert!(psql(&server, plain, "SELECT 1").unwrap_err().contains("channel binding"));
        assert_eq!(psql(&server, "user=guest sslmode=disable", "SELECT 1").unwrap(), "1");
        let ended =
            psql(&server, "sslmode=require", "SELECT pg_terminate_backend(pg_backend_pid())");
        assert!(ended.unwrap_err().contains("terminating connection due to administrator command"));
    }
    let server = with_certificate("ecdsa", &[("ssl_min_protocol_version", "TLSv1.3")]);
    let old = psql(&server, "sslmode=require ssl_max_protocol_version=TLSv1.2", "SELECT 1");
    assert!(old.unwrap_err().contains("SSL error"));
    assert_eq!(psql(&server, "sslmode=require", "SELECT 1").unwrap(), "1");
}

#[test]
fn without_certificate_psql_is_told_so() {
    if !have("psql") {
        return;
    }
    let server = crate::support::server(&[]);
    let refused = psql(&server, "sslmode=require", "SELECT 1").unwrap_err();
    assert!(refused.contains("server does not support SSL, but SSL was required"), "{refused}");
    assert_eq!(psql(&server, "sslmode=prefer", "SHOW ssl").unwrap(), "off");
}

#[test]
fn a_server_does_not_start_with_files_that_are_wrong() {
    let server = cluster(&[]);
    let port = free_port().unwrap();
    let refused = |more: &[&str]| {
        let mut all = vec!["-c", "ssl=on"];
        all.extend_from_slice(more);
        refused_to_serve(&server, port, &all)
    };
    let says = |text: String, part: &str| assert!(text.contains(part), "{text}");
    let key = server.data_folder().join("server.key");
    let mode = |mode| fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();

    let missing =
        "could not load server certificate file \"server.crt\": No such file or directory";
    says(refused(&[]), missing);
    give(&server, "ecdsa", "ecdsa");
    fs::remove_file(&key).unwrap();
    says(
        refused(&[]),
        "could not access private key file \"server.key\": No such file or directory",
    );
    fs::create_dir(&key).unwrap();
    says(refused(&[]), "private key file \"server.key\" is not a regular file");
    fs::remove_dir(&key).unwrap();
    give(&server, "ecdsa", "ecdsa");
    mode(0o640);
    says(refused(&[]), "private key file \"server.key\" has group or world access");
    mode(0o604);
    says(refused(&[]), "private key file \"server.key\" has group or world access");
    fs::write(&key, "rubbish").unwrap();
    mode(0o600);
    says(refused(&[]), "could not load private key file \"server.key\": no start line");
    give(&server, "ecdsa", "encrypted");
    says(refused(&[]), "could not load private key file \"server.key\": it requires a passphrase");
    give(&server, "ecdsa", "rsa");
    says(refused(&[]), "check of private key failed: key values mismatch");
    give(&server, "ecdsa", "ecdsa");
    says(
        refused(&[
            "-c",
            "ssl_min_protocol_version=TLSv1.3",
            "-c",
            "ssl_max_protocol_version=TLSv1.2",
        ]),
        "could not set SSL protocol version range",
    );
    says(refused(&["-c", "ssl_max_protocol_version=TLSv1.1"]), "version range");
    says(refused(&["-c", "ssl_min_protocol_version=SSLv3"]), "ssl_min_protocol_version");
    fs::write(server.data_folder().join("server.crt"), "").unwrap();
    says(refused(&[]), "could not load server certificate file \"server.crt\": no start line");
}

fn trusting(certificates: &[&str], versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        let file = root().join("tests/tls").join(certificate);
        roots.add(CertificateDer::from_pem_file(file).unwrap()).unwrap();
    }
    ClientConfig::builder_with_provider(Arc::new(rustls_graviola::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// Runs a handshake over `socket`, then a startup packet; what the server says first.
fn talk(
    mut config: ClientConfig,
    protocol: Option<&str>,
    socket: TcpStream,
) -> std::io::Result<Vec<u8>> {
    config.alpn_protocols = protocol.iter().map(|p| p.as_bytes().to_vec()).collect();
    let name = ServerName::try_from("localhost").unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(client, socket);
    let mut startup = vec![0, 0, 0, 0, 0, 3, 0, 0];
    startup.extend_from_slice(b"user\0postgres\0database\0postgres\0\0");
    startup[3] = u8::try_from(startup.len()).unwrap();
    stream.write_all(&startup)?;
    let mut answer = vec![0; 9];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
const AUTHENTICATED: [u8; 9] = [b'R', 0, 0, 0, 8, 0, 0, 0, 0];

#[test]
fn a_client_may_begin_with_the_handshake() {
    let server = with_certificate("ecdsa", &[]);
    let socket = || TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    let both = [&rustls::version::TLS12, &rustls::version::TLS13];
    for version in both {
        let config = || trusting(&["ecdsa.crt"], &[version]);
        assert_eq!(talk(config(), Some("postgresql"), socket()).unwrap(), AUTHENTICATED);
        assert!(talk(config(), None, socket()).is_err());
        assert!(talk(config(), Some("http/1.1"), socket()).is_err());

        let mut asked = socket();
        asked.write_all(&SSL_REQUEST).unwrap();
        let mut answer = [0];
        asked.read_exact(&mut answer).unwrap();
        assert_eq!(answer, *b"S");
        assert_eq!(talk(config(), None, asked).unwrap(), AUTHENTICATED);
    }
    // A statement slipped in before the handshake is not taken as the client's.
    let mut slipped = socket();
    slipped.write_all(&[SSL_REQUEST.as_slice(), b"Q\0\0\0\x0dSELECT 1\0"].concat()).unwrap();
    let mut answer = Vec::new();
    slipped.read_to_end(&mut answer).unwrap();
    let text = String::from_utf8_lossy(&answer);
    assert!(text.starts_with('E') && text.contains("received unencrypted data"), "{text}");
    // Rubbish in place of a handshake ends that connection and no other.
    let mut rubbish = socket();
    rubbish.write_all(&[SSL_REQUEST.as_slice()].concat()).unwrap();
    rubbish.read_exact(&mut [0]).unwrap();
    rubbish.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let _ = rubbish.read_to_end(&mut Vec::new());
    assert_eq!(
        talk(trusting(&["ecdsa.crt"], &both), None, {
            let mut asked = socket();
            asked.write_all(&SSL_REQUEST).unwrap();
            asked.read_exact(&mut [0]).unwrap();
            asked
        })
        .unwrap(),
        AUTHENTICATED
    );
}

#[test]
fn a_reload_takes_new_files_and_keeps_the_old_if_they_are_wrong() {
    let mut server = cluster(&[("log_min_messages", "log")]);
    give(&server, "ecdsa", "ecdsa");
    server.start().unwrap();
    let mut client = server.connect().unwrap();
    let socket = || TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    let presents = |certificate: &str| {
        let config = trusting(&[certificate], &[&rustls::version::TLS13]);
        talk(config, Some("postgresql"), socket()).is_ok()
    };
    assert!(!presents("ecdsa.crt"));
    client.run("ALTER SYSTEM SET ssl TO on").unwrap();
    client.run("SELECT pg_reload_conf()").unwrap();
    assert!(presents("ecdsa.crt"));
    give(&server, "rsa", "rsa");
    assert!(presents("ecdsa.crt"), "files are read when told to");
    client.run("SELECT pg_reload_conf()").unwrap();
    assert!(presents("rsa.crt") && !presents("ecdsa.crt"));
    give(&server, "ecdsa", "rsa");
    client.run("SELECT pg_reload_conf()").unwrap();
    assert!(presents("rsa.crt"));
    let log = server.log();
    assert!(log.contains("LOG:  check of private key failed: key values mismatch"), "{log}");
    assert!(log.contains("LOG:  SSL configuration was not reloaded"), "{log}");
    client.run("ALTER SYSTEM SET ssl TO off").unwrap();
    client.run("SELECT pg_reload_conf()").unwrap();
    assert!(!presents("rsa.crt"));
}

#[test]
fn the_laboratory_speaks_tls() {
    let server = with_certificate("ecdsa", &[]);
    let root = |certificate: &str| {
        format!("sslrootcert={}", root().join("tests/tls").join(certificate).display())
    };
    let url =
        |query: &str| format!("postgres://postgres@127.0.0.1:{}/postgres?{query}", server.port());
    let ask = |query: &str, sql: &str| -> lab::Result<String> {
        Client::connect(&Target::parse(&url(query))?)?.value(sql)
    };
    let ssl = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let full = format!("sslmode=verify-full&{}", root("ecdsa.crt"));
    let vouched = format!("sslmode=verify-ca&{}", root("ecdsa.crt"));
    for query in ["sslmode=require", "sslmode=prefer", &full, &vouched] {
        assert_eq!(ask(query, ssl).unwrap(), "t", "{query}");
    }
    assert_eq!(ask("sslmode=disable", ssl).unwrap(), "f");
    for mode in ["verify-full", "verify-ca", "require"] {
        let query = format!("sslmode={mode}&{}", root("rsa.crt"));
        let refused = ask(&query, ssl).unwrap_err().to_string();
        assert!(refused.contains("certificate"), "{mode}: {refused}");
    }
    // Many records in both directions, and a wait that ends in the middle of none.
    let long = ask(&full, &format!("SELECT '{}'", "y".repeat(500_000))).unwrap();
    assert_eq!(long.len(), 500_000);
    let mut client = Client::connect(&Target::parse(&url(&full)).unwrap()).unwrap();
    let mut holder = Client::connect(&Target::parse(&url(&full)).unwrap()).unwrap();
    holder.run("SELECT pg_advisory_lock(1)").unwrap();
    client.send_simple("SELECT pg_advisory_lock(1)").unwrap();
    assert!(client.finish_within(Duration::from_millis(20)).unwrap().is_none());
    holder.close();
    assert!(client.finish().unwrap().error().is_none());
    // A session that is idle hears of notifications, and still hears its client.
    let mut other = client.again().unwrap();
    client.run("LISTEN ch").unwrap();
    for i in 1..=3 {
        other.run(&format!("NOTIFY ch, '{i}'")).unwrap();
        assert_eq!(crate::notify::unasked(&mut client), format!("A {} ch {i}", other.pid));
        assert_eq!(client.value("SELECT length(repeat('x', 100000))").unwrap(), "100000");
    }

    // pgbench, whose transaction fails where it is not encrypted.
    if have("pgbench") {
        let script = "SELECT 1 / CAST(ssl AS int) FROM pg_stat_ssl WHERE pid = pg_backend_pid();";
        let load = |query: &str| {
            let load = Load { script, clients: 1, seconds: 1, ..Load::default() };
            load.run("pgbench".as_ref(), &Target::parse(&url(query)).unwrap())
        };
        assert!(load(&full).is_ok_and(|measured| measured.tps > 0.0));
        assert!(load("sslmode=disable").is_err());
    }

    // The command: an experiment on a server that runs, and advice on one of its tables.
    let lab = |words: &[&str]| {
        let temporary = tempfile::tempdir().unwrap();
        let mut command = Command::new(crate::support::binary());
        command.arg("lab").args(words).env("TMPDIR", temporary.path());
        let output = command.current_dir(temporary.path()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text)
    };
    let (done, said) = lab(&["ring", "--rows", "1000", "--server", &url(&full)]);
    assert!(done && said.contains("Ebb #2 was running"), "{said}");
    let databases = "SELECT count(*) FROM pg_database WHERE datname LIKE 'ebb_lab%'";
    assert_eq!(ask(&full, databases).unwrap(), "0");
    Client::connect(&Target::parse(&url(&full)).unwrap())
        .and_then(|mut client| client.run("CREATE TABLE t (a int)"))
        .unwrap();
    for (query, does) in [(&full, true), (&full.replace("ecdsa", "rsa"), false)] {
        let (done, said) = lab(&["advise", "--table", "t", "--server", &url(query)]);
        assert_eq!(done, does, "{said}");
    }
}
