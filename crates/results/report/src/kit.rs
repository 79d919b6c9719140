//! Parts that topics and documents are built from: tables, charts, facts, columns and texts.

pub(crate) mod cells;
pub(crate) mod chart;
pub(crate) mod column;
pub(crate) mod fact;
pub(crate) mod format;
pub(crate) mod html;
pub(crate) mod percentiles;
pub(crate) mod ratios;
pub(crate) mod rich;
pub(crate) mod section;
pub(crate) mod table;
