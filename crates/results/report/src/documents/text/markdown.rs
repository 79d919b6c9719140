//! The report as Markdown (GitHub's flavour: pipe tables).

use super::{command, folder, provenance, with_folder};
use crate::documents::headline::FirstScreen;
use crate::kit::format::command_line;
use crate::kit::rich::{Span, spans};
use crate::kit::section::{Block, Document, Paragraph};
use crate::kit::table::{Cell, HOW_TO_READ, Kind, Table};
use crate::layout::Run;
use crate::topic;
use guard::{visible, visible_lines};
use units::human::in_markdown;

/// Writes the whole document.
pub(crate) fn write(run: &Run<'_>) -> String {
    let mut page = String::new();
    head(&mut page, run);
    let mut chapter = "";
    for (section, blocks) in topic::sections(run, Document::Markdown) {
        if section.chapter != chapter {
            chapter = section.chapter;
            page.push_str(&format!("\n## {chapter}\n"));
        }
        for found in &blocks {
            block(&mut page, run, found);
        }
    }
    page.push_str(&format!(
        "\nMade by:\n\n{}\n{}.\n",
        code_block(&command(run)),
        folder(run)
    ));
    // Markdown is often read in a terminal.
    let page = visible_lines(&page).into_owned();
    with_folder(run, page)
}

fn head(page: &mut String, run: &Run<'_>) {
    let first = FirstScreen::of(run);
    // Texts come from a journal: escaped, they cannot become markup.
    page.push_str(&format!("# {}\n\n", in_markdown(run.title())));
    page.push_str(&format!(
        "{}\n\n{}\n",
        in_markdown(&provenance(run)),
        first.soundness
    ));
    if let Some(answer) = &first.answer {
        page.push_str(&format!("\n{}\n", in_markdown(answer)));
    }
    if !first.findings.is_empty() {
        page.push('\n');
    }
    for finding in &first.findings {
        page.push_str(&format!("- {}\n", in_markdown(finding)));
    }
    for found in first.devices {
        page.push_str(&format!("\n**{}**\n\n", in_markdown(&found.device)));
        for fact in &found.facts {
            let figure = in_markdown(&format!("{} {}", fact.figure, fact.unit));
            let rest = [&fact.range, &fact.detail].into_iter();
            // An empty part would leave a separator without text.
            let rest = rest.filter(|part| !part.is_empty());
            let rest: String = rest
                .map(|part| format!("; {}", in_markdown(part)))
                .collect();
            page.push_str(&format!(
                "- {}: **{}**{rest}\n",
                fact.label,
                figure.trim_end()
            ));
        }
        if let Some(why) = &found.without {
            page.push_str(&format!("{}\n", rich(why)));
        }
        if !found.doubt.is_empty() {
            page.push_str(&format!("\n{}.\n", in_markdown(&found.doubt)));
        }
    }
}

fn block(page: &mut String, run: &Run<'_>, block: &Block) {
    match block {
        Block::Table(found) => table(page, found),
        Block::Details { tables, .. } => tables.iter().for_each(|found| table(page, found)),
        Block::Warnings => warnings(page, run),
        Block::Cells => commands(page, run),
        Block::Prose(paragraphs) => prose(page, paragraphs),
        // Every figure of a chart is also in a table.
        Block::Chart { .. } | Block::Html(_) => {}
    }
}

fn warnings(page: &mut String, run: &Run<'_>) {
    page.push('\n');
    for warning in &run.results.warnings {
        page.push_str(&format!(
            "- {} *{}*\n",
            rich(&warning.text),
            rich(&warning.advice)
        ));
    }
}

fn commands(page: &mut String, run: &Run<'_>) {
    let of = if run.only_devices() {
        "In"
    } else {
        "On the stations, in"
    };
    page.push_str(&format!("\n{of} each cell's first trial.\n"));
    for cell in &run.results.cells {
        // A trial that failed early may have run no command.
        if let Some(trial) = run.trials(cell).find(|trial| !trial.commands.is_empty()) {
            let lines: Vec<String> = trial
                .commands
                .iter()
                .map(|words| command_line(words))
                .collect();
            page.push_str(&format!(
                "\n{}\n\n{}",
                code(&cell.id),
                code_block(&lines.join("\n"))
            ));
        }
    }
}

fn prose(page: &mut String, paragraphs: &[Paragraph]) {
    page.push('\n');
    for (name, text) in paragraphs {
        page.push_str(&format!("- **{name}.** {}\n", rich(text)));
    }
}

fn table(page: &mut String, table: &Table) {
    page.push_str(&format!("\n**{}**", in_markdown(&table.caption)));
    if !table.conditions().is_empty() {
        page.push_str(&format!(" ({})", rich(table.conditions())));
    }
    page.push_str("\n\n");
    row(
        page,
        table
            .columns
            .iter()
            .map(|column| in_markdown(&column.heading())),
    );
    let rules = table
        .columns
        .iter()
        .map(|column| if column.right { "--:" } else { "---" }.to_owned());
    row(page, rules);
    for found in &table.rows {
        row(page, found.cells.iter().map(cell));
    }
    if let Some(footnote) = table.footnote() {
        page.push_str(&format!("\n{}\n", in_markdown(&footnote)));
    }
    if !table.method().is_empty() {
        page.push_str(&format!("\n{HOW_TO_READ}: {}.\n", rich(table.method())));
    }
}

fn row(page: &mut String, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.collect();
    page.push_str(&format!("| {} |\n", cells.join(" | ")));
}

fn cell(cell: &Cell) -> String {
    match cell.kind {
        // A pipe table has no cells that span rows.
        Kind::Repeated => String::new(),
        Kind::Reason | Kind::Word => format!("*{}*", rich(&cell.whole())),
        Kind::File => match cell.link() {
            Some(link) => format!("[{}]({link})", in_markdown(&cell.text)),
            None => in_markdown(&cell.text),
        },
        Kind::Plain => rich(&cell.text),
        Kind::Label | Kind::Term | Kind::Derived | Kind::Missing => in_markdown(&cell.text),
    }
}

/// A sentence with `code` between backticks.
fn rich(text: &str) -> String {
    // Text that would end a table's cell or row is not printed as code.
    let plain = |text: &str| !text.contains(|c: char| c == '|' || c.is_control());
    let parts = spans(text).into_iter().map(|span| match span {
        Span::Code(text) if plain(text) => code(text),
        Span::Code(text) | Span::Text(text) => in_markdown(text),
    });
    parts.collect()
}

/// Inline code, with a fence longer than any run of backticks in it. Line feeds are replaced: code
/// ends at an empty line, and a line may begin a heading.
fn code(text: &str) -> String {
    let text = &*visible(text);
    let fence = "`".repeat(longest_run(text) + 1);
    // CommonMark removes a space at both ends of inline code, so a backtick there needs one.
    let space = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{space}{text}{space}{fence}")
}

/// A block of code, with a fence longer than any run of backticks in it.
fn code_block(text: &str) -> String {
    // A fence has at least three backticks.
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}sh\n{text}\n{fence}\n")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_names_is_text() {
        assert_eq!(
            in_markdown("a|b\n<script>*x*_y_"),
            r"a\|b &lt;script&gt;\*x\*\_y\_"
        );
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(
            code("a\n\n<img src=x>\n# b"),
            "`a\u{fffd}\u{fffd}<img src=x>\u{fffd}# b`"
        );
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code_block("```\nx"), "````sh\n```\nx\n````\n");
    }
}
