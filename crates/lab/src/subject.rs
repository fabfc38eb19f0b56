//! A server as an experiment meets it: started by the laboratory in a folder of its own, or running already.
//!
//! An experiment sends the same SQL to each. What a server has is asked of it by its version and its settings'
//! names. Only what needs the server's folder or processes (a restart, cold caches, a trace, a crash) asks
//! whether there are any.

use crate::client::{Client, Target};
use crate::counters::{self, Counters};
use crate::plan::Plan;
use crate::results::{Experiment, Kind, Results, ServerInfo};
use crate::servers::{Make, Server, Stop};
use crate::trace::{self, Traced};
use crate::{Result, files, measure};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A server that is measured.
#[derive(Debug)]
pub struct Subject {
    /// Its name in rows, e.g. `Ebb` or `PostgreSQL 18`.
    pub label: String,
    /// Whose it is.
    pub kind: Kind,
    /// `server_version_num`.
    pub version: u32,
    place: Place,
    /// The pgbench that all servers of the run are loaded with.
    pub pgbench: PathBuf,
    traces: bool,
}

#[derive(Debug)]
enum Place {
    Started(Box<Server>),
    /// A database of the laboratory's own in it, so that no table of anybody else's is touched.
    Running(Target),
}

/// What every experiment's servers are started with; an experiment's own settings come after.
pub const SETTINGS: &[(&str, &str)] = &[
    ("fsync", "on"),
    ("wal_compression", "lz4"),
    ("max_wal_size", "16GB"),
    ("checkpoint_timeout", "1h"),
    ("log_checkpoints", "on"),
    ("max_connections", "50"),
];

/// Whether this make can compress full-page images with LZ4. PostgreSQL may be built without, and before 15 is.
fn has_lz4(make: &Make) -> bool {
    let Make::Postgres(bin) = make else { return true };
    // An unknown value is refused before the missing folder is.
    let mut command = Command::new(bin.join("postgres"));
    // As the first option, -C may be asked by root too.
    command.args(["-C", "wal_compression", "-c", "wal_compression=lz4", "-D", "/nonexistent"]);
    let output = command.stdin(Stdio::null()).env("LC_MESSAGES", "C").output();
    output.is_ok_and(|o| !String::from_utf8_lossy(&o.stderr).contains("invalid value"))
}

