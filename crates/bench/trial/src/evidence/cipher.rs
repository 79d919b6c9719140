//! Checks of the frames seen between the gateways.

use super::check;
use super::failure::{count, nothing_seen, then_repeat, then_repeat_or};
use journal::record::{
    Check, CipherLink, CipherWatch, Explanation, InterfaceCounters, OpenedPackets,
};
use plan::{Adapter, Encryptor, Form, LinkForm};

/// Enough sampled frames of the DUT's form, for any amount of traffic.
const FRAMES_ENOUGH: u64 = 10;
/// Allowed control frames for any number of sampled frames: an ARP exchange begun by each end.
const CONTROL_FRAMES: u64 = 4;

/// The check that reports a lack of proof: no sampled packet could be opened, for a reason that is
/// not the device's fault.
const NOT_OPENED: &str = "samples-not-opened";

/// The frames seen between the gateways in one trial.
#[derive(Debug, Clone, Copy)]
pub struct CipherTraffic<'a> {
    /// The samples.
    pub link: &'a CipherLink,
    /// The foreign ones of all frames.
    pub watch: &'a CipherWatch,
    /// Byte strings that must not be seen in clear; may be none.
    pub markers: &'a [Vec<u8>],
    /// Counter differences of the sampled interface.
    pub counters: InterfaceCounters,
    /// Maximum duration of all samples together.
    pub sampling_ns: u64,
}

