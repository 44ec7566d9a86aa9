//! Conditions on rows: `cost.usd_per_run < 2e6 and (cluster.fabric = roce-400g or not memory.fits = true)`.

use super::axes::Axes;
use super::columns::Column;
use super::figure::Figure;
use super::row::Row;
use crate::catalog::Relation;
use crate::diagnostics::did_you_mean;

/// A condition, its keys bound to columns.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Both.
    And(Box<Self>, Box<Self>),
    /// One of the two, or both.
    Or(Box<Self>, Box<Self>),
    /// Not.
    Not(Box<Self>),
    /// A column held against a number, or against another column.
    Compare(Column, Relation, Operand),
}

/// What a column is held against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// A number, or the number of a text.
    Number(f64),
    /// Another column.
    Column(Column),
}

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConditionError {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// So deep may parentheses and `not` stand in each other.
const DEEPEST: u32 = 64;

impl Condition {
    /// Reads a condition on these columns.
    ///
    /// # Errors
    /// When it is not well formed, or names a key that rows do not have.
    pub fn parse(text: &str, axes: &Axes, figures: &[Figure]) -> Result<Self, ConditionError> {
        let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0, axes, figures };
        let condition = parser.any()?;
        match parser.peek() {
            None => Ok(condition),
            Some(token) => Err(malformed(&format!("`{token}` is one word too many"))),
        }
    }

    /// Whether a row meets it. What a row does not have meets nothing.
    pub fn holds(&self, row: &Row<'_>) -> bool {
        match self {
            Self::And(a, b) => a.holds(row) && b.holds(row),
            Self::Or(a, b) => a.holds(row) || b.holds(row),
            Self::Not(inner) => !inner.holds(row),
            Self::Compare(column, relation, operand) => {
                let have = column.code(row);
                let against = match operand {
                    Operand::Number(number) => *number,
                    Operand::Column(column) => column.code(row),
                };
                have.partial_cmp(&against).is_some_and(|order| relation.holds(order))
            }
        }
    }

    /// Whether it speaks of axes only, so that it can be asked before a point is evaluated.
    pub fn is_of_axes(&self) -> bool {
        let axis = |column: &Column| matches!(column, Column::Axis(_));
        match self {
            Self::And(a, b) | Self::Or(a, b) => a.is_of_axes() && b.is_of_axes(),
            Self::Not(inner) => inner.is_of_axes(),
            Self::Compare(column, _, Operand::Column(other)) => axis(column) && axis(other),
            Self::Compare(column, ..) => axis(column),
        }
    }
}

fn malformed(message: &str) -> ConditionError {
    ConditionError {
        message: format!("no condition: {message}"),
        hint: "write keys, one of = != < <= > >=, and values, or `in` and a list, joined by and, or, not and parentheses, such as \"cost.usd_per_run < 2e6 and cluster.fabric in [roce-400g, spectrum-x-400g]\"".to_owned(),
    }
}

/// Words, signs, parentheses, the brackets and commas of lists, and texts in quotes with their opening quote.
fn tokens(text: &str) -> Result<Vec<&str>, ConditionError> {
    let mut found: Vec<&str> = Vec::new();
    let mut rest = text.trim_start();
    // Within the brackets after `in`, commas part values.
    let mut listing = false;
    while let Some(first) = rest.chars().next() {
        let length = if let Some((sign, _)) = Relation::SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
            sign.len()
        } else if matches!(first, '(' | ')') || (first == '[' && found.last() == Some(&"in")) {
            listing |= first == '[';
            1
        } else if listing && matches!(first, ',' | ']') {
            listing &= first == ',';
            1
        } else if first == '"' {
            let end = rest[1..].find('"').ok_or_else(|| malformed("a quote is not closed"))?;
            found.push(&rest[..=end]);
            rest = rest[end + 2..].trim_start();
            continue;
        } else {
            let ends = |c: char| c.is_whitespace() || "()=<>!\"".contains(c) || (listing && ",]".contains(c));
            rest.find(ends).unwrap_or(rest.len())
        };
        if length == 0 {
            return Err(malformed(&format!("`{first}` stands alone")));
        }
        found.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    Ok(found)
}

