//! Packets, read and written, against slow and obvious oracles.

mod aggfrag;
mod icmp;
mod l2tp;
mod segmentation;
mod tunnels;
