//! The words and signs of a gate.

use super::quantities;
use std::ops::Range;

/// A word, quoted or not, or one of the signs `>`, `<`, `>=`, `<=`, `=` and `%`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) word: String,
    pub(super) at: Range<usize>,
}

/// The words of some tokens with a blank between them.
pub(super) fn joined(tokens: &[Token]) -> String {
    let words: Vec<&str> = tokens.iter().map(|token| token.word.as_str()).collect();
    words.join(" ")
}

const fn is_sign(c: char) -> bool {
    matches!(c, '>' | '<' | '%' | '≥' | '≤')
}

/// Splits a gate into tokens. The error is the position of an unclosed quotation mark.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, usize> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((start, first)) = rest.next() {
        if first.is_whitespace() {
            continue;
        }
        let mut token = Token {
            word: String::new(),
            at: start..start + first.len_utf8(),
        };
        if is_sign(first) || first == '=' {
            token.word = match first {
                '≥' => ">=".to_owned(),
                '≤' => "<=".to_owned(),
                sign => sign.to_string(),
            };
            if matches!(first, '>' | '<') && rest.next_if(|(_, next)| *next == '=').is_some() {
                token.word.push('=');
                token.at.end += 1;
            }
            tokens.push(token);
            continue;
        }
        // The start of the open quotation, for the error if it has no end. The marks themselves are
        // no part of the word.
        let mut quoted = (first == '"').then_some(start);
        if quoted.is_none() {
            token.word.push(first);
        }
        // Signs are tokens even without blanks: `drops >5%` has four. Quotation marks may begin
        // inside a word, as in `dut="a b"`.
        while let Some((at, c)) =
            rest.next_if(|(_, c)| quoted.is_some() || !c.is_whitespace() && !is_sign(*c))
        {
            token.at.end = at + c.len_utf8();
            match (c, quoted) {
                ('"', None) => quoted = Some(at),
                ('"', Some(_)) => quoted = None,
                _ => token.word.push(c),
            }
            // `loss=0` is a comparison: no quantity is the key of a filter.
            if c == '=' && quantities().contains(&token.word.trim_end_matches('=')) {
                token.word.pop();
                token.at.end = at;
                tokens.push(token);
                token = Token {
                    word: "=".to_owned(),
                    at: at..at + 1,
                };
                break;
            }
        }
        if let Some(start) = quoted {
            return Err(start);
        }
        tokens.push(token);
    }
    Ok(tokens)
}
