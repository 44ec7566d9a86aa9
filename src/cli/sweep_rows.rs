//! All rows of a sweep, written as they come: to stdout or a pipe as one stream, to a file in parts.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::ops::ControlFlow;
use std::path::Path;

use super::progress::Progress;
use super::session::complain;
use super::{Answer, Session};
use crate::catalog::Catalog;
use crate::diagnostics::{Code, Diagnostic};
use crate::load::{self, Contents, Parts, PartsError, ShardLabel};
use crate::report::SweepLines;
use crate::sweep::{Cursor, Shard, Sweep};

/// What is to be written.
pub(super) struct Rows<'a> {
    pub(super) sweep: &'a Sweep<'a>,
    /// Rows in all.
    pub(super) size: u64,
    /// The part of them that is wanted.
    pub(super) shard: Option<Shard>,
    /// Bytes of a part of the file.
    pub(super) part_bytes: usize,
}

/// Writes all rows, as JSON or CSV; one whose reader has gone away is at its end.
pub(super) fn write_rows(rows: &Rows<'_>, catalog: &Catalog, json: bool, session: &Session) -> Answer {
    session.spares_inputs();
    if !session.sink.is_empty() {
        return Answer::Mistaken;
    }
    let lines = if json { SweepLines::Json(rows.sweep) } else { SweepLines::csv(rows.sweep) };
    let header = lines.header(session.options.bom);
    let written = match &session.options.output {
        None => stream(rows, &lines, &header, &mut io::stdout().lock())
            .map_err(|error| format!("cannot write rows: {error}")),
        Some(path) if path.exists() && !path.is_file() => OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut file| stream(rows, &lines, &header, &mut file))
            .map_err(|error| format!("cannot write {}: {error}", path.display())),
        Some(path) => in_parts(rows, &lines, &header, path, catalog).map_err(|error| error.to_string()),
    };
    match written {
        Ok(()) => Answer::Written,
        Err(message) => {
            let hint = "name another file with -o, or remove the directory of parts";
            session.sink.push(Diagnostic::new(Code::Unreadable, message).hint(hint));
            Answer::Mistaken
        }
    }
}

fn stream(rows: &Rows<'_>, lines: &SweepLines<'_>, header: &[u8], out: &mut impl Write) -> io::Result<()> {
    let mut written = out.write_all(header);
    if written.is_ok() {
        let mut between = "";
        each(rows, lines, Cursor::default(), |_, bytes| {
            if !bytes.is_empty() {
                written = out.write_all(between.as_bytes()).and_then(|()| out.write_all(&bytes));
                between = lines.between();
            }
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
    }
    match written.and_then(|()| out.write_all(lines.footer().as_bytes())).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

fn in_parts(
    rows: &Rows<'_>,
    lines: &SweepLines<'_>,
    header: &[u8],
    path: &Path,
    catalog: &Catalog,
) -> Result<(), PartsError> {
    let identity = identity(rows, header, catalog);
    let mut parts = Parts::open(path, &identity)?;
    if parts.count() > 0 {
        complain(&format!("going on from {} parts of an earlier run\n", parts.count()));
    }
    let begin = parts.next();
    let (mut held, mut reached) = (Vec::new(), begin);
    let mut written = Ok(());
    let mut first = parts.count() == 0;
    each(rows, lines, begin, |next, bytes| {
        if !bytes.is_empty() {
            held.extend_from_slice(if first { "" } else { lines.between() }.as_bytes());
            held.extend(bytes);
            first = false;
        }
        reached = next;
        if !held.is_empty() && held.len() >= rows.part_bytes {
            written = parts.add(next, &held);
            held.clear();
        }
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    written?;
    if !held.is_empty() {
        parts.add(reached, &held)?;
    }
    let contents = parts.join(header, lines.footer().as_bytes())?;
    if let Some(shard) = rows.shard {
        let label = ShardLabel {
            sweep: format!("{:016x}", Contents::of(&identity_of_all(rows, header, catalog)).checksum),
            shard,
            contents,
        };
        let place = ShardLabel::path(path);
        load::write(&place, label.to_json().as_bytes()).map_err(|error| PartsError::Io(place.clone(), error))?;
    }
    Ok(())
}

/// What the rows of all parts depend on.
fn identity_of_all(rows: &Rows<'_>, header: &[u8], catalog: &Catalog) -> String {
    let mut known = Contents::default();
    for record in catalog.records() {
        known.add(record.document.to_string().as_bytes());
    }
    let (version, header) = (env!("CARGO_PKG_VERSION"), String::from_utf8_lossy(header));
    format!("clusterplan {version}\ncatalog {:016x}\n{header}{}", known.checksum, rows.sweep.identity())
}

/// What a file's rows depend on.
fn identity(rows: &Rows<'_>, header: &[u8], catalog: &Catalog) -> String {
    let Shard { index, count } = rows.shard.unwrap_or(Shard::WHOLE);
    format!("{}part {index} of {count}\n", identity_of_all(rows, header, catalog))
}

/// The bytes of rows in order, each with the place after them.
fn each(
    rows: &Rows<'_>,
    lines: &SweepLines<'_>,
    begin: Cursor,
    mut take: impl FnMut(Cursor, Vec<u8>) -> ControlFlow<()>,
) {
    let shard = rows.shard.unwrap_or(Shard::WHOLE);
    let progress = Progress::new(rows.sweep, shard, begin, rows.size);
    rows.sweep.run(
        shard,
        begin,
        || (0, lines.rows()),
        |(count, part), row| {
            *count += 1;
            lines.row(part, row);
        },
        |next, (count, part)| {
            progress.advance(next, count);
            take(next, part.finish())
        },
    );
    progress.end();
}
