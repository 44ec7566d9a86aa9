//! A split of layers that is given, not found.

/// Layers of each chunk of a pipeline, in the model's order; without virtual stages, of each stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageLayers {
    /// A byte each, so that a layout stays small to copy.
    counts: [u8; Self::MOST_CHUNKS],
    chunks: u8,
}

impl StageLayers {
    /// Chunks that a list may have.
    pub const MOST_CHUNKS: usize = 128;

    /// The split with these counts; `None` where there are more than [`Self::MOST_CHUNKS`], or none.
    pub fn new(layers: &[u8]) -> Option<Self> {
        let mut counts = [0; Self::MOST_CHUNKS];
        counts.get_mut(..layers.len())?.copy_from_slice(layers);
        let chunks = u8::try_from(layers.len()).ok().filter(|chunks| *chunks > 0)?;
        Some(Self { counts, chunks })
    }

    /// How many chunks it splits layers into.
    pub const fn chunks(&self) -> u32 {
        self.chunks as u32
    }

    /// Layers of all chunks.
    pub fn total(&self) -> u32 {
        self.before(self.chunks())
    }

    /// Layers in the chunks before that one.
    pub fn before(&self, chunk: u32) -> u32 {
        self.of_chunks().iter().take(chunk as usize).map(|layers| u32::from(*layers)).sum()
    }

    /// Layers of each chunk.
    pub fn of_chunks(&self) -> &[u8] {
        self.counts.get(..usize::from(self.chunks)).unwrap_or_default()
    }
}

impl std::fmt::Display for StageLayers {
    /// As a scenario has it: "[1, 2, 2, 3]".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.of_chunks())
    }
}
