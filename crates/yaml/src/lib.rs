//! YAML to checked values, with every mistake of a file located.

#![forbid(unsafe_code)]
