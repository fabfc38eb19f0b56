//! `ebb serve`, `ebb init`, `ebb check`.

use base::settings::{Assignment, ServerSettings, Source, Value};
use base::{Error, Result};
use disk::Disk;
use engine::{Engine, EngineOptions};
use server::{Listener, Server, Tls};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use sql::cluster::Cluster;
use sql::config_files::CONF;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

/// Tells whoever has started the command. Who does not listen any more is no reason to fail.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

/// What a new data folder's configuration file says.
const NEW_CONF: &str = "# Ebb's settings, in PostgreSQL's form: name = value.
# Names, units and meanings are PostgreSQL's; SHOW ALL lists them.
#shared_buffers = 128MB
#port = 5432
#listen_addresses = '127.0.0.1'
";

fn new_settings() -> Arc<ServerSettings> {
    Arc::new(ServerSettings::checked_by(sql::session::kept))
}

/// Settings given on the command line.
fn command_line(
    port: Option<u16>,
    host: Option<String>,
    given: &[String],
) -> Result<Vec<Assignment>> {
    let assignment = |name: &str, value: String| Assignment {
        name: name.replace('-', "_"),
        value,
        location: None,
        source: Source::CommandLine,
    };
    let mut out = Vec::new();
    for text in given {
        match text.split_once('=') {
            Some((name, value)) => out.push(assignment(name.trim(), value.trim_start().to_owned())),
            None => base::bail!(SYNTAX_ERROR, "-c {text} requires a value"),
        }
    }
    out.extend(port.map(|p| assignment("port", p.to_string())));
    out.extend(host.map(|h| assignment("listen_addresses", h)));
    Ok(out)
}

/// All layers in rising priority: `postgresql.conf` and what it includes, ALTER SYSTEM's file, the command line.
fn layers(data: &Path, command_line: &[Assignment]) -> Result<Vec<Assignment>> {
    let mut all = sql::config_files::read(data)?;
    all.extend(command_line.iter().cloned());
    Ok(all)
}

fn open_disk(data: &Path, create: bool) -> Result<Arc<dyn Disk>> {
    let what = || format!("could not access directory \"{}\"", data.display());
    if !create && !data.is_dir() {
        return Err(Error::io(what(), std::io::Error::from(std::io::ErrorKind::NotFound)));
    }
    if data.exists() && !data.is_dir() {
        base::bail!(INVALID_PARAMETER_VALUE, "\"{}\" is not a directory", data.display());
    }
    if !data.exists() {
        std::fs::create_dir_all(data).map_err(|e| Error::io(what(), e))?;
    }
    disk::os(data.to_path_buf()).map_err(|e| Error::io(what(), e))
}

/// Makes a new data folder.
pub fn init(data: &Path, given: &[String]) -> Result<ExitCode> {
    let settings = new_settings();
    settings.apply(&command_line(None, None, given)?, true)?;
    let disk = open_disk(data, true)?;
    make(data, &disk, &settings)?;
    say!("Made a new data folder in {}.", data.display());
    say!("Serve it with: ebb serve -D {}", data.display());
    Ok(ExitCode::SUCCESS)
}

fn make(data: &Path, disk: &Arc<dyn Disk>, settings: &Arc<ServerSettings>) -> Result<()> {
    base::log::set_min_level(base::log::Level::Fatal);
    let made = sql::init::init(Arc::clone(disk), settings);
    base::log::set_min_level(base::log::Level::Debug);
    made.map_err(|e| in_folder(data, e))?;
    let io = |e| Error::io(format!("could not write file \"{CONF}\""), e);
    let file = disk.open(CONF, disk::OpenMode::Create).map_err(io)?;
    file.write_at(NEW_CONF.as_bytes(), 0).map_err(io)?;
    file.sync_data().map_err(io)?;
    disk.sync_dir("").map_err(io)
}

fn in_folder(data: &Path, error: Error) -> Error {
    match error {
        Error::Sql(mut e) => {
            e.message = format!("data folder \"{}\": {}", data.display(), e.message);
            Error::Sql(e)
        }
        other => other,
    }
}

