//! Diagnostics as text with carets.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::{Diagnostic, FileId, Sources};

/// All diagnostics as text, a blank line between two; with colour where asked for.
pub fn render(diagnostics: &[Diagnostic], sources: &Sources, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let rendered: Vec<String> =
        diagnostics.iter().map(|diagnostic| render_one(diagnostic, sources, &renderer)).collect();
    rendered.join("\n\n") + "\n"
}

fn render_one(diagnostic: &Diagnostic, sources: &Sources, renderer: &Renderer) -> String {
    let title = Level::ERROR.primary_title(diagnostic.message.as_str()).id(diagnostic.code.id());
    let mut files: Vec<FileId> = Vec::new();
    for (span, _) in &diagnostic.labels {
        if !files.contains(&span.file) {
            files.push(span.file);
        }
    }
    let snippets: Vec<Snippet<'_, _>> = files
        .into_iter()
        .map(|file| {
            let labels = diagnostic.labels.iter().enumerate().filter(|(_, (span, _))| span.file == file);
            let annotations = labels.map(|(index, (span, label))| {
                let kind = if index == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
                let annotation = kind.span(span.range.clone());
                if label.is_empty() { annotation } else { annotation.label(label.as_str()) }
            });
            Snippet::source(sources.text(file)).path(sources.name(file)).annotations(annotations)
        })
        .collect();
    let mut report = vec![if snippets.is_empty() { Group::with_title(title) } else { title.elements(snippets) }];
    if let Some(hint) = &diagnostic.hint {
        report.push(Group::with_title(Level::HELP.secondary_title(hint.as_str())));
    }
    renderer.render(&report)
}
