//! Servers to be measured or tested: Ebb or any PostgreSQL, each in a folder of its own.
//!
//! A server is made with `initdb` (or `ebb init`), started on a free port, ready when it lets a
//! client in, and gone with its folder when the value is dropped. PostgreSQL refuses to run as
//! root, so it is run as the user `postgres` then. Both get the same settings.

use crate::client::{Client, Target};
use crate::tls::Tls;
use crate::{Result, cleanup, files};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Whose server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Make {
    /// Ebb, from its binary.
    Ebb(PathBuf),
    /// PostgreSQL, from its folder of binaries.
    Postgres(PathBuf),
}

/// How a server is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// SIGINT: with a checkpoint, clients sent away.
    Fast,
    /// SIGTERM.
    Smart,
    /// SIGQUIT: without a checkpoint.
    Immediate,
    /// SIGKILL, to it and all its children.
    Kill,
}

/// A server in a temporary folder.
#[derive(Debug)]
pub struct Server {
    make: Make,
    folder: tempfile::TempDir,
    port: u16,
    settings: Vec<(String, String)>,
    child: Option<Child>,
    /// User and group to run as, when root may not.
    owner: Option<(u32, u32)>,
    /// A program that the server is run under (`strace …`), empty for none.
    wrapper: Vec<String>,
    /// What the last restore left in the data folder.
    restored: files::Copied,
}

/// A port that nobody listens on now.
pub fn free_port() -> Result<u16> {
    // A server binds its port only when it starts, and gives it up when it is killed to be started again: nobody else gets it meanwhile.
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        if GIVEN.lock().unwrap_or_else(PoisonError::into_inner).insert(port) {
            return Ok(port);
        }
    }
}

fn postgres_user() -> Result<Option<(u32, u32)>> {
    let id = Command::new("id").arg("-u").output()?;
    if String::from_utf8_lossy(&id.stdout).trim() != "0" {
        return Ok(None);
    }
    let passwd = fs::read_to_string("/etc/passwd")?;
    let line = passwd.lines().find(|l| l.starts_with("postgres:"));
    let line = line.ok_or("PostgreSQL does not run as root, and there is no user `postgres`")?;
    let mut fields = line.split(':').skip(2);
    let mut next = || fields.next().and_then(|f| f.parse().ok()).ok_or("a strange /etc/passwd");
    Ok(Some((next()?, next()?)))
}

