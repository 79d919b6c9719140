//! A summary card for each device.

use super::parts::rich;
use crate::headline::{self, Fact, Headline};
use crate::layout::Run;
use maud::{Markup, html};

/// Facts of a short card: the most important ones.
const SHORT_FACTS: usize = 3;

/// Cards with all facts and what they are of, one below the other.
pub(super) fn tall(run: &Run<'_>, headlines: &[Headline]) -> Markup {
    html! {
        section.summary id="summary" aria-label="Summary" {
            @for found in headlines {
                div.device {
                    (name(found))
                    dl.facts {
                        @for fact in &found.facts {
                            div {
                                dt { (fact.label) }
                                dd { (figure(fact)) span { (rich(&fact.detail)) } }
                            }
                        }
                        @if let Some(why) = &found.without { p.note { (rich(why)) } }
                    }
                }
            }
            p.soundness { (headline::soundness(run)) }
        }
    }
}

/// Cards of a line for each fact, side by side.
pub(super) fn short(headlines: &[Headline]) -> Markup {
    html! {
        section.summary.cards id="summary" aria-label="Summary" {
            @for found in headlines {
                div.device {
                    (name(found))
                    dl.lines {
                        @for fact in found.facts.iter().take(SHORT_FACTS) {
                            div { dt { (fact.label) } dd { (figure(fact)) } }
                        }
                        @if let Some(why) = &found.without { p.note { (rich(why)) } }
                    }
                }
            }
        }
    }
}

fn name(found: &Headline) -> Markup {
    html! { h2 { span class=(format!("swatch back-{}", found.color)) {} (found.device) } }
}

fn figure(fact: &Fact) -> Markup {
    html! {
        strong {
            (fact.figure)
            @if !fact.unit.is_empty() { " " small { (fact.unit) } }
        }
    }
}
