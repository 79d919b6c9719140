//! Campaigns from their files to plans, and the mistakes in them.

mod captures;
mod documents;
mod estimates;
mod frames;
mod golden;
mod plans;
mod remedies;
mod reports;
mod typos;
