//! Every rule has a section in `docs/lint.md` with its severity, its summary, an example, and the
//! findings of the example. `UPDATE_GOLDEN=1` rewrites the findings.

use lint::{Finding, Rule};
use std::fs;
use std::path::{Path, PathBuf};

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/lint.md")
}

/// What the page prints of a rule's findings, without places.
fn shown(findings: &[Finding], rule: Rule) -> String {
    findings
        .iter()
        .filter(|finding| finding.rule == rule)
        .map(|it| format!("{}\n  {}\n  {}\n", it.subject, it.arithmetic, it.meaning))
        .collect()
}

/// The example of a section and its format.
fn example(section: &str) -> (&str, &str) {
    let (_, fenced) = section.split_once("```").expect("an example");
    let (format, rest) = fenced.split_once('\n').expect("a format");
    let (example, _) = rest.split_once("```").expect("an end");
    (format, example)
}

/// The section with its severity and the findings as they are.
fn written(section: &str, rule: Rule) -> String {
    let (format, text) = example(section);
    let file = format!("example.{format}");
    let document = lint::read(&file, text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let findings = lint::check(&document);
    assert!(
        findings.iter().any(|finding| finding.rule == rule),
        "{}: its example has no such finding",
        rule.id()
    );
    let (head, _) = section.split_once("```text\n").expect("findings");
    let (name, rest) = head.split_once("\n\n").expect("a severity");
    let (_, rest) = rest.split_once("\n\n").expect("a description");
    let severity = rule.severity().name();
    format!(
        "{name}\n\n**{severity}**: {}\n\n{rest}```text\n{}```\n",
        rule.summary(),
        shown(&findings, rule)
    )
}

#[test]
fn every_rule_is_documented_with_the_findings_of_its_example() {
    let text = fs::read_to_string(page()).unwrap();
    let mut parts = text.split("\n### ");
    let mut page_now = parts.next().unwrap().to_owned();
    let mut missing: Vec<&str> = Rule::ALL.iter().map(|rule| rule.id()).collect();
    for section in parts {
        let name = section.lines().next().unwrap();
        let rule = Rule::ALL.iter().find(|rule| rule.id() == name);
        let rule = *rule.unwrap_or_else(|| panic!("{name} is no rule"));
        missing.retain(|id| *id != name);
        page_now.push_str("\n### ");
        page_now.push_str(&written(section, rule));
    }
    assert!(missing.is_empty(), "not documented: {missing:?}");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(page(), page_now).unwrap();
        return;
    }
    assert!(
        page_now == text,
        "docs/lint.md is not current; UPDATE_GOLDEN=1 rewrites it"
    );
}

#[test]
fn the_example_of_a_markdown_table_is_read_and_has_no_finding() {
    let text = fs::read_to_string(page()).unwrap();
    let (_, rest) = text.split_once("```markdown\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let document = lint::read("example.md", example).unwrap_or_else(|it| panic!("{it}"));
    assert_eq!(document.tables[0].cells().count(), 3);
    assert_eq!(lint::check(&document), []);
}

#[test]
fn the_example_of_statements_in_markdown_is_read_and_has_no_finding() {
    let text = fs::read_to_string(page()).unwrap();
    let (_, rest) = text.split_once("\n[[mix]]").unwrap();
    let start = text.len() - rest.len();
    let open = text[..start].rfind("```markdown\n").unwrap() + "```markdown\n".len();
    let (example, _) = text[open..].split_once("```").unwrap();
    let document = lint::read("example.md", example).unwrap_or_else(|it| panic!("{it}"));
    assert_eq!((document.mixes.len(), document.claims.len()), (1, 1));
    assert_eq!(document.remarks, []);
    assert_eq!(lint::check(&document), []);
    // Both statements are checked.
    let refuted = example.replace("570} >= 400", "570} >= 439");
    let document = lint::read("example.md", &refuted).unwrap_or_else(|it| panic!("{it}"));
    let rules: Vec<&str> = lint::check(&document)
        .iter()
        .map(|it| it.rule.id())
        .collect();
    assert_eq!(rules, ["claim-contradicted"]);
    let faster = example.replace("| 257 |", "| 886 |");
    let document = lint::read("example.md", &faster).unwrap_or_else(|it| panic!("{it}"));
    let rules: Vec<&str> = lint::check(&document)
        .iter()
        .map(|it| it.rule.id())
        .collect();
    assert_eq!(rules, ["mix-differs"]);
}
