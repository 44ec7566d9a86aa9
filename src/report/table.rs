//! Reports for a terminal.

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use super::page::{Block, Grid, Page, in_line, shown};

/// How a terminal shows a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal; without them a line is as long as it must be.
    pub width: Option<u16>,
    /// Whether headings are set off by terminal codes.
    pub emphasis: bool,
}

/// Below so many columns nothing can be laid out; the terminal breaks the lines.
const NARROWEST: u16 = 30;

const RULED: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A report as text.
pub fn table(page: &Page, style: Style) -> String {
    let mut paragraphs = Vec::new();
    if !page.title.is_empty() {
        paragraphs.push(emphasised(&wrapped("", &page.title, style), style));
    }
    for section in &page.sections {
        let mut heading = emphasised(&wrapped("", &section.heading, style), style);
        for block in &section.blocks {
            let body = match block {
                Block::Text(sentence) => wrapped("", sentence, style),
                Block::List(items) => items.iter().map(|item| wrapped("-", item, style)).collect::<Vec<_>>().join("\n"),
                Block::Grid(grid) => drawn(grid, style),
            };
            let heading = std::mem::take(&mut heading);
            paragraphs.push(if heading.is_empty() { body } else { format!("{heading}\n{body}") });
        }
    }
    paragraphs.join("\n\n") + "\n"
}

/// Bold lines, where the terminal is to show them so.
fn emphasised(text: &str, style: Style) -> String {
    if !style.emphasis || text.is_empty() {
        return text.to_owned();
    }
    text.lines().map(|line| format!("\u{1b}[1m{line}\u{1b}[0m")).collect::<Vec<_>>().join("\n")
}

/// A table within the width of the terminal.
fn within(style: Style, lines: TableStyle) -> Table {
    let mut table = Table::new();
    table.load_style(lines);
    match style.width {
        Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width.max(NARROWEST)),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    table
}

/// A sentence broken into lines, beside a mark.
fn wrapped(mark: &str, sentence: &str, style: Style) -> String {
    if sentence.is_empty() {
        return String::new();
    }
    let sentence = in_line(sentence);
    let mut table = within(style, TableStyle::new());
    let cells = if mark.is_empty() { vec![sentence.as_str()] } else { vec![mark, &sentence] };
    table.add_row(cells);
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    table.trim_fmt()
}

fn drawn(grid: &Grid, style: Style) -> String {
    let mut table = within(style, RULED);
    table.set_header(grid.header.iter().map(|head| shown(head)));
    for row in &grid.rows {
        table.add_row(row.iter().map(|cell| Cell::new(shown(cell))));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index >= grid.numeric_from {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::super::page::Section;
    use super::*;

    fn page() -> Page {
        let mut grid = Grid::new(&["Figure", "one", "two"], 1);
        grid.rows.push(["Iteration", "6.945 s", "12.5 s"].map(str::to_owned).to_vec());
        grid.rows.push(["  Compute", "4 s", "4 s"].map(str::to_owned).to_vec());
        let list = Block::List(vec!["a sentence of a few words".to_owned(), "another".to_owned()]);
        Page {
            title: "What is asked?".to_owned(),
            sections: vec![Section::new("Step", Block::Grid(grid)), Section::new("Notes", list)],
        }
    }

    #[test]
    fn tables_are_ruled_and_aligned() {
        insta::assert_snapshot!(table(&page(), Style::default()));
    }

    #[test]
    fn control_characters_do_nothing_to_a_terminal() {
        let mut grid = Grid::new(&["a\u{1b}[31m"], 1);
        grid.rows.push(vec!["b\u{7}".to_owned()]);
        let page =
            Page { title: "one\r\ntwo\u{1b}[2J".to_owned(), sections: vec![Section::new("", Block::Grid(grid))] };
        let text = table(&page, Style::default());
        assert!(text.starts_with("one two\u{fffd}[2J\n"), "{text:?}");
        assert!(text.chars().all(|sign| sign == '\n' || !sign.is_control()), "{text:?}");
    }

    #[test]
    fn narrow_terminals_break_lines() {
        let text = table(&page(), Style { width: Some(30), emphasis: false });
        assert!(text.lines().all(|line| line.chars().count() <= 30), "{text}");
    }

    #[test]
    fn headings_are_bold_only_where_asked() {
        let codes = |emphasis| table(&page(), Style { width: None, emphasis }).matches("\u{1b}[1m").count();
        assert_eq!((codes(false), codes(true)), (0, 3));
    }
}