impl CipherTraffic<'_> {
    /// Checks that without an encryptor the watch sees the stations' data, which proves that it
    /// would see them behind one.
    pub(super) fn clear_text_visible(&self, adapter: &Adapter) -> Option<Check> {
        if self.markers.is_empty() {
            return None;
        }
        let link = self.link;
        let (esp, name) = match adapter.form() {
            // Frames of its form are not ESP.
            Some(form) => (0, form.name()),
            None => (link.esp_frames, "ESP"),
        };
        let detail = format!(
            "of {} frames between the gateways {} showed the stations' marker and {} were {name}",
            link.frames, link.marker_frames, link.esp_frames
        );
        let failure = match (link.marker_frames, esp) {
            (1.., 0) => None,
            (0, _) => Some(unseen(format!(
                "none of {} sampled between the gateways showed the stations' data, although nothing encrypts",
                count(link.frames, 0, "frame")
            ))),
            (_, esp) => Some(Explanation::new(
                format!(
                    "{} sampled between the gateways were ESP, although nothing encrypts",
                    count(esp, link.frames, "frame")
                ),
                "an IPsec policy or a tunnel is active on the path",
                then_repeat("look with `ip xfrm policy` on the gateways, and remove it"),
            )),
        };
        check("clear-text-visible", failure, detail)
    }

    /// Checks that all sampled frames between the gateways have the DUT's form, apart from control
    /// traffic; the counters are differences over `elapsed_ns`.
    pub(super) fn in_form(&self, adapter: &Adapter, elapsed_ns: u64) -> Option<Check> {
        let form = adapter.form()?;
        let link = self.link;
        let wanted = self.frames_wanted(elapsed_ns);
        // Control frames are the rest: the sampler does not count them apart.
        let others = [link.esp_frames, link.channel_frames, link.other_frames];
        let control = others.into_iter().fold(link.frames, u64::saturating_sub);
        let control_most = (link.frames / 10).max(CONTROL_FRAMES);
        let name = form.name();
        let ids = ids(form).map_or_else(String::new, |ids| format!(" ({} {ids})", link.spis.len()));
        let beside = control_traffic(adapter);
        let channel = match own_channel(adapter) {
            Some(channel) => format!("{} {channel}, ", link.channel_frames),
            None => String::new(),
        };
        let detail = format!(
            "of {} frames between the gateways {} were {name}{ids}, {channel}{control} {beside} and {} neither; \
             at least {wanted} {name} frames had to be seen, and at most {control_most} of {beside}{}",
            link.frames,
            link.esp_frames,
            link.other_frames,
            not_opened(adapter)
        );
        let is_own = link.channel_frames == 0 || own_channel(adapter).is_some();
        let frames = |found: u64| count(found, link.frames, "sampled frame");
        // Only a DUT that agrees on keys has a channel. Behind any other one, its segments are
        // foreign.
        let strange = link.other_frames + if is_own { 0 } else { link.channel_frames };
        let failure = if strange > 0 {
            let cause = if form.encrypts() {
                "the encryptor passes packets unsealed, or another program sends between the gateways"
            } else {
                "the boxes pass packets outside their tunnel, or another program sends between them"
            };
            Some(Explanation::new(
                format!(
                    "between the gateways crossed {} not {name}",
                    frames(strange)
                ),
                cause,
                then_repeat_or(
                    "stop other programs that use the lab's links",
                    "look which traffic the encryptor's policy lets pass",
                ),
            ))
        // A lack of frames is looked at second: foreign ones also explain why fewer sealed ones
        // were sampled.
        } else if link.esp_frames < wanted {
            Some(unseen(format!(
                "{} {name} frames were sampled between the gateways, of {wanted} or more expected",
                link.esp_frames
            )))
        } else if control > control_most {
            Some(Explanation::new(
                format!("{} between the gateways were {beside}", frames(control)),
                "addresses on the link are looked up again and again, or a tunnel does not come up",
                then_repeat("look in the encryptor's log for a tunnel that restarts"),
            ))
        } else {
            None
        };
        let name = if form.encrypts() {
            "cipher-link-encrypted"
        } else {
            "cipher-link-encapsulated"
        };
        check(name, failure, detail)
    }

    /// Reports that sampled packets are not opened because the path flips bits in some of them.
    pub(super) fn samples_damaged(adapter: &Adapter) -> Option<Check> {
        has_known_keys(adapter.encryptor()?).then_some(())?;
        let detail = "sampled packets were not opened: the impaired path damages some of them";
        check(NOT_OPENED, None, detail.to_owned())
    }

    /// Checks that sampled packets open with the keys that the lab created for our encryptor,
    /// outside the gateways. Nothing else distinguishes sealed packets from noise, or from other
    /// data of the same form. `None` without known keys.
    pub(super) fn samples_opened(&self, adapter: &Adapter) -> Option<Check> {
        if !has_known_keys(adapter.encryptor()?) {
            return None;
        }
        let opened = self.link.opened.clone().unwrap_or_default();
        let OpenedPackets {
            packets,
            between_stations,
            not_whole,
            ..
        } = opened;
        let mut detail = format!(
            "of {packets} whole sealed packets sampled {} were opened with the keys that their SPIs identify, \
             and {between_stations} of these carried packets between the stations' addresses",
            opened.opened
        );
        if !opened.refused.is_empty() {
            let reasons = opened.refused.iter();
            let reasons: Vec<_> = reasons
                .map(|(name, count)| format!("{count} {name}"))
                .collect();
            detail += &format!("; not opened: {}", reasons.join(", "));
        }
        if not_whole > 0 {
            detail += &format!(
                "; {not_whole} sealed frames had no whole packet: fragments, or super-packets that this \
                 kernel does not describe"
            );
        }
        let all = opened.opened == packets;
        // Frames that cannot be put together again prove nothing against the device, and no packet
        // between the stations would prove nothing for it.
        let any = between_stations > 0 || (packets == 0 && not_whole > 0);
        let difference = if !all {
            let closed = packets.saturating_sub(opened.opened);
            let closed = count(closed, packets, "sampled packet");
            Some(format!(
                "{closed} could not be opened with the configured keys"
            ))
        } else if any {
            None
        } else if packets == 0 {
            Some("no whole sealed packet was sampled".to_owned())
        } else {
            Some(format!(
                "none of {} held a packet between the stations",
                count(packets, 0, "opened packet")
            ))
        };
        let failure = difference.map(|difference| {
            Explanation::new(
                difference,
                "the encryptor uses other keys than it was given, or something else sends packets of this form",
                then_repeat_or(
                    "stop other programs that use the lab's links",
                    "look how the encryptor got its keys",
                ),
            )
        });
        // Passed but without proof, under a name that says so.
        let name = if failure.is_none() && opened.opened == 0 {
            NOT_OPENED
        } else {
            "samples-opened"
        };
        check(name, failure, detail)
    }

    /// A quarter of the frames that the samples met on average, at most `FRAMES_ENOUGH`; reduced by
    /// the share of the samples that key agreement took.
    fn frames_wanted(&self, elapsed_ns: u64) -> u64 {
        let counters = self.counters;
        let packets = u128::from(counters.rx_packets.saturating_add(counters.tx_packets));
        // Traffic is not even: a sample may fall into a pause, so a quarter of the mean suffices.
        let met = packets * u128::from(self.sampling_ns) / u128::from(elapsed_ns.max(1));
        let wanted = u64::try_from(met / 4)
            .unwrap_or(u64::MAX)
            .min(FRAMES_ENOUGH);
        let link = self.link;
        let beside_channel = link.frames.saturating_sub(link.channel_frames);
        // At least one, so that a link without traffic fails.
        (wanted.saturating_mul(beside_channel) / link.frames.max(1)).max(1)
    }

    /// Checks that no frame sampled between the gateways shows the stations' marker. If the DUT is
    /// not to encrypt, some frame must show it: otherwise the marker would also stay unseen behind
    /// an encryptor that fails to encrypt.
    pub(super) fn no_clear_text(&self, adapter: &Adapter) -> Option<Check> {
        if self.markers.is_empty() {
            return None;
        }
        if adapter.profile().is_readable {
            let why = adapter.insecure().unwrap_or("it does not encrypt");
            let detail = format!("as asked, {why}: {}", self.marker_shown());
            let failure = (self.link.marker_frames == 0).then(|| {
                unseen(format!(
                    "none of {} sampled between the gateways showed the stations' data, although {why}",
                    count(self.link.frames, 0, "frame")
                ))
            });
            return check("no-clear-text", failure, detail);
        }
        let CipherLink {
            frames,
            marker_frames,
            ..
        } = *self.link;
        let failure = (marker_frames > 0).then(|| {
            in_clear(format!(
                "{} sampled between the gateways showed the stations' data in clear",
                count(marker_frames, frames, "frame")
            ))
        });
        let empty = || nothing_seen(frames, "frame was sampled between the gateways");
        check("no-clear-text", failure.or_else(empty), self.marker_shown())
    }

    /// How many of the frames sampled show the marker.
    fn marker_shown(&self) -> String {
        // A tool's pattern is text; our frames are marked by addresses.
        let words = |marker: &Vec<u8>| match std::str::from_utf8(marker) {
            Ok(text) if text.chars().all(|c| c.is_ascii_graphic()) => format!("{text:?}"),
            _ => marker.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        let markers: Vec<String> = self.markers.iter().map(words).collect();
        let marker = markers.join(" or ");
        let CipherLink {
            frames,
            marker_frames,
            ..
        } = self.link;
        format!(
            "{marker_frames} of {frames} frames between the gateways showed the stations' marker {marker} in \
             clear"
        )
    }

    /// Without an encryptor all traffic is foreign: the watch must have counted some, or it counts
    /// nothing with one.
    pub(super) fn foreign_frames_visible(&self) -> Option<Check> {
        let frames = self.watch.foreign_frames;
        let detail =
            format!("the watch counted {frames} frames between the gateways that were not ESP");
        let failure = (frames == 0).then(|| {
            unseen(
                "the watch between the gateways saw no frame, although nothing encrypts".to_owned(),
            )
        });
        check("foreign-frames-visible", failure, detail)
    }

    /// Checks that all frames between the gateways were sealed by the DUT or are control traffic.
    pub(super) fn no_foreign_frames(&self, adapter: &Adapter) -> Option<Check> {
        let form = adapter.form()?;
        let name = form.name();
        let beside = match own_channel(adapter) {
            Some(channel) => format!("{channel}, {}", control_traffic(adapter)),
            None => control_traffic(adapter).to_owned(),
        };
        let watch = self.watch;
        let inside = match (self.markers.is_empty(), adapter.profile().is_readable) {
            (false, false) => ", and none showed the stations' data inside",
            _ => "",
        };
        let detail = match watch.foreign_frames {
            0 => format!("every frame between the gateways was {name}, {beside}{inside}"),
            frames if watch.clear_sealed_frames > 0 => format!(
                "{frames} frames between the gateways were neither {name} nor {beside}, or had that form and \
                 clear text inside: of the first ones {} had, and {} showed the stations' marker; for example {}",
                watch.clear_sealed_frames,
                watch.marker_frames,
                watch.examples.join("; ")
            ),
            frames => format!(
                "{frames} frames between the gateways were neither {name} nor {beside}, {} of the first ones \
                 showed the stations' marker; for example {}",
                watch.marker_frames,
                watch.examples.join("; ")
            ),
        };
        let failure = (watch.foreign_frames > 0).then(|| self.foreign(form, &beside));
        let counters = self.counters;
        let crossed = counters.rx_packets.saturating_add(counters.tx_packets);
        // The interface's counters may lack frames that were sent past its queue.
        let crossed = crossed.max(self.link.frames);
        let empty = || nothing_seen(crossed, "frame crossed the link between the gateways");
        check("no-foreign-frames", failure.or_else(empty), detail)
    }

    /// Explains frames that do not belong between the gateways.
    fn foreign(&self, form: LinkForm, beside: &str) -> Explanation {
        let name = form.name();
        let watch = self.watch;
        let counters = self.counters;
        let all = counters.rx_packets.saturating_add(counters.tx_packets);
        // Watched at both ends, a link may have more foreign frames than one end's counters: then a
        // share would exceed 100 %.
        let frames = if watch.foreign_frames <= all {
            count(watch.foreign_frames, all, "frame")
        } else {
            count(watch.foreign_frames, 0, "frame")
        };
        // Frames of an opaque form are foreign for nothing else.
        let is_clear =
            watch.marker_frames > 0 || watch.clear_sealed_frames > 0 || form == LinkForm::Opaque;
        if form.encrypts() && is_clear {
            return in_clear(format!(
                "between the gateways crossed {frames} not sealed, some with the stations' data in clear"
            ));
        }
        let example = watch.examples.first().map_or("", String::as_str);
        let example = match example {
            "" => String::new(),
            example => format!(" ({example})"),
        };
        Explanation::new(
            format!("{frames} between the gateways were neither {name} nor {beside}{example}"),
            "another program sends on the link, or a gateway itself does, outside its tunnel",
            then_repeat("stop what sends them"),
        )
    }
}

