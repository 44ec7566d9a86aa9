//! Parts of a sweep that were made apart: what each says of itself, and how they are put together.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::parts::Contents;
use crate::sweep::Shard;

/// What a file of a part of a sweep says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardLabel {
    /// What sweep it is of.
    pub sweep: String,
    /// Which part.
    pub shard: Shard,
    /// What the file holds.
    pub contents: Contents,
}

/// Why parts cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A file cannot be read or written.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    /// There is nothing that says what the file is.
    #[error("{0} says nothing of which part it is: {1} is missing, or no label")]
    NoLabel(PathBuf, PathBuf),
    /// The file isn't what its label says.
    #[error("{0} is not as it was written: it is damaged, or was changed")]
    Damaged(PathBuf),
    /// Parts of several sweeps.
    #[error("{0} and {1} are parts of different sweeps")]
    Different(PathBuf, PathBuf),
    /// One part twice.
    #[error("{0} and {1} are the same part")]
    Twice(PathBuf, PathBuf),
    /// Parts that are not there.
    #[error("of {count} parts, {} missing", numbers(.missing))]
    Missing {
        /// How many there should be.
        count: u64,
        /// Those that are not there.
        missing: Vec<u64>,
    },
}

fn numbers(missing: &[u64]) -> String {
    let list: Vec<String> = missing.iter().map(u64::to_string).collect();
    format!("{} {}", list.join(", "), if missing.len() == 1 { "is" } else { "are" })
}

impl ShardLabel {
    /// Where the label of a file lies.
    pub fn path(file: &Path) -> PathBuf {
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(".shard.json");
        file.with_file_name(name)
    }

    /// The label as it is written.
    pub fn to_json(&self) -> String {
        let Self { sweep, shard, contents } = self;
        let checksum = format!("{:016x}", contents.checksum);
        let label = json!({ "sweep": sweep, "shard": shard.index, "of": shard.count, "bytes": contents.bytes, "fnv1a": checksum });
        format!("{label:#}\n")
    }

    fn read(file: &Path) -> Option<Self> {
        let json: Json = serde_json::from_str(&std::fs::read_to_string(Self::path(file)).ok()?).ok()?;
        let number = |key: &str| json.get(key)?.as_u64();
        let checksum = u64::from_str_radix(json.get("fnv1a")?.as_str()?, 16).ok()?;
        Some(Self {
            sweep: json.get("sweep")?.as_str()?.to_owned(),
            shard: Shard { index: number("shard")?, count: number("of")? },
            contents: Contents { bytes: number("bytes")?, checksum },
        })
    }
}

/// Puts parts of a sweep together into what it would have written in one; each is checked first.
///
/// # Errors
/// When one is damaged or missing, or they are not parts of one sweep.
pub fn merge(files: &[PathBuf], output: &Path) -> Result<u64, MergeError> {
    let mut parts: Vec<(ShardLabel, &PathBuf)> = Vec::new();
    for file in files {
        let label = ShardLabel::read(file).ok_or_else(|| MergeError::NoLabel(file.clone(), ShardLabel::path(file)))?;
        if contents(file).map_err(|error| MergeError::Io(file.clone(), error))? != label.contents {
            return Err(MergeError::Damaged(file.clone()));
        }
        for (other, path) in &parts {
            if other.sweep != label.sweep || other.shard.count != label.shard.count {
                return Err(MergeError::Different((*path).clone(), file.clone()));
            }
            if other.shard == label.shard {
                return Err(MergeError::Twice((*path).clone(), file.clone()));
            }
        }
        parts.push((label, file));
    }
    parts.sort_by_key(|(label, _)| label.shard.index);
    let count = parts.first().map_or(0, |(label, _)| label.shard.count);
    let there = |index: &u64| parts.iter().any(|(label, _)| label.shard.index == *index);
    let missing: Vec<u64> = (0..count).filter(|index| !there(index)).collect();
    if !missing.is_empty() {
        return Err(MergeError::Missing { count, missing });
    }
    let mut readers = Vec::new();
    for (_, file) in &parts {
        readers.push(Lines::open(file).map_err(|error| MergeError::Io((*file).clone(), error))?);
    }
    write(&mut readers, output).map_err(|error| MergeError::Io(output.to_owned(), error))
}

fn contents(file: &Path) -> io::Result<Contents> {
    let mut reader = BufReader::with_capacity(1 << 16, File::open(file)?);
    let mut contents = Contents::default();
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(contents);
        }
        contents.add(bytes);
        let count = bytes.len();
        reader.consume(count);
    }
}

/// Rows in the order of points; those of one point in the order of parts.
fn write(readers: &mut [Lines], output: &Path) -> io::Result<u64> {
    let temporary = output.with_extension(format!("{}.tmp", std::process::id()));
    let mut out = BufWriter::new(File::create(&temporary)?);
    if let Some(first) = readers.first() {
        out.write_all(&first.header)?;
    }
    let mut rows = 0;
    // Of equals, the first.
    while let Some(next) = readers.iter_mut().filter(|lines| lines.point.is_some()).min_by_key(|lines| lines.point) {
        out.write_all(&next.line)?;
        rows += 1;
        next.advance()?;
    }
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    std::fs::rename(&temporary, output)?;
    Ok(rows)
}

/// The rows of a file, one after the other.
struct Lines {
    reader: BufReader<File>,
    header: Vec<u8>,
    line: Vec<u8>,
    /// The point of the line at hand; none at the end.
    point: Option<u64>,
}

impl Lines {
    fn open(file: &Path) -> io::Result<Self> {
        let mut lines =
            Self { reader: BufReader::new(File::open(file)?), header: Vec::new(), line: Vec::new(), point: None };
        lines.read()?;
        lines.header = std::mem::take(&mut lines.line);
        lines.advance()?;
        Ok(lines)
    }

    fn advance(&mut self) -> io::Result<()> {
        self.read()?;
        let digits: Vec<u8> = self.line.iter().copied().take_while(u8::is_ascii_digit).collect();
        self.point = std::str::from_utf8(&digits).ok().and_then(|digits| digits.parse().ok());
        Ok(())
    }

    /// A line, with the line breaks that its quotes hold.
    fn read(&mut self) -> io::Result<()> {
        self.line.clear();
        loop {
            let count = self.reader.read_until(b'\n', &mut self.line)?;
            // Within quotes after an odd number of them.
            let open = self.line.iter().fold(false, |open, byte| open ^ (*byte == b'"'));
            if count == 0 || !open {
                return Ok(());
            }
        }
    }
}
