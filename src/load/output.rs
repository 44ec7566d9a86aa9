//! Writing a result.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a file whole or not at all: to a temporary name in the same directory, then renamed.
///
/// What is there and is no ordinary file (a pipe, a device) is written to as it is. A link's target is replaced, and
/// keeps its permissions.
///
/// # Errors
/// When the directory or the file cannot be written; then a file that was there is as it was.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let existing = fs::metadata(path).ok();
    if existing.as_ref().is_some_and(|there| !there.is_file()) {
        return fs::write(path, bytes);
    }
    let target = if existing.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
    let temporary = temporary(&target)?;
    let written = OpenOptions::new().write(true).create_new(true).open(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        if let Some(there) = &existing {
            file.set_permissions(there.permissions())?;
        }
        file.sync_all()
    });
    let renamed = written.and_then(|()| fs::rename(&temporary, &target));
    if renamed.is_err() {
        // The first error is the one to report, whether or not this succeeds.
        let _ = fs::remove_file(&temporary);
    }
    renamed
}

/// A name beside the target that nothing else uses.
fn temporary(target: &Path) -> io::Result<PathBuf> {
    let name = target.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no file name"))?;
    Ok(target.with_file_name(format!(".{}.{}.tmp", name.display(), std::process::id())))
}

/// Writes a new directory of files, all of them or none: under another name beside it, then renamed.
///
/// # Errors
/// When something is there already, or a file cannot be written; then nothing is left behind.
pub fn write_directory(directory: &Path, files: &[(PathBuf, Vec<u8>)]) -> io::Result<()> {
    if directory.exists() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is there already, and is left as it is"));
    }
    let mut name = directory.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let partial = directory.with_file_name(name);
    let written = files.iter().try_for_each(|(path, bytes)| {
        let path = partial.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, bytes)
    });
    written.and_then(|()| fs::rename(&partial, directory)).inspect_err(|_| {
        // What is half there is of no use; that it cannot be removed either is not worth another error.
        let _ = fs::remove_dir_all(&partial);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_else_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.csv");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        assert!(write(&dir.path().join("missing/out.csv"), b"one").is_err());
        assert!(write(dir.path(), b"one").is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