/// The settings of all servers: the same compression of full-page images on each, LZ4 where all have it.
fn common_settings(
    plan: &Plan,
    settings: &[(&'static str, &str)],
    e: &mut Experiment,
) -> Vec<(String, String)> {
    let without: Vec<String> = plan.all_makes.iter().filter(|m| !has_lz4(m)).map(from).collect();
    let mut all: Vec<(String, String)> = Vec::new();
    for (name, value) in SETTINGS.iter().chain(settings) {
        let mut value = *value;
        if *name == "wal_compression" && !without.is_empty() {
            value = "off";
            let who = without.join(", ");
            e.note(format!(
                "wal_compression is off on all servers: {who} can't compress with LZ4."
            ));
        }
        all.retain(|(n, _)| n != name);
        all.push(((*name).into(), value.into()));
    }
    all
}

fn from(make: &Make) -> String {
    match make {
        Make::Ebb(path) | Make::Postgres(path) => path.display().to_string(),
    }
}

/// The label of a server of this experiment, and the server among those of the run: the same server has the same
/// label in every experiment, and two of one label would be one in the tables. `taken` are this experiment's labels.
fn label(servers: &mut Vec<ServerInfo>, taken: &[String], info: &mut ServerInfo) -> String {
    let met = |s: &&ServerInfo| s.from == info.from && !taken.contains(&s.label);
    if let Some(known) = servers.iter().find(met) {
        return known.label.clone();
    }
    let alike = servers.iter().filter(|s| s.label.split(" #").next() == Some(&info.label)).count();
    if alike > 0 {
        info.label = format!("{} #{}", info.label, alike + 1);
    }
    servers.push(info.clone());
    info.label.clone()
}

/// Makes and starts a server for each make of the plan, and meets those that run already.
pub fn open(
    plan: &Plan,
    settings: &[(&'static str, &str)],
    results: &mut Results,
    e: &mut Experiment,
) -> Result<Vec<Subject>> {
    let mut subjects: Vec<Subject> = Vec::new();
    let all = common_settings(plan, settings, e);
    let borrowed: Vec<(&str, &str)> = all.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    e.settings.clone_from(&all);
    for make in &plan.makes {
        let from = from(make);
        let server =
            Server::started(make.clone(), &borrowed).map_err(|e| format!("{from}: {e}"))?;
        subjects.push(Subject::meet(Place::Started(Box::new(server)), plan, from)?);
    }
    for url in &plan.running {
        let home = Target::parse(url)?;
        let from = format!("{}:{}", home.host, home.port);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let database = format!("ebb_lab_{}_{number}", std::process::id());
        let mut client = Client::connect(&home).map_err(|e| format!("{from}: {e}"))?;
        client.run(&format!("CREATE DATABASE {database}")).map_err(|e| format!("{from}: {e}"))?;
        client.close();
        let own = Target { database: database.clone(), ..home.clone() };
        DATABASES.lock().unwrap_or_else(PoisonError::into_inner).push((home, database));
        subjects.push(Subject::meet(Place::Running(own), plan, from)?);
    }
    let mut taken = Vec::new();
    for subject in &mut subjects {
        let mut info = subject.info()?;
        subject.label = label(&mut results.servers, &taken, &mut info);
        taken.push(subject.label.clone());
    }
    Ok(subjects)
}

impl Subject {
    fn meet(place: Place, plan: &Plan, from: String) -> Result<Subject> {
        let target = match &place {
            Place::Started(server) => server.target(),
            Place::Running(target) => target.clone(),
        };
        let mut client = Client::connect(&target).map_err(|e| format!("{from}: {e}"))?;
        let version: u32 = client.value("SHOW server_version_num")?.parse()?;
        let says = client.value("SELECT version()")?;
        client.close();
        let traces = plan.trace && matches!(place, Place::Started(_));
        let kind = if says.contains("Ebb") { Kind::Ebb } else { Kind::Postgres };
        let label = match kind {
            Kind::Ebb => "Ebb".to_owned(),
            Kind::Postgres => format!("PostgreSQL {}", version / 10_000),
        };
        Ok(Subject {
            label,
            kind,
            version,
            place,
            pgbench: measure::pgbench_for(&plan.all_makes),
            traces,
        })
    }

    fn info(&self) -> Result<ServerInfo> {
        let mut client = self.connect()?;
        let version = client.value("SELECT version()")?;
        let mut settings = Vec::new();
        for (name, _) in SETTINGS {
            settings.push(((*name).to_owned(), client.value(&format!("SHOW {name}"))?));
        }
        let from = match &self.place {
            Place::Started(server) => server.program().display().to_string(),
            Place::Running(target) => format!("{}:{}", target.host, target.port),
        };
        Ok(ServerInfo { label: self.label.clone(), kind: self.kind, version, from, settings })
    }

    /// Where it listens.
    pub fn target(&self) -> Target {
        match &self.place {
            Place::Started(server) => server.target(),
            Place::Running(target) => target.clone(),
        }
    }

    /// A new connection.
    pub fn connect(&self) -> Result<Client> {
        Client::connect(&self.target()).map_err(|e| format!("{}: {e}", self.label).into())
    }

    /// The server, where the laboratory started it.
    pub fn server(&mut self) -> Option<&mut Server> {
        match &mut self.place {
            Place::Started(server) => Some(server),
            Place::Running(_) => None,
        }
    }

    /// What its log says so far, where there is one to read.
    pub fn log(&self) -> String {
        match &self.place {
            Place::Started(server) => server.log(),
            Place::Running(_) => String::new(),
        }
    }

    /// Whether the run traces this server.
    pub fn traces(&self) -> bool {
        self.traces
    }

    /// Runs statements in a connection of their own.
    pub fn sql(&self, statements: &[&str]) -> Result<()> {
        let mut client = self.connect()?;
        for sql in statements {
            client.run(sql).map_err(|e| format!("{}: {e}", self.label))?;
        }
        client.close();
        Ok(())
    }

    /// Whether it has a setting of that name.
    pub fn has_setting(&self, name: &str) -> Result<bool> {
        let sql = format!("SELECT count(*) FROM pg_settings WHERE name = '{name}'");
        Ok(self.connect()?.value(&sql)? != "0")
    }

    /// Makes an extension's functions be there; false if they can't.
    pub fn has_extension(&self, name: &str) -> Result<bool> {
        let sql = format!("CREATE EXTENSION IF NOT EXISTS {name}");
        Ok(self.connect()?.simple(&sql)?.error().is_none())
    }

    /// The counters now.
    pub fn counters(&self) -> Result<Counters> {
        Counters::read(&mut self.connect()?)
    }

    /// Write calls of all its processes that live now: a session's go with it.
    pub fn write_calls(&self) -> Option<f64> {
        match &self.place {
            Place::Started(server) => counters::write_calls(&server.pids()),
            Place::Running(_) => None,
        }
    }

    /// The counters when all sessions before have told theirs. PostgreSQL's tell as they end, and its processes
    /// in the background within their next rounds; before 15 a file in between is half a second old.
    pub fn settled_counters(&self) -> Result<Counters> {
        std::thread::sleep(Duration::from_millis(if self.version < 150_000 { 1200 } else { 300 }));
        self.counters()
    }

    /// Starts it if it was stopped.
    pub fn start(&mut self) -> Result<()> {
        if let Place::Started(server) = &mut self.place
            && server.pid().is_none()
        {
            server.restore()?;
            server.run_under(&[]);
            server.start()?;
        }
        Ok(())
    }

    /// Keeps what is in the server now, for [`Subject::fresh`].
    pub fn save(&mut self) -> Result<()> {
        match &mut self.place {
            Place::Started(server) => server.save(),
            Place::Running(_) => Ok(()),
        }
    }

    /// Puts back what was saved (a running server does `build` again), and starts with cold caches if wanted.
    /// With a trace, it runs under strace.
    pub fn fresh(
        &mut self,
        how: Fresh,
        e: &mut Experiment,
        build: &dyn Fn(&Subject) -> Result<()>,
    ) -> Result<()> {
        let Place::Started(server) = &mut self.place else {
            e.note(format!(
                "{} was running: not restarted, and its caches are as they were",
                self.label
            ));
            return build(self);
        };
        server.restore()?;
        if how.cold {
            e.note(files::make_cold(&server.data_folder())?);
        }
        let words = if how.traced { trace::wrapper(&server.trace_file()) } else { Vec::new() };
        server.run_under(&words.iter().map(String::as_str).collect::<Vec<_>>());
        server.start()?;
        Ok(())
    }

    /// Stops a traced server and counts what it did between two times.
    pub fn traced(&mut self, from: f64, to: f64) -> Result<Option<Traced>> {
        let Place::Started(server) = &mut self.place else { return Ok(None) };
        server.stop(Stop::Fast)?;
        let file = server.trace_file();
        let traced = trace::count(&file, from, to)?;
        std::fs::remove_file(file)?;
        Ok(Some(traced))
    }
}

/// How many were made.
static MADE: AtomicU32 = AtomicU32::new(0);

/// The laboratory's databases in running servers: where each was made from, and its name.
static DATABASES: Mutex<Vec<(Target, String)>> = Mutex::new(Vec::new());

/// Removes the laboratory's databases from running servers; however a run ends, this is called.
pub fn leave_running_servers() {
    let mut databases = DATABASES.lock().unwrap_or_else(PoisonError::into_inner);
    for (home, database) in databases.drain(..) {
        if let Ok(mut client) = Client::connect(&home) {
            let _ = client.run(&format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)"));
            client.close();
        }
    }
}

/// How a server is to come back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fresh {
    /// With nothing of its files in the page cache.
    pub cold: bool,
    /// Under strace.
    pub traced: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_keeps_its_label_from_experiment_to_experiment() {
        let mut servers = Vec::new();
        let mut open = |all: &[(&str, &str)]| {
            let mut taken = Vec::new();
            for (name, from) in all {
                let mut info = ServerInfo {
                    label: (*name).into(),
                    from: (*from).into(),
                    ..ServerInfo::default()
                };
                let given = label(&mut servers, &taken, &mut info);
                taken.push(given);
            }
            taken
        };
        assert_eq!(open(&[("Ebb", "a"), ("PostgreSQL 18", "b")]), ["Ebb", "PostgreSQL 18"]);
        // Another of the same version, and the same program twice.
        assert_eq!(open(&[("Ebb", "a"), ("PostgreSQL 18", "c")]), ["Ebb", "PostgreSQL 18 #2"]);
        assert_eq!(
            open(&[("PostgreSQL 18", "b"), ("PostgreSQL 18", "b")]),
            ["PostgreSQL 18", "PostgreSQL 18 #3"]
        );
        assert_eq!(open(&[("PostgreSQL 18", "c")]), ["PostgreSQL 18 #2"]);
    }
}
