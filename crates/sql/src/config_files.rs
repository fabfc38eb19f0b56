//! `postgresql.conf`, what it includes, and ALTER SYSTEM's file.
//!
//! # Layout
//! [`read`] gives the assignments of all files in rising priority. `include`, `include_if_exists` and `include_dir` are read where they stand;
//! names that do not begin with a slash are looked for beside the file that has them.
//!
//! # Crash cases
//! Files are only read here; ALTER SYSTEM's is written as a whole (`session/alter_system.rs`).

use crate::session::AUTO_CONF;
use base::settings::{Assignment, parse_file};
use base::{Error, Result, bail};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The file that is people's.
pub const CONF: &str = "postgresql.conf";
/// So deep files include files.
const DEEPEST: usize = 10;

/// The assignments of the files in the data folder `folder`, in rising priority.
///
/// # Errors
/// `F0000` for what is no assignment, or a file that is to be there and is not; I/O.
pub fn read(folder: &Path) -> Result<Vec<Assignment>> {
    let mut all = Vec::new();
    for name in [CONF, AUTO_CONF] {
        // Neither need be there. Their places are told without the data folder's.
        if let Some(text) = text_of(&folder.join(name))? {
            add(folder, name, &text, 0, &mut all)?;
        }
    }
    Ok(all)
}

fn text_of(path: &Path) -> Result<Option<String>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => {
            let what = format!("could not open configuration file \"{}\"", path.display());
            Err(Error::io(what, e))
        }
    }
}

/// The assignments of the file `name` of `folder`, whose text is `text`.
fn add(
    folder: &Path,
    name: &str,
    text: &str,
    depth: usize,
    all: &mut Vec<Assignment>,
) -> Result<()> {
    for a in parse_file(name, text)? {
        let of_dir = a.name.eq_ignore_ascii_case("include_dir");
        let may_lack = a.name.eq_ignore_ascii_case("include_if_exists");
        if !of_dir && !may_lack && !a.name.eq_ignore_ascii_case("include") {
            all.push(a);
            continue;
        }
        if depth >= DEEPEST {
            bail!(
                CONFIG_FILE_ERROR,
                "could not open configuration file \"{}\": maximum nesting depth exceeded",
                a.value
            );
        }
        let beside = Path::new(name).parent().unwrap_or(Path::new(""));
        let named = beside.join(&a.value);
        let files = if of_dir { files_of(folder, &named)? } else { vec![named] };
        for file in files {
            match text_of(&folder.join(&file))? {
                Some(text) => add(folder, &file.to_string_lossy(), &text, depth + 1, all)?,
                None if may_lack => {}
                None => bail!(
                    CONFIG_FILE_ERROR,
                    "could not open configuration file \"{}\": No such file or directory",
                    file.display()
                ),
            }
        }
    }
    Ok(())
}

/// The `*.conf` of a folder that are not hidden, in the order of their names.
fn files_of(folder: &Path, named: &Path) -> Result<Vec<PathBuf>> {
    let what = |e| {
        let what = format!("could not open configuration directory \"{}\"", named.display());
        Error::io(what, e)
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder.join(named)).map_err(what)? {
        let entry = entry.map_err(what)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".conf") && !name.starts_with('.') && !entry.path().is_dir() {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names.into_iter().map(|name| named.join(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn files_include_files() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let seen = || -> Result<Vec<String>, String> {
            let all = read(folder.path()).map_err(|e| e.to_string())?;
            let told = |a: &base::settings::Assignment| {
                let (file, line) = a.location.clone().unwrap();
                format!("{}={} {file}:{line}", a.name, a.value)
            };
            Ok(all.iter().map(told).collect())
        };
        assert_eq!(seen().unwrap(), Vec::<String>::new());
        std::fs::create_dir_all(folder.path().join("conf.d/below.conf")).unwrap();
        write("postgresql.conf", "a.a=1\ninclude 'conf.d/x.conf'\na.b=2\ninclude_dir = 'conf.d'\n");
        write("conf.d/x.conf", "a.c=3\nInclude_If_Exists 'none.conf'\ninclude_if_exists 'y'");
        write("conf.d/y", "a.d=4");
        write("conf.d/.hidden.conf", "a.e=5");
        write("conf.d/a.conf", "a.f=6");
        write("postgresql.auto.conf", "a.g = '7'");
        let x = ["a.c=3 conf.d/x.conf:1", "a.d=4 conf.d/y:1"];
        let mut wanted = vec!["a.a=1 postgresql.conf:1", x[0], x[1], "a.b=2 postgresql.conf:3"];
        wanted.extend(["a.f=6 conf.d/a.conf:1", x[0], x[1], "a.g=7 postgresql.auto.conf:1"]);
        assert_eq!(seen().unwrap(), wanted);
        write("conf.d/a.conf", "include 'nowhere'");
        assert!(seen().unwrap_err().contains("conf.d/nowhere\": No such file"));
        write("conf.d/a.conf", "include 'a.conf'");
        assert!(seen().unwrap_err().contains("nesting depth"));
    }
}
