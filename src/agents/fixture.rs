//! Times of calls for tests.

use super::Pace;
use crate::units::{Seconds, TokenRate};

/// Half a second to the first token, 50 tokens a second, 5 s a tool, and one person asked, who takes 25 s.
pub(crate) const PACE: Pace = Pace {
    first_token: Seconds::new(0.5),
    answer: TokenRate::new(50.0),
    tool: Seconds::new(5.0),
    approvals: 1.0,
    approval: Seconds::new(25.0),
};
