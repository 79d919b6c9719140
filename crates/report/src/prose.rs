//! What a report says about itself: how figures are made, and what they do not mean. A name and its
//! text.

/// How the figures were made.
pub(crate) const METHOD: &[(&str, &str)] = &[
    (
        "Lab",
        "Four network namespaces on one machine, station A – gateway 1 – gateway 2 – station B, \
         joined by veth pairs. The device under test sits on the gateways; `direct` is the same \
         path with plain forwarding.",
    ),
    (
        "Order",
        "All cells are measured once, then all again: a drift of the machine falls on device and \
         baseline alike. Repeats of both pair up, and the range given with a ratio is the range \
         of those pairs.",
    ),
    (
        "Figures",
        "Throughput is payload that station B received by the time measured, without any header. \
         A figure is the mean of the repeats ± the largest distance of a repeat from it, also in \
         per cent of the mean. From 5 repeats on, the data files give a 95 % bootstrap interval \
         of the mean too.",
    ),
    (
        "Latency",
        "Round-trip times of single echo requests on the otherwise idle path. Percentiles are \
         nearest rank over all repeats pooled.",
    ),
    (
        "CPU",
        "CPU-seconds of the stations' tools and of the device's processes; what is left of the \
         machine's busy time is the kernel's forwarding, its threads and the tester. Payload per \
         CPU-second divides throughput by the cores kept busy; on a machine whose cores are \
         shared it is the steadier figure.",
    ),
    (
        "Evidence",
        "During each trial frames between the gateways are sampled and read: an encrypting device \
         must show ESP and never the stations' marker, the baseline must show the marker. \
         Interface counters must agree with what the tool says it moved. A trial that fails a \
         check is invalid, and its cell has no figure.",
    ),
];

/// What the figures do not mean.
pub(crate) const LIMITS: &[(&str, &str)] = &[
    (
        "One machine",
        "Stations, gateways and kernel share its cores. What the stations use, the device lacks. \
         Ratios to the baseline of the same run carry over to other machines better than rates do.",
    ),
    (
        "No cable",
        "veth has no line rate, no propagation delay and no frame check sequence. With offloads \
         on it hands over packets of up to 64 KiB whole, which flatters throughput; measure with \
         offloads off as well.",
    ),
    (
        "Not zero loss",
        "UDP rates here are what arrived at the load offered, with the loss beside them. They are \
         not RFC 2544 throughput, which is the highest rate without any loss.",
    ),
    (
        "No claim of security",
        "The checks show that what was sampled is ESP and carries no marker in clear. They do not \
         judge the cipher, its keys or its implementation.",
    ),
];