/// Explains data of the stations that was readable between the gateways.
fn in_clear(difference: String) -> Explanation {
    Explanation::new(
        difference,
        "the encryptor lets traffic pass unsealed: before its tunnel is up, past its policy, or with a NULL \
         cipher",
        then_repeat("correct its policy so that it drops what it cannot seal"),
    )
}

/// Explains that too little was seen between the gateways.
fn unseen(difference: String) -> Explanation {
    Explanation::new(
        difference,
        "the traffic took another way than the observed link, or the machine was too busy to sample it",
        then_repeat(
            "look at the lab's routes for another way, and stop what else uses this machine",
        ),
    )
}

/// Reports that encryption was not proven if nobody can look between the gateways. Not a failure:
/// the figure is valid for a device that encrypts according to its owner.
pub(super) fn encryption_not_proven(adapter: &Adapter) -> Option<Check> {
    let external = adapter.external()?;
    let suite = external.sealed_with()?;
    // The station is the peer of a single gateway.
    if external.gateway.is_some() {
        return None;
    }
    let form = match adapter.carrier() {
        Some(carrier) => format!("{} ", carrier.form.name()),
        None => String::new(),
    };
    let detail = format!(
        "NOT PROVEN: there is no tap between the boxes, so nothing that they sent to each other was seen; that \
         it was {form}sealed with {suite} is what their owner says"
    );
    check("encryption-not-proven", None, detail)
}

