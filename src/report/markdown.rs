//! Reports as GitHub-flavoured Markdown.

use super::page::{Block, Grid, Page, in_line, shown};

/// A report as Markdown.
pub fn markdown(page: &Page) -> String {
    let mut paragraphs = Vec::new();
    if !page.title.is_empty() {
        paragraphs.push(format!("# {}", text(&in_line(&page.title))));
    }
    for section in &page.sections {
        if !section.heading.is_empty() {
            paragraphs.push(format!("## {}", text(&in_line(&section.heading))));
        }
        for block in &section.blocks {
            paragraphs.push(match block {
                Block::Text(sentence) => prose(&in_line(sentence)),
                Block::List(items) => {
                    items.iter().map(|item| format!("- {}", prose(&in_line(item)))).collect::<Vec<_>>().join("\n")
                }
                Block::Grid(grid) => pipe_table(grid),
            });
        }
    }
    paragraphs.join("\n\n") + "\n"
}

fn pipe_table(grid: &Grid) -> String {
    let row =
        |cells: &[String]| format!("| {} |", cells.iter().map(|cell| self::cell(cell)).collect::<Vec<_>>().join(" | "));
    let rule = |index: usize| if index >= grid.numeric_from { "---:" } else { "---" };
    let rules: Vec<&str> = (0..grid.header.len()).map(rule).collect();
    let mut lines = vec![row(&grid.header), format!("| {} |", rules.join(" | "))];
    lines.extend(grid.rows.iter().map(|cells| row(cells)));
    lines.join("\n")
}

/// A cell: the indentation of parts kept, lines broken as Markdown's tables break them.
fn cell(content: &str) -> String {
    let indent = content.len() - content.trim_start_matches(' ').len();
    let body = text(&shown(content.trim())).replace('|', "\\|").replace('\n', "<br>");
    format!("{}{body}", "&nbsp;".repeat(indent))
}

/// Text whose signs are not taken for markup.
fn text(content: &str) -> String {
    content.replace('<', "&lt;").replace('*', "\\*").replace('_', "\\_").replace('`', "\\`").replace('$', "\\$")
}

/// Sentences, in which what stands between backticks is code and written as it is.
fn prose(content: &str) -> String {
    let parts: Vec<&str> = content.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return text(content);
    }
    let part = |(place, part): (usize, &&str)| if place % 2 == 0 { text(part) } else { format!("`{part}`") };
    parts.iter().enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::super::page::Section;
    use super::*;

    #[test]
    fn cells_cannot_break_the_table() {
        let mut grid = Grid::new(&["Figure", "a|b"], 1);
        grid.rows.push(vec!["  part".to_owned(), "one\ntwo".to_owned()]);
        let page =
            Page { title: "<b> or\n*b*?\u{1b}".to_owned(), sections: vec![Section::new("H", Block::Grid(grid))] };
        let expected = "# &lt;b> or \\*b\\*?\u{fffd}\n\n## H\n\n| Figure | a\\|b |\n| --- | ---: |\n| &nbsp;&nbsp;part | one<br>two |\n";
        assert_eq!(markdown(&page), expected);
    }

    #[test]
    fn what_stands_between_backticks_in_a_sentence_is_code() {
        assert_eq!(prose("`a_b` of *c* at $1"), "`a_b` of \\*c\\* at \\$1");
        assert_eq!(prose("one ` alone_"), "one \\` alone\\_");
    }
}