/// Serves until a signal says stop.
pub fn serve(
    data: &Path,
    port: Option<u16>,
    host: Option<String>,
    given: &[String],
) -> Result<ExitCode> {
    buffer::share_arenas(std::thread::available_parallelism().map_or(2, usize::from));
    let command_line = command_line(port, host, given)?;
    let settings = new_settings();
    // Everything that can be wrong is looked at before anything is touched.
    settings.apply(&command_line, true)?;
    let fresh = !data.exists() || is_empty(data);
    if !fresh {
        let disk = open_disk(data, false)?;
        if !Engine::exists(disk.as_ref()).map_err(|e| in_folder(data, e))? {
            base::bail!(
                OBJECT_IN_USE,
                "\"{}\" is not an Ebb data folder and not empty",
                data.display()
            );
        }
        settings.apply(&layers(data, &command_line)?, true)?;
    }
    let number = u16::try_from(settings.int("port")).unwrap_or(5432);
    let listener = Listener::bind(&settings.string("listen_addresses"), number)?;
    let tls = Tls::new(&settings, data)?;
    let disk = open_disk(data, true)?;
    if fresh {
        make(data, &disk, &settings)?;
    }
    let folder = std::fs::canonicalize(data).unwrap_or_else(|_| data.to_path_buf());
    settings.set_internal("data_directory", Value::Text(folder.display().to_string()));
    sql::server_log::set_up(&settings);
    let watch = Watch::start()?;
    base::log!("starting Ebb {} on {}", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    let options = EngineOptions::new(Arc::clone(&settings));
    let engine = Engine::open(Arc::clone(&disk), options).map_err(|e| in_folder(data, e))?;
    watch.recovered();
    let cluster = Cluster::new(Arc::clone(&engine), Arc::clone(&settings))?;
    cluster.maintenance.rates.watch_this_machine(&engine);
    {
        let (folder, settings) = (folder.clone(), Arc::clone(&settings));
        let (command_line, tls) = (command_line.clone(), Arc::clone(&tls));
        let engine = Arc::downgrade(&engine);
        cluster.on_reload(Box::new(move || {
            if let Some(engine) = engine.upgrade() {
                reload(&folder, &settings, &command_line, &tls, &engine);
            }
        }));
    }
    let server = Server::start(listener, Arc::clone(&cluster), Arc::clone(&tls))?;
    for address in server.addresses() {
        base::log!("listening on {}, port {}", address.ip(), address.port());
    }
    base::log!("database system is ready to accept connections");
    let mut autovacuum = sql::maintenance::autovacuum::start(&cluster)?;
    announce(&server, fresh, data);
    watch.wait_for_end(|| {
        cluster.reload();
    });
    autovacuum.stop();
    server.stop();
    cluster.maintenance.rates.keep();
    if let Err(e) = cluster.keep_counts(true) {
        base::log!("the counts of tables were not written down: {e}");
    }
    drop(cluster);
    engine.shutdown()?;
    Ok(ExitCode::SUCCESS)
}

fn is_empty(data: &Path) -> bool {
    std::fs::read_dir(data).is_ok_and(|mut entries| {
        !entries.any(|e| e.is_ok_and(|e| !e.file_name().to_string_lossy().starts_with('.')))
    })
}

fn announce(server: &Server, fresh: bool, data: &Path) {
    let Some(address) = server.addresses().first() else { return };
    if fresh {
        say!("Made a new data folder in {}.", data.display());
    }
    say!("Ebb is serving {} on {address}. Connect with:", data.display());
    say!("  psql -h {} -p {} -U postgres postgres", address.ip(), address.port());
}

/// Reads the configuration files again.
fn reload(
    folder: &Path,
    settings: &ServerSettings,
    command_line: &[Assignment],
    tls: &Tls,
    engine: &Engine,
) {
    base::log!("received SIGHUP, reloading configuration files");
    let reloaded = layers(folder, command_line).and_then(|l| settings.apply(&l, false));
    match reloaded {
        Ok(wrong) => {
            for error in &wrong {
                base::log::write_error(base::log::Level::Log, &error.to_sql_error());
            }
            if !wrong.is_empty() {
                base::log!(
                    "configuration file \"{CONF}\" contains errors; unaffected changes were applied"
                );
            }
            sql::server_log::set_up(settings);
            tls.reload(settings);
            engine.apply_settings();
        }
        Err(error) => {
            base::log!("configuration file contains errors; no changes were applied: {error}");
        }
    }
}

/// A thread that takes the signals, whatever the others are at.
///
/// # Invariants
/// SIGQUIT ends the process at once, and until it has recovered so do SIGINT and SIGTERM: recovery makes it good, and goes on where it was.
/// Nothing is waited for, since what holds the server up may be why it is told to go.
struct Watch {
    recovered: Arc<AtomicBool>,
    told: Receiver<Told>,
}

/// What the server is to do.
enum Told {
    Reload,
    End,
}

impl Watch {
    fn start() -> Result<Watch> {
        let mut signals = Signals::new([SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGXFSZ])
            .map_err(|e| Error::io("could not watch for signals", e))?;
        let recovered = Arc::new(AtomicBool::new(false));
        let (tell, told) = channel();
        let is_up = Arc::clone(&recovered);
        let watch = move || {
            for signal in signals.forever() {
                let what = match signal {
                    SIGHUP => Told::Reload,
                    // A file that may not grow further is an error of who lets it grow.
                    SIGXFSZ => continue,
                    SIGQUIT => end_at_once("immediate"),
                    _ if !is_up.load(Ordering::SeqCst) => end_at_once("fast"),
                    _ => Told::End,
                };
                // Once it is ending it listens no more.
                let _ = tell.send(what);
            }
        };
        base::sync::spawn("signals", watch)
            .map_err(|e| Error::io("could not start thread \"signals\"", e))?;
        Ok(Watch { recovered, told })
    }

    /// From now on there is something to end in order.
    fn recovered(&self) {
        self.recovered.store(true, Ordering::SeqCst);
    }

    /// Waits until the server is to end in order, and reloads the files whenever that is asked for.
    fn wait_for_end(self, reload: impl Fn()) {
        while let Ok(Told::Reload) = self.told.recv() {
            reload();
        }
        base::log!("received fast shutdown request");
    }
}

fn end_at_once(how: &str) -> ! {
    base::log!("received {how} shutdown request");
    std::process::exit(0)
}

/// Verifies a data folder; exit status 1 on damage.
pub fn check(data: &Path) -> Result<ExitCode> {
    let disk = open_disk(data, false)?;
    if !Engine::exists(disk.as_ref())? {
        base::bail!(OBJECT_IN_USE, "\"{}\" is not an Ebb data folder", data.display());
    }
    let settings = new_settings();
    let options = EngineOptions { background: false, ..EngineOptions::new(settings) };
    let engine = Engine::open(disk, options).map_err(|e| in_folder(data, e))?;
    let report = sql::check::check(&engine)?;
    engine.shutdown()?;
    for line in sql::check::lines(&report) {
        say!("{line}");
    }
    Ok(if report.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
