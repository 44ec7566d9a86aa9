//! Diagnostics as text with carets.

use std::borrow::Cow;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::{Diagnostic, FileId, Sources, Span};

/// More mistakes of one file than this are counted, not shown.
const MOST_SHOWN: usize = 30;
/// Longer texts are cut, so that a file pasted into a key does not fill the terminal.
const LONGEST: usize = 2_000;
/// Lines longer than this are not shown; a file of one such line is no scenario.
const LONGEST_LINE: usize = 5_000;

/// All diagnostics as text, a blank line between two; with colour where asked for. Of one file so many are shown, and the
/// others counted.
pub fn render(diagnostics: &[Diagnostic], sources: &Sources, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut rendered: Vec<String> = Vec::new();
    let mut counts: Vec<(Option<FileId>, usize)> = Vec::new();
    for diagnostic in diagnostics {
        let file = diagnostic.labels.first().map(|(span, _)| span.file);
        let place = counts.iter().position(|(of, _)| *of == file).unwrap_or(counts.len());
        if place == counts.len() {
            counts.push((file, 0));
        }
        counts[place].1 += 1;
        if counts[place].1 <= MOST_SHOWN {
            rendered.push(render_one(diagnostic, sources, &renderer));
        }
    }
    for (file, count) in counts.into_iter().filter(|(_, count)| *count > MOST_SHOWN) {
        let place = file.map(|file| format!(" in {}", sources.name(file))).unwrap_or_default();
        rendered.push(format!("and {} more{place}", count - MOST_SHOWN));
    }
    rendered.join("\n\n") + "\n"
}

/// A text that fits a terminal.
fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => Cow::Owned(format!("{} ...", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Whether the lines around a place are short enough to be shown.
fn is_short(text: &str, span: &Span) -> bool {
    let (start, end) = (span.range.start.min(text.len()), span.range.end.min(text.len()));
    let bytes = text.as_bytes();
    let before = bytes[..start].iter().rev().take_while(|byte| **byte != b'\n').count();
    let after = bytes[end..].iter().take_while(|byte| **byte != b'\n').count();
    before + (end - start) + after <= LONGEST_LINE
}

/// The whole characters that a place is of, within the text: parsers count bytes, and may stop in the midst of one.
fn whole(text: &str, range: &Range<usize>) -> Range<usize> {
    let (start, end) = (range.start.min(text.len()), range.end.min(text.len()));
    let begins = |at: &usize| text.is_char_boundary(*at);
    let start = (0..=start).rev().find(begins).unwrap_or(0);
    start..(end.max(start)..=text.len()).find(begins).unwrap_or(text.len())
}

fn render_one(diagnostic: &Diagnostic, sources: &Sources, renderer: &Renderer) -> String {
    let (mut message, hint) = (cut(&diagnostic.message), diagnostic.hint.as_deref().map(cut));
    if let Some((span, _)) = diagnostic.labels.first()
        && diagnostic.labels.iter().all(|(span, _)| !is_short(sources.text(span.file), span))
    {
        // The line is too long to be shown, so its place stands in the sentence.
        let text = sources.text(span.file);
        let line = 1 + text[..whole(text, &span.range).start].matches('\n').count();
        message = Cow::Owned(format!("{message}, at {}:{line}", sources.name(span.file)));
    }
    let title = Level::ERROR.primary_title(&*message).id(diagnostic.code.id());
    let mut files: Vec<FileId> = Vec::new();
    for (span, _) in diagnostic.labels.iter().filter(|(span, _)| is_short(sources.text(span.file), span)) {
        if !files.contains(&span.file) {
            files.push(span.file);
        }
    }
    let snippets: Vec<Snippet<'_, _>> = files
        .into_iter()
        .map(|file| {
            let text = sources.text(file);
            let here = |span: &Span| span.file == file && is_short(text, span);
            let labels = diagnostic.labels.iter().enumerate().filter(|(_, (span, _))| here(span));
            let annotations = labels.map(|(index, (span, label))| {
                let kind = if index == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
                let annotation = kind.span(whole(text, &span.range));
                if label.is_empty() { annotation } else { annotation.label(label.as_str()) }
            });
            Snippet::source(text).path(sources.name(file)).annotations(annotations)
        })
        .collect();
    let mut report = vec![if snippets.is_empty() { Group::with_title(title) } else { title.elements(snippets) }];
    if let Some(hint) = &hint {
        report.push(Group::with_title(Level::HELP.secondary_title(&**hint)));
    }
    renderer.render(&report)
}

#[cfg(test)]
mod tests {
    use super::super::Code;
    use super::*;

    #[test]
    fn many_mistakes_are_counted_and_long_texts_cut() {
        let mut sources = Sources::default();
        let file = sources.add("long.toml", format!("{} = 1\n", "k".repeat(1_000_000)));
        let span = Span { file, range: 0..1_000_000 };
        let one =
            Diagnostic::new(Code::UnknownKey, "k".repeat(1_000_000)).at(&span, "here").hint("k".repeat(1_000_000));
        let text = render(&vec![one; 1_000], &sources, false);
        assert!(text.ends_with("\n\nand 970 more in long.toml\n"));
        assert_eq!(text.matches("error[unknown-key]").count(), MOST_SHOWN);
        assert!(text.len() < 3 * MOST_SHOWN * LONGEST, "{}", text.len());
    }

    #[test]
    fn places_within_a_character_are_of_all_of_it() {
        let mut sources = Sources::default();
        let text = "\u{feff}\u{fc}\u{4e2d} = 1\n";
        let file = sources.add("marks.toml", text);
        for start in 0..text.len() + 2 {
            for end in start..text.len() + 2 {
                let one = Diagnostic::new(Code::Syntax, "wrong").at(&Span { file, range: start..end }, "here");
                let rendered = render(&[one], &sources, false);
                assert!(rendered.contains("marks.toml:") && rendered.contains("here"), "{start}..{end}: {rendered}");
            }
        }
    }
}
