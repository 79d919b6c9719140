//! Parts of a cell that several axes read.

use super::Conditions;
use crate::value::Value;
use crate::{HttpTest, Measurement, Traffic, VideoTest};
use wire::overhead::{IPV4_HEADER_BYTES, UDP_HEADER_BYTES};

pub(super) const fn http<'a>(cell: &Conditions<'a>) -> Option<&'a HttpTest> {
    match cell.measurement {
        Measurement::Http(test) => Some(test),
        _ => None,
    }
}

pub(super) const fn video<'a>(cell: &Conditions<'a>) -> Option<&'a VideoTest> {
    match cell.measurement {
        Measurement::Video(test) => Some(test),
        _ => None,
    }
}

pub(super) fn traffic<'a>(cell: &Conditions<'a>) -> Option<&'a Traffic> {
    Some(&cell.measurement.frames()?.traffic)
}

/// The UDP payload: the largest that the MTU carries whole, if the campaign leaves it open.
pub(super) fn datagram_bytes(cell: &Conditions<'_>) -> Option<Value> {
    let Measurement::Udp { datagram_bytes, .. } = *cell.measurement else {
        return None;
    };
    let headers = (IPV4_HEADER_BYTES + UDP_HEADER_BYTES) as u32;
    let largest = u32::from(cell.stations?.tool_mtu()).saturating_sub(headers);
    Some(datagram_bytes.unwrap_or(largest).into())
}
