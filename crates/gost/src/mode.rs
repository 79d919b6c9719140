//! Modes of operation over batches of messages.