impl Server {
    /// Makes a new, empty cluster; it is not started yet.
    pub fn new(make: Make, settings: &[(&str, &str)]) -> Result<Server> {
        let folder = cleanup::folder()?;
        let owner = if matches!(make, Make::Postgres(_)) { postgres_user()? } else { None };
        if let Some((user, group)) = owner {
            std::os::unix::fs::chown(folder.path(), Some(user), Some(group))?;
        }
        let settings = settings.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
        let server = Server {
            make,
            folder,
            port: free_port()?,
            settings,
            child: None,
            owner,
            wrapper: Vec::new(),
            restored: files::Copied::default(),
        };
        let mut command = match &server.make {
            Make::Ebb(binary) => {
                let mut command = Command::new(binary);
                command.arg("init");
                command
            }
            Make::Postgres(bin) => {
                let mut command = Command::new(bin.join("initdb"));
                command.args([
                    "-U",
                    "postgres",
                    "-A",
                    "trust",
                    "--locale=C",
                    "-E",
                    "UTF8",
                    "-N",
                    "-k",
                ]);
                command
            }
        };
        command.arg("-D").arg(server.data_folder());
        server.as_owner(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = cleanup::spawn(&mut command)?;
        let pid = child.id();
        let output = child.wait_with_output();
        cleanup::ended(pid);
        let output = output?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("making a cluster failed: {}", last_words(&text)).into());
        }
        Ok(server)
    }

    /// A new cluster, started.
    pub fn started(make: Make, settings: &[(&str, &str)]) -> Result<Server> {
        let mut server = Server::new(make, settings)?;
        server.start()?;
        Ok(server)
    }

    fn as_owner(&self, command: &mut Command) {
        if let Some((user, group)) = self.owner {
            command.uid(user).gid(group).current_dir(self.folder.path());
        }
    }

    /// The data folder.
    pub fn data_folder(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A folder beside the data folder that lives as long as the server.
    pub fn scratch(&self) -> &Path {
        self.folder.path()
    }

    /// The log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A name for tables: `Ebb` or `PostgreSQL`.
    pub fn name(&self) -> &'static str {
        match self.make {
            Make::Ebb(_) => "Ebb",
            Make::Postgres(_) => "PostgreSQL",
        }
    }

    /// The program that is started.
    pub fn program(&self) -> PathBuf {
        match &self.make {
            Make::Ebb(binary) => binary.clone(),
            Make::Postgres(bin) => bin.join("postgres"),
        }
    }

    /// Where a trace of it goes.
    pub fn trace_file(&self) -> PathBuf {
        self.folder.path().join("trace")
    }

    /// Changes a setting from the next start on.
    pub fn set(&mut self, name: &str, value: &str) {
        self.settings.retain(|(n, _)| n != name);
        self.settings.push((name.into(), value.into()));
    }

    /// Runs the server under another program from the next start on.
    pub fn run_under(&mut self, wrapper: &[&str]) {
        self.wrapper = wrapper.iter().map(|s| (*s).to_owned()).collect();
    }

    /// The command that starts this server.
    pub fn command(&self) -> Command {
        let port = self.port.to_string();
        let program = self.program();
        let mut command = match self.wrapper.split_first() {
            None => Command::new(&program),
            Some((wrapper, arguments)) => {
                let mut command = Command::new(wrapper);
                command.args(arguments).arg(&program);
                command
            }
        };
        match self.make {
            Make::Ebb(_) => command.arg("serve"),
            Make::Postgres(_) => command.args(["-c", "unix_socket_directories="]),
        };
        command.arg("-D").arg(self.data_folder()).args(["-h", "127.0.0.1", "-p", &port]);
        for (name, value) in &self.settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        self.as_owner(&mut command);
        command.stdin(Stdio::null());
        command
    }

    /// Starts, and waits until a client is let in; says how long that took.
    pub fn start(&mut self) -> Result<Duration> {
        self.launch()?;
        let begun = Instant::now();
        self.wait_ready(Duration::from_secs(300))?;
        Ok(begun.elapsed())
    }

    /// Starts without waiting.
    pub fn launch(&mut self) -> Result<()> {
        let log = File::options().create(true).append(true).open(self.folder.path().join("log"))?;
        let mut command = self.command();
        command.stdout(log.try_clone()?).stderr(log).process_group(0);
        self.child = Some(cleanup::spawn(&mut command)?);
        Ok(())
    }

    /// Waits until a client is let in.
    pub fn wait_ready(&mut self, patience: Duration) -> Result<()> {
        let begun = Instant::now();
        loop {
            match self.connect() {
                Ok(client) => {
                    client.close();
                    return Ok(());
                }
                Err(e) if begun.elapsed() > patience => {
                    return Err(format!("not ready in {patience:?}: {e}\n{}", self.log()).into());
                }
                Err(_) => {}
            }
            if let Some(child) = &mut self.child
                && let Some(status) = child.try_wait()?
            {
                cleanup::ended(child.id());
                self.child = None;
                let words = last_words(&self.log()).to_owned();
                return Err(format!("{} does not start ({status}): {words}", self.name()).into());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Where to connect.
    pub fn target(&self) -> Target {
        Target {
            host: "127.0.0.1".into(),
            port: self.port,
            user: "postgres".into(),
            database: "postgres".into(),
            password: None,
            options: Vec::new(),
            tls: Tls::default(),
        }
    }

    /// Connects as `postgres` to the database `postgres`.
    pub fn connect(&self) -> Result<Client> {
        Client::connect(&self.target())
    }

    /// The server's process number (its main one), while it runs.
    pub fn pid(&self) -> Option<u32> {
        let child = self.child.as_ref()?.id();
        if self.wrapper.is_empty() { Some(child) } else { children(child).first().copied() }
    }

    /// Stops and waits for the end.
    pub fn stop(&mut self, how: Stop) -> Result<Option<ExitStatus>> {
        let pid = self.pid();
        let Some(mut child) = self.child.take() else { return Ok(None) };
        let group = child.id();
        if let Some(pid) = pid {
            match how {
                Stop::Smart => signal("-TERM", &pid.to_string())?,
                Stop::Fast => signal("-INT", &pid.to_string())?,
                Stop::Immediate => signal("-QUIT", &pid.to_string())?,
                Stop::Kill => {
                    // Stopped first, so that it has no more children than are seen here.
                    signal("-STOP", &pid.to_string())?;
                    let mut pids: Vec<String> =
                        children(pid).iter().map(ToString::to_string).collect();
                    pids.push(pid.to_string());
                    for pid in &pids {
                        signal("-KILL", pid)?;
                    }
                    signal("-KILL", &format!("-{group}"))?;
                    // The port, the lock file and the shared memory are free only when the last of them is
                    // gone: a child that has many pages to give back outlives its parent.
                    while pids.iter().any(|pid| alive(pid)) {
                        // Or it would stay a zombie under a wrapper's name.
                        let _ = child.try_wait()?;
                        std::thread::sleep(Duration::from_millis(2));
                    }
                }
            }
        }
        let begun = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                cleanup::ended(group);
                return Ok(Some(status));
            }
            if begun.elapsed() > Duration::from_secs(120) {
                let _ = signal("-KILL", &format!("-{group}"));
                child.wait()?;
                cleanup::ended(group);
                return Err(format!("did not stop in 120 s\n{}", self.log()).into());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Its processes: the main one and those whose parent that is.
    pub fn pids(&self) -> Vec<u32> {
        let Some(pid) = self.pid() else { return Vec::new() };
        let mut pids = children(pid);
        pids.push(pid);
        pids
    }

    /// Stops, and keeps the data folder as it is now for [`Server::restore`].
    pub fn save(&mut self) -> Result<()> {
        self.stop(Stop::Fast)?;
        let saved = self.folder.path().join("saved");
        if saved.exists() {
            fs::remove_dir_all(&saved)?;
        }
        fs::rename(self.data_folder(), saved)?;
        self.restored = files::Copied::default();
        Ok(())
    }

    /// Stops, and puts back a copy of what [`Server::save`] kept, written out to disk. What is still as the last
    /// restore left it stays.
    pub fn restore(&mut self) -> Result<()> {
        self.stop(Stop::Immediate)?;
        files::restore_tree(
            &self.folder.path().join("saved"),
            &self.data_folder(),
            &mut self.restored,
        )?;
        let _ = fs::remove_file(self.folder.path().join("log"));
        Ok(())
    }

    /// Stops and starts again; says how long the start took.
    pub fn restart(&mut self, how: Stop) -> Result<Duration> {
        self.stop(how)?;
        self.start()
    }

    /// Memory of all its processes that is in RAM: private pages once each and the shared ones of
    /// the process that has most of them.
    pub fn resident_bytes(&self) -> Result<u64> {
        let Some(pid) = self.pid() else { return Ok(0) };
        let mut pids = children(pid);
        pids.push(pid);
        let mut private = 0;
        let mut shared = 0;
        for pid in pids {
            let Ok(text) = fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
            let field = |name: &str| -> u64 {
                let line = text.lines().find(|l| l.starts_with(name)).unwrap_or("");
                let number = line.split_whitespace().nth(1).and_then(|n| n.parse().ok());
                number.unwrap_or(0) * 1024
            };
            private += field("RssAnon:");
            shared = shared.max(field("RssShmem:"));
        }
        Ok(private + shared)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.stop(Stop::Kill);
    }
}

/// What of a log tells why its server ended: the last line of an error, else the last line.
fn last_words(log: &str) -> &str {
    let telling = |l: &&str| {
        ["FATAL:", "PANIC:", "rror:", "ERROR:", "panicked"].iter().any(|word| l.contains(word))
    };
    let mut lines = log.lines().rev().filter(|l| !l.trim().is_empty());
    lines.clone().find(telling).or_else(|| lines.next()).unwrap_or("it said nothing")
}

fn alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.contains(" Z "))
}

/// The processes whose parent is `pid`.
fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|p| p.parse().ok()).collect()
}

fn signal(which: &str, pid: &str) -> Result<()> {
    Command::new("kill").args([which, "--", pid]).stderr(Stdio::null()).status()?;
    Ok(())
}