struct Parser<'a> {
    tokens: Vec<&'a str>,
    next: usize,
    depth: u32,
    axes: &'a Axes,
    figures: &'a [Figure],
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.next).copied()
    }

    fn take(&mut self) -> Result<&'a str, ConditionError> {
        let token = self.peek().ok_or_else(|| malformed("something is missing at its end"))?;
        self.next += 1;
        Ok(token)
    }

    fn took(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        self.next += usize::from(found);
        found
    }

    fn any(&mut self) -> Result<Condition, ConditionError> {
        let mut condition = self.all()?;
        while self.took("or") {
            condition = Condition::Or(Box::new(condition), Box::new(self.all()?));
        }
        Ok(condition)
    }

    fn all(&mut self) -> Result<Condition, ConditionError> {
        let mut condition = self.one()?;
        while self.took("and") {
            condition = Condition::And(Box::new(condition), Box::new(self.one()?));
        }
        Ok(condition)
    }

    fn one(&mut self) -> Result<Condition, ConditionError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(malformed("too many parentheses stand in each other"));
        }
        let condition = if self.took("not") {
            Condition::Not(Box::new(self.one()?))
        } else if self.took("(") {
            let inner = self.any()?;
            if !self.took(")") {
                return Err(malformed("a parenthesis is not closed"));
            }
            inner
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(condition)
    }

    fn comparison(&mut self) -> Result<Condition, ConditionError> {
        let key = self.take()?;
        let column = self.column(key)?;
        let sign = self.take()?;
        if sign == "in" {
            return self.listed(key, column);
        }
        let Some((_, relation)) = Relation::SIGNS.iter().find(|(known, _)| *known == sign) else {
            return Err(malformed(&format!("`{sign}` stands where a sign should, after `{key}`")));
        };
        let value = self.take()?;
        if relation.is_of_order() && !column.is_ordered(self.axes) {
            return Err(malformed(&format!("values of `{key}` are words, which are neither more nor less")));
        }
        let operand = self.operand(key, column, value)?;
        Ok(Condition::Compare(column, *relation, operand))
    }

    /// The rest of `key in [value, value]`.
    fn listed(&mut self, key: &str, column: Column) -> Result<Condition, ConditionError> {
        if !self.took("[") {
            return Err(malformed(&format!("a list in brackets is missing after `{key} in`")));
        }
        let mut any: Option<Condition> = None;
        loop {
            let value = self.take()?;
            let one = Condition::Compare(column, Relation::Equal, self.operand(key, column, value)?);
            any = Some(match any {
                Some(before) => Condition::Or(Box::new(before), Box::new(one)),
                None => one,
            });
            if self.took("]") {
                return any.ok_or_else(|| malformed("a list is empty"));
            }
            if !self.took(",") {
                return Err(malformed(&format!("values of the list after `{key} in` are parted by commas")));
            }
        }
    }

    fn operand(&self, key: &str, column: Column, value: &str) -> Result<Operand, ConditionError> {
        let text = value.strip_prefix('"');
        if let Some(code) = column.text_code(text.unwrap_or(value), self.axes) {
            return Ok(Operand::Number(code));
        }
        if text.is_none() && column.is_ordered(self.axes) {
            if let Ok(number) = value.parse::<f64>() {
                if !number.is_finite() {
                    return Err(malformed(&format!("no figure is more or less than `{value}`")));
                }
                return Ok(Operand::Number(number));
            }
            if let Some(other) = Column::find(value, self.axes, self.figures) {
                return Ok(Operand::Column(other));
            }
        }
        Err(ConditionError {
            message: format!("`{key}` never is `{}`", text.unwrap_or(value)),
            hint: "values are written as the sweep's axes write them; figures are numbers".to_owned(),
        })
    }

    fn column(&self, key: &str) -> Result<Column, ConditionError> {
        Column::find(key, self.axes, self.figures).ok_or_else(|| unknown(key, self.axes, self.figures))
    }
}

/// That rows have no such key, with the nearest that they have.
pub(super) fn unknown(key: &str, axes: &Axes, figures: &[Figure]) -> ConditionError {
    let known = axes.columns.iter().map(|column| column.key.as_str()).chain(figures.iter().map(|figure| figure.key));
    let hint = did_you_mean(key, known).map_or_else(
        || "keys are those of the sweep's axes and of the figures, such as \"cost.usd_per_run\"".to_owned(),
        |near| format!("did you mean \"{near}\"?"),
    );
    ConditionError { message: format!("rows have no `{key}`"), hint }
}
