//! Findings in tables, made-up ones, published ones and those of reports.

mod bad_input;
mod copies;
mod counts;
mod data_sheets;
mod documented;
mod forms;
mod programs;
mod published;
mod reports;
mod rounds;
mod scales;
mod true_tables;
