//! A user's mistakes: collected, with the place in the file and a hint, and rendered all at once.

mod render;
mod suggest;

use std::cell::RefCell;
use std::ops::Range;

pub use render::render;
pub use suggest::{did_you_mean, did_you_mean_one_of};

/// A file in [`Sources`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId(usize);

/// A place in a file, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// The bytes.
    pub range: Range<usize>,
}

/// The texts that were read, kept for the carets of diagnostics.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<(String, String)>,
}

impl Sources {
    /// Keeps a text under the name that diagnostics will print.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        self.files.push((name.into(), text.into()));
        FileId(self.files.len() - 1)
    }

    /// The file's name.
    pub fn name(&self, file: FileId) -> &str {
        self.files.get(file.0).map_or("", |(name, _)| name)
    }

    /// The file's text.
    pub fn text(&self, file: FileId) -> &str {
        self.files.get(file.0).map_or("", |(_, text)| text)
    }
}

/// The kinds of mistake, each with a code that stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The text is not TOML.
    Syntax,
    /// A key that the table does not have.
    UnknownKey,
    /// A key that must be there is not.
    MissingKey,
    /// A value of the wrong kind.
    WrongType,
    /// A text that is no quantity of the kind asked for.
    WrongUnit,
    /// A number outside its range.
    OutOfRange,
    /// A word outside a closed set.
    UnknownWord,
    /// An id that the catalog does not have.
    UnknownId,
    /// Two entries of one id, or one key twice.
    Duplicate,
    /// A catalog field without exactly one source.
    Unsourced,
    /// Fields that contradict each other.
    Inconsistent,
    /// A file that could not be read.
    Unreadable,
    /// A price or constant that the catalog lacks for this combination.
    NotInCatalog,
    /// Something that is there and that the model of it does not cover.
    Unsupported,
}

impl Code {
    /// Whether a mistake is one of a value by itself, and not of what it stands beside.
    pub const fn is_of_value(self) -> bool {
        !matches!(self, Self::Inconsistent | Self::NotInCatalog | Self::Unsupported | Self::MissingKey)
    }

    /// The stable code, as printed.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::UnknownKey => "unknown-key",
            Self::MissingKey => "missing-key",
            Self::WrongType => "wrong-type",
            Self::WrongUnit => "wrong-unit",
            Self::OutOfRange => "out-of-range",
            Self::UnknownWord => "unknown-word",
            Self::UnknownId => "unknown-id",
            Self::Duplicate => "duplicate",
            Self::Unsourced => "unsourced",
            Self::Inconsistent => "inconsistent",
            Self::Unreadable => "unreadable",
            Self::NotInCatalog => "not-in-catalog",
            Self::Unsupported => "unsupported",
        }
    }
}

/// One mistake.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// Its kind.
    pub code: Code,
    /// What is wrong.
    pub message: String,
    /// Where, and what is to be seen there; the first is the primary place.
    pub labels: Vec<(Span, String)>,
    /// What to do.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// A mistake without a place yet.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), labels: Vec::new(), hint: None }
    }

    /// A key that must be there and is not.
    pub fn missing(path: &str) -> Self {
        Self::new(Code::MissingKey, format!("`{path}` is missing"))
    }

    /// Adds a place.
    #[must_use]
    pub fn at(mut self, span: &Span, label: impl Into<String>) -> Self {
        self.labels.push((span.clone(), label.into()));
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Collects mistakes, so that one run reports all of a file's.
#[derive(Debug, Default)]
pub struct Sink(RefCell<Vec<Diagnostic>>);

impl Sink {
    /// Adds a mistake.
    pub fn push(&self, diagnostic: Diagnostic) {
        self.0.borrow_mut().push(diagnostic);
    }

    /// Puts another mistake into the place of one; places are counted in the order of adding.
    pub fn replace(&self, place: usize, diagnostic: Diagnostic) {
        if let Some(old) = self.0.borrow_mut().get_mut(place) {
            *old = diagnostic;
        }
    }

    /// Says what to do about the key of that path, where it was reported as missing.
    pub fn hint_at_missing(&self, path: &str, hint: &str) {
        let message = Diagnostic::missing(path).message;
        let mut all = self.0.borrow_mut();
        for diagnostic in all.iter_mut().filter(|one| one.code == Code::MissingKey && one.message == message) {
            diagnostic.hint = Some(hint.to_owned());
        }
    }

    /// Puts an example of a key's own into the mistakes since there were `before`, in place of its unit's.
    pub fn reword(&self, before: usize, example: &str, own: &str) {
        let (example, own) = (format!("\"{example}\""), format!("\"{own}\""));
        for diagnostic in self.0.borrow_mut().iter_mut().skip(before) {
            diagnostic.message = diagnostic.message.replace(&example, &own);
            diagnostic.hint = diagnostic.hint.as_ref().map(|hint| hint.replace(&example, &own));
        }
    }

    /// Adds those of another sink that are not here yet.
    pub fn merge(&self, other: Self) {
        let mut all = self.0.borrow_mut();
        for diagnostic in other.0.into_inner() {
            if !all.contains(&diagnostic) {
                all.push(diagnostic);
            }
        }
    }

    /// Whether a mistake at that place is known already.
    pub fn tells_of(&self, at: &Span) -> bool {
        self.0.borrow().iter().any(|known| known.labels.iter().any(|(place, _)| place == at && *at != Span::default()))
    }

    /// Whether there is none yet.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// The mistakes, in the order of their places.
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        let mut all = self.0.into_inner();
        all.sort_by_key(|d| d.labels.first().map(|(span, _)| (span.file, span.range.start)));
        all
    }
}
