//! The way of the data: from what was gathered to the tokens that training reads, and whether it keeps up.

use crate::document::choices;
use crate::units::{Bandwidth, Bytes, Seconds, Tokens};

choices! {
    /// What loaders read.
    pub enum Stored {
        /// Numbers of tokens, prepared beforehand.
        Tokens = "tokens",
        /// Text, which loaders tokenise while training waits for it.
        Text = "text",
    }
}

/// The way of the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataPipeline {
    /// What was gathered.
    pub raw: Option<Bytes>,
    /// What filters and deduplication leave of it.
    pub cleaned: Option<Bytes>,
    /// What loaders read.
    pub stored: Stored,
    /// A token as it is stored.
    pub token_size: Bytes,
    /// Text of a token, or pictures and sound of one.
    pub text_per_token: Bytes,
    /// What one CPU core cleans.
    pub clean_rate: Bandwidth,
    /// What one CPU core tokenises, or decodes.
    pub tokenise_rate: Bandwidth,
    /// CPU cores that prepare the data.
    pub cores: u32,
    /// CPU cores that load data for each accelerator.
    pub loader_cores: u32,
    /// Steps that loaders are ahead.
    pub prefetch: u32,
}

impl DataPipeline {
    /// What loaders read of a number of tokens.
    pub fn read(&self, tokens: Tokens) -> Bytes {
        let per_token = match self.stored {
            Stored::Tokens => self.token_size,
            Stored::Text => self.text_per_token,
        };
        per_token * (tokens / Tokens::new(1.0))
    }

    /// Tokens of the cleaned data.
    pub fn tokens(&self) -> Option<Tokens> {
        self.cleaned.map(|cleaned| Tokens::new(cleaned / self.text_per_token))
    }

    /// The tokenised data.
    pub fn tokenised(&self) -> Option<Bytes> {
        self.cleaned.map(|cleaned| self.token_size * (cleaned / self.text_per_token))
    }

    /// Time of one core to clean the raw data and, where tokens are stored, to tokenise what is left.
    pub fn preparation(&self) -> Option<Seconds> {
        let cleaning = self.raw? / self.clean_rate;
        let tokenising = match self.stored {
            Stored::Tokens => self.cleaned? / self.tokenise_rate,
            Stored::Text => Seconds::ZERO,
        };
        Some(cleaning + tokenising)
    }

    /// CPU cores that tokenising takes while so many tokens pass in a time.
    pub fn busy_cores(&self, tokens: Tokens, time: Seconds) -> f64 {
        match self.stored {
            Stored::Tokens => 0.0,
            Stored::Text => self.read(tokens) / self.tokenise_rate / time,
        }
    }

    /// The time in which storage that gives `storage` and the loader cores of so many accelerators supply a step's tokens.
    pub fn supply(&self, tokens: Tokens, storage: Bandwidth, accelerators: u32) -> Seconds {
        let bytes = self.read(tokens);
        let reading = bytes / storage;
        match self.stored {
            Stored::Tokens => reading,
            Stored::Text => {
                let cores = f64::from(self.loader_cores) * f64::from(accelerators);
                reading.max(bytes / (self.tokenise_rate * cores))
            }
        }
    }

    /// What a step of that length waits for its data: loaders that are ahead hide theirs behind it, and only what takes
    /// longer shows, however far ahead they were at first; others are waited for.
    pub fn wait(&self, supply: Seconds, step: Seconds) -> Seconds {
        if self.prefetch == 0 { supply } else { supply.saturating_sub(step) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipeline() -> DataPipeline {
        DataPipeline {
            raw: Some(Bytes::new(1e15)),
            cleaned: Some(Bytes::new(160e12)),
            stored: Stored::Tokens,
            token_size: Bytes::new(4.0),
            text_per_token: Bytes::new(4.0),
            clean_rate: Bandwidth::new(1e5),
            tokenise_rate: Bandwidth::new(2e6),
            cores: 10_000,
            loader_cores: 4,
            prefetch: 2,
        }
    }

    #[test]
    fn a_petabyte_becomes_forty_trillion_tokens() {
        // 160 TB / 4 B; 1e15 / 1e5 s + 160e12 / 2e6 s = 1.008e10 core-seconds: 2.8 million core-hours.
        let data = pipeline();
        assert_eq!(data.tokens(), Some(Tokens::new(40e12)));
        assert_eq!(data.tokenised(), Some(Bytes::new(160e12)));
        assert!((data.preparation().unwrap().value() - 1.008e10).abs() < 1.0);
    }

    #[test]
    fn what_is_tokenised_on_the_way_needs_cores() {
        // 1 Mtoken of 4 B in a second are 4 MB/s, two cores' work; with four cores for each of 8: 62.5 ms.
        let data = DataPipeline { stored: Stored::Text, ..pipeline() };
        let (tokens, second) = (Tokens::new(1e6), Seconds::new(1.0));
        assert!((data.busy_cores(tokens, second) - 2.0).abs() < 1e-12);
        assert!((data.supply(tokens, Bandwidth::new(1e9), 8).value() - 0.0625).abs() < 1e-12);
        // Storage of 10 MB/s is slower: 0.4 s.
        assert!((data.supply(tokens, Bandwidth::new(1e7), 8).value() - 0.4).abs() < 1e-12);
        assert!(pipeline().busy_cores(tokens, second).abs() < 1e-12);
    }

    #[test]
    fn only_what_is_slower_than_the_step_shows_where_loaders_are_ahead() {
        let (data, second) = (pipeline(), Seconds::new(1.0));
        assert_eq!(data.wait(0.4 * second, second), Seconds::ZERO);
        assert_eq!(data.wait(1.5 * second, second), 0.5 * second);
        assert_eq!(DataPipeline { prefetch: 0, ..data }.wait(0.4 * second, second), 0.4 * second);
    }
}
