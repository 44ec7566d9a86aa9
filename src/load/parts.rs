//! A long result, written in parts that are joined at its end: what was interrupted goes on where its last part ends.
//!
//! Parts lie in a directory beside the file that they become. Each is written under a temporary name and renamed, so that
//! a part that is there is whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::sweep::Cursor;

/// Where the text lies that says what the parts are of.
const IDENTITY: &str = "identity";

/// Parts of a file.
#[derive(Debug)]
pub struct Parts {
    target: PathBuf,
    directory: PathBuf,
    /// Those that follow each other from the beginning on.
    files: Vec<PathBuf>,
    next: Cursor,
}

/// Why parts cannot be gone on with.
#[derive(Debug, thiserror::Error)]
pub enum PartsError {
    /// They are of something else.
    #[error("{0} holds parts of another sweep, or of another version of the program or the catalog")]
    Another(PathBuf),
    /// A file cannot be read or written.
    #[error("cannot write {0}: {1}")]
    Io(PathBuf, io::Error),
}

impl Parts {
    /// The parts of a file, those that are there of an earlier run among them. `identity` says what they are of.
    ///
    /// # Errors
    /// When there are parts of something else, or the directory cannot be used.
    pub fn open(target: &Path, identity: &str) -> Result<Self, PartsError> {
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(".parts");
        let directory = target.with_file_name(name);
        let failed = |error| PartsError::Io(directory.clone(), error);
        let file = directory.join(IDENTITY);
        match fs::read_to_string(&file) {
            Ok(known) if known == identity => {}
            Ok(_) => return Err(PartsError::Another(directory)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(&directory).map_err(failed)?;
                super::write(&file, identity.as_bytes()).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(&directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            found.extend(span(&path).map(|(from, to)| (from, to, path)));
        }
        found.sort_by_key(|(from, ..)| *from);
        let mut parts = Self { target: target.to_owned(), directory, files: Vec::new(), next: Cursor::default() };
        for (from, to, path) in found {
            if from == parts.next {
                parts.files.push(path);
                parts.next = to;
            }
        }
        Ok(parts)
    }

    /// Where the next part begins.
    pub const fn next(&self) -> Cursor {
        self.next
    }

    /// How many parts there are.
    pub const fn count(&self) -> usize {
        self.files.len()
    }

    /// Writes the next part, which ends at a place.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, to: Cursor, bytes: &[u8]) -> Result<(), PartsError> {
        let from = self.next;
        let name = format!("{}.{}-{}.{}.csv", from.point, from.row, to.point, to.row);
        let path = self.directory.join(name);
        super::write(&path, bytes).map_err(|error| PartsError::Io(path.clone(), error))?;
        self.files.push(path);
        self.next = to;
        Ok(())
    }

    /// Joins the parts between a header and a footer into the file, and removes them. Returns what the file holds.
    ///
    /// # Errors
    /// When the file cannot be written; the parts are then still there.
    pub fn join(self, header: &[u8], footer: &[u8]) -> Result<Contents, PartsError> {
        let failed = |error| PartsError::Io(self.target.clone(), error);
        let whole = self.directory.join("whole");
        let mut contents = Contents::default();
        let mut joined = || -> io::Result<()> {
            let file = OpenOptions::new().write(true).create(true).truncate(true).open(&whole)?;
            let mut out = BufWriter::new(file);
            contents.add(header);
            out.write_all(header)?;
            let mut buffer = vec![0; 1 << 16];
            for path in &self.files {
                let mut part = BufReader::new(File::open(path)?);
                loop {
                    let count = part.read(&mut buffer)?;
                    if count == 0 {
                        break;
                    }
                    contents.add(&buffer[..count]);
                    out.write_all(&buffer[..count])?;
                }
            }
            contents.add(footer);
            out.write_all(footer)?;
            out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
            fs::rename(&whole, &self.target)
        };
        joined().map_err(failed)?;
        // The file is whole; parts that stay behind would only be joined once more.
        let _ = fs::remove_dir_all(&self.directory);
        Ok(contents)
    }
}

/// How much a file holds, and a checksum of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Its bytes.
    pub bytes: u64,
    /// FNV-1a of them, 64 bits (<http://www.isthe.com/chongo/tech/comp/fnv>).
    pub checksum: u64,
}

impl Default for Contents {
    fn default() -> Self {
        Self { bytes: 0, checksum: 0xcbf2_9ce4_8422_2325 }
    }
}

impl Contents {
    /// Takes bytes in.
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        for byte in bytes {
            self.checksum = (self.checksum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Of a text.
    pub fn of(text: &str) -> Self {
        let mut contents = Self::default();
        contents.add(text.as_bytes());
        contents
    }
}

/// Where a part begins and ends, by its name.
fn span(path: &Path) -> Option<(Cursor, Cursor)> {
    let (from, to) = path.file_name()?.to_str()?.strip_suffix(".csv")?.split_once('-')?;
    let cursor = |text: &str| {
        let (point, row) = text.split_once('.')?;
        Some(Cursor { point: point.parse().ok()?, row: row.parse().ok()? })
    };
    Some((cursor(from)?, cursor(to)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(point: u64, row: u64) -> Cursor {
        Cursor { point, row }
    }

    #[test]
    fn parts_go_on_where_the_last_whole_one_ends() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("rows.csv");
        let mut parts = Parts::open(&target, "a sweep").unwrap();
        parts.add(at(3, 0), b"one\r\n").unwrap();
        parts.add(at(3, 8), b"two\r\n").unwrap();
        // A part that was being written, and one that follows nothing.
        fs::write(parts.directory.join(".9.0-9.8.csv.1.tmp"), b"half").unwrap();
        fs::write(parts.directory.join("9.0-9.8.csv"), b"stray").unwrap();
        assert!(matches!(Parts::open(&target, "another"), Err(PartsError::Another(_))));
        let mut parts = Parts::open(&target, "a sweep").unwrap();
        assert_eq!((parts.next(), parts.count()), (at(3, 8), 2));
        parts.add(at(4, 0), b"three\r\n").unwrap();
        let contents = parts.join(b"head\r\n", b"foot\r\n").unwrap();
        let whole = fs::read_to_string(&target).unwrap();
        assert_eq!(whole, "head\r\none\r\ntwo\r\nthree\r\nfoot\r\n");
        assert_eq!(contents, Contents::of(&whole));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_checksum_is_that_of_its_definition() {
        // Test vector of FNV-1a, 64 bits.
        assert_eq!(Contents::of("foobar").checksum, 0x8594_4171_f739_67e8);
    }
}