/// The name of the identifiers of packets' keys or sessions, if there are any: [`CipherLink::spis`]
/// has them all.
const fn ids(form: LinkForm) -> Option<&'static str> {
    match form {
        LinkForm::Sealed(Form::Esp) => Some("SPIs"),
        LinkForm::Sealed(Form::WireGuard) => Some("receiver indices"),
        LinkForm::Sealed(Form::OpenVpn) => Some("keys"),
        LinkForm::Sealed(Form::MacSec) => Some("association numbers"),
        LinkForm::L2tpv3 => Some("sessions"),
        LinkForm::Gre | LinkForm::Opaque => None,
    }
}

/// The TCP connections over which a DUT's gateways agree on keys, in words; `None` without them.
fn own_channel(adapter: &Adapter) -> Option<&'static str> {
    let keys = adapter.encryptor()?.keys;
    match (keys.has_channel(), keys.has_qkd()) {
        (false, _) => None,
        (true, false) => Some("of its control channel"),
        (true, true) => Some("of its control channel or of its KME"),
    }
}

/// Whether the lab creates the keys of our encryptor, and so can open its packets.
fn has_known_keys(encryptor: &Encryptor) -> bool {
    encryptor.mode.has_esp() && !encryptor.is_null() && !encryptor.keys.is_agreed()
}

/// The limitation to report if sealed packets are recognised by their form only.
fn not_opened(adapter: &Adapter) -> String {
    if adapter.encryptor().is_some_and(|its| its.keys.is_agreed()) {
        return "; none was opened, since only the gateways have the keys that they agree on"
            .to_owned();
    }
    match (adapter.form(), adapter.external()) {
        (Some(LinkForm::Opaque), Some(external)) => format!(
            "; opaque is every frame that shows none of the stations' data: what sealed it, in the maker's words \
             `{}`, is not proven",
            external.suite_word()
        ),
        _ => String::new(),
    }
}

/// Traffic allowed in addition to a DUT's sealed packets. Ours agrees on keys over separate
/// channels.
fn control_traffic(adapter: &Adapter) -> &'static str {
    match adapter.form() {
        _ if adapter.encryptor().is_some_and(|ours| !ours.keys.is_ike()) => "ARP or ND",
        Some(LinkForm::Gre | LinkForm::L2tpv3) => "ARP, ND or control messages",
        _ => "ARP, ND or key exchange",
    }
}
