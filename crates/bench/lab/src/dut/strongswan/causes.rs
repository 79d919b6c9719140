//! Why a tunnel did not come up, from a daemon's log. IKE's notifications report only the peer's
//! view (RFC 7296 §3.10.1).

/// The meaning of a line of the log.
struct Known {
    /// The parts of each line that means this, in any order.
    lines: &'static [&'static [&'static str]],
    /// The device's behaviour, as the rest of a sentence.
    what: &'static str,
    /// What to do.
    help: &'static str,
}

const fn row(
    lines: &'static [&'static [&'static str]],
    what: &'static str,
    help: &'static str,
) -> Known {
    Known { lines, what, help }
}

const SAME_PPK: &str =
    "give both the same secret and identity by `ppk_file` and `ppk_id`, or leave both out";
const SAME_IDS: &str =
    "write the identity that the device shows as `box_id`, and the one that it expects as `own_id`";
const SELECTORS: &str = "give the device 198.18.0.0/16 on its own side and 198.19.0.0/16 on the station's, single \
                         addresses of them with several `tunnels`, or write `selectors: any`";

/// All known causes: this side's findings come before the peer's answers, which say less.
const KNOWN: &[Known] = &[
    row(
        &[&["no shared key found for"]],
        "shows an identity that the station has no secret for",
        SAME_IDS,
    ),
    row(
        &[&["shared key", "MAC mismatched"]],
        "has another pre-shared key than the station",
        "give both the same secret: the station's is the first line of `psk_file`",
    ),
    row(
        &[&["PPK required"], &["peer didn't use PPK"]],
        "does not use the post-quantum pre-shared key",
        SAME_PPK,
    ),
    row(
        &[&["received PPK_ID", "but require"]],
        "names another post-quantum pre-shared key",
        SAME_PPK,
    ),
    row(
        &[&["constraint check failed", "identity"]],
        "shows another identity than the station expects",
        SAME_IDS,
    ),
    row(
        &[&["certificate invalid (valid from"]],
        "shows a certificate that is not valid today",
        "renew the certificate, or set the clocks of the device and of this machine",
    ),
    row(
        &[
            &["no issuer certificate found for"],
            &["self-signed certificate", "is not trusted"],
        ],
        "shows a certificate of an authority that the station was not given",
        "write the authority that issued it as `ca_file`",
    ),
    row(
        &[&["no trusted", "public key found for"]],
        "shows no certificate of its identity",
        "give the device a certificate with `box_id` as subject or alternative name, by the authority of `ca_file`",
    ),
    row(
        &[&["no private key found for"]],
        "cannot be shown a certificate: the station has none of its identity",
        "the certificate of `certificate_file` must have `own_id` as subject or alternative name, and the key of `key_file`",
    ),
    row(
        &[&["no matching peer config found"]],
        "asks for other identities than the station has",
        SAME_IDS,
    ),
    row(
        &[&["received AUTHENTICATION_FAILED"]],
        "refuses the station's authentication (AUTHENTICATION_FAILED): secret, certificate or identity",
        "compare in both the secret (`psk_file`), or the certificates and their authorities, `own_id` and `box_id`, and a \
         PPK; the device's log has the reason",
    ),
    row(
        &[&["received NO_PROPOSAL_CHOSEN", "no CHILD_SA built"]],
        "refuses the suite for ESP (NO_PROPOSAL_CHOSEN)",
        "give the device the suite of the campaign for ESP; a strongSwan that lacks it in its data path answers so too",
    ),
    row(
        &[&["received NO_PROPOSAL_CHOSEN"]],
        "refuses the proposal for IKE (NO_PROPOSAL_CHOSEN)",
        "write what the device accepts as `ike`; a device that knows no peer of the station's address \
         answers so too",
    ),
    row(
        &[&["received TS_UNACCEPTABLE"]],
        "refuses the traffic selectors (TS_UNACCEPTABLE)",
        SELECTORS,
    ),
    row(
        &[
            &["no acceptable traffic selectors found"],
            &["traffic selectors", "unacceptable"],
        ],
        "asks for other traffic selectors",
        SELECTORS,
    ),
    row(
        &[&["received SINGLE_PAIR_REQUIRED"]],
        "wants a single pair of addresses in each tunnel (SINGLE_PAIR_REQUIRED)",
        "write the number of `tunnels`",
    ),
    row(
        &[&["received NO_ADDITIONAL_SAS"]],
        "takes no further tunnel (NO_ADDITIONAL_SAS)",
        "write fewer `tunnels`, or raise its limit",
    ),
    row(
        &[&["received INTERNAL_ADDRESS_FAILURE"]],
        "wants to assign an address to the station (INTERNAL_ADDRESS_FAILURE)",
        "configure a connection between sites in it, and not one of a mobile client",
    ),
    row(
        &[&["received FAILED_CP_REQUIRED"]],
        "wants to assign an address to the station (FAILED_CP_REQUIRED)",
        "configure a connection between sites in it, and not one of a mobile client",
    ),
    row(
        &[
            &["already retried with DH group"],
            &["requested DH group", "not"],
            &["received INVALID_KE_PAYLOAD"],
        ],
        "wants another key exchange than the station proposes (INVALID_KE_PAYLOAD)",
        "write a group that the device has in `ike`, as in `aes256-sha256-modp2048`",
    ),
    row(
        &[&["received INVALID_MAJOR_VERSION"]],
        "does not speak IKEv2 (INVALID_MAJOR_VERSION)",
        "configure IKEv2 in it",
    ),
    row(
        &[&["received INVALID_SYNTAX"]],
        "does not understand what the station says (INVALID_SYNTAX)",
        "compare the secret and `ike` in both: some devices answer so to another secret",
    ),
    row(
        &[&["received UNSUPPORTED_CRITICAL_PAYLOAD"]],
        "does not know a part of what the station asks for (UNSUPPORTED_CRITICAL_PAYLOAD)",
        "leave `ml_kem` and `ppk_file` out",
    ),
    row(
        &[&["received TEMPORARY_FAILURE"]],
        "is busy with another exchange (TEMPORARY_FAILURE)",
        "let only one side set up and renew the tunnels",
    ),
    row(
        &[&["unable to install"]],
        "has agreed, and strongSwan on this side could not install what was agreed on",
        "strongSwan may lack the suite in its data path: take another one",
    ),
    row(
        &[
            &["proposals unacceptable"],
            &["no acceptable proposal found"],
        ],
        "proposes nothing that the station accepts",
        "give the device the suite of the campaign for ESP, and what `ike` has for IKE",
    ),
];

/// Why a tunnel did not come up.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cause {
    /// The device's behaviour, as the rest of a sentence.
    pub(super) what: String,
    /// What to do.
    pub(super) help: &'static str,
}

/// Finds the cause in the lines of a log that begins with the first attempt; without a known cause,
/// describes how far the two sides came.
pub(super) fn cause(log: &str) -> Cause {
    known(log).unwrap_or_else(|| silence(log))
}

/// Finds a cause that a line of a log names.
pub(super) fn known(log: &str) -> Option<Cause> {
    let is_in = |known: &&Known| {
        let means_it = |line: &str| {
            let mut known = known.lines.iter();
            known.any(|parts| parts.iter().all(|part| line.contains(part)))
        };
        log.lines().any(means_it)
    };
    if let Some(known) = KNOWN.iter().find(is_in) {
        return Some(Cause {
            what: known.what.to_owned(),
            help: known.help,
        });
    }
    // The last one: a refusal may have been answered by a retry that succeeded.
    let notify = log.lines().rev().find_map(refusal)?;
    Some(Cause {
        what: format!("refuses what the station asks for ({notify})"),
        help: "look in the device's log for the reason",
    })
}

/// Describes how far the two sides came without a refusal.
fn silence(log: &str) -> Cause {
    let has = |part: &str| log.lines().any(|line| line.contains(part));
    let (asked, answered) = (has("sending packet: "), has("received packet: "));
    let (what, help) = match (asked, answered) {
        (true, false) => (
            "does not answer IKE",
            "see whether it runs, has its address at the cipher side, and takes UDP from the station on ports 500 and 4500",
        ),
        (true, true) if has("retransmit ") => (
            "answered IKE at first and then no more",
            "see whether it takes UDP port 4500 and long packets, and look in its log: some devices do not answer to an \
             identity or a secret that they do not know",
        ),
        (true, true) => (
            "answers IKE without coming to an end",
            "look in the device's log, or write a longer `ready`",
        ),
        (false, _) => (
            "did not begin IKE",
            "see whether it runs and has the station's address as its peer, or write `initiator: station`",
        ),
    };
    Cause {
        what: what.to_owned(),
        help,
    }
}

/// Returns the error notification that a line reports.
fn refusal(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("received ")?;
    let (notify, rest) = rest.split_once(" notify")?;
    let is_error = rest.starts_with(" error") || rest.starts_with(", no CHILD_SA built");
    (is_error && !notify.contains(' ')).then_some(notify)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Log of strongSwan 5.9.8 as the station, up to the first difference in the device's answers.
    const ASKED: &str = "\
        01[IKE] initiating IKE_SA t[1] to 192.0.2.1\n\
        01[NET] sending packet: from 192.0.2.2[500] to 192.0.2.1[500] (464 bytes)\n";
    const AUTHENTICATED: &str = "\
        02[NET] received packet: from 192.0.2.1[500] to 192.0.2.2[500] (472 bytes)\n\
        02[CFG] selected proposal: IKE:AES_CBC_256/HMAC_SHA2_256_128/PRF_HMAC_SHA2_256/MODP_2048\n\
        02[IKE] remote host is behind NAT\n\
        02[IKE] authentication of 's' (myself) with pre-shared key\n\
        02[IKE] establishing CHILD_SA c0{1}\n\
        02[NET] sending packet: from 192.0.2.2[4500] to 192.0.2.1[4500] (240 bytes)\n";
    const ESTABLISHED: &str = "\
        15[NET] received packet: from 192.0.2.1[4500] to 192.0.2.2[4500] (80 bytes)\n\
        12[IKE] authentication of 'b' with pre-shared key successful\n\
        12[IKE] IKE_SA t[1] established between 192.0.2.2[s]...192.0.2.1[b]\n";

    fn what(log: &[&str]) -> String {
        cause(&log.concat()).what
    }

    #[test]
    fn each_notification_has_its_cause() {
        let answered =
            "15[NET] received packet: from 192.0.2.1[500] to 192.0.2.2[500] (36 bytes)\n";
        for (log, expected) in [
            (
                &[
                    ASKED,
                    answered,
                    "15[IKE] received NO_PROPOSAL_CHOSEN notify error",
                ][..],
                "refuses the proposal for IKE",
            ),
            (
                &[
                    ASKED,
                    AUTHENTICATED,
                    "14[IKE] received AUTHENTICATION_FAILED notify error",
                ],
                "refuses the station's authentication",
            ),
            (
                &[
                    ASKED,
                    AUTHENTICATED,
                    ESTABLISHED,
                    "01[IKE] received NO_PROPOSAL_CHOSEN notify, no CHILD_SA built",
                ],
                "refuses the suite for ESP",
            ),
            (
                &[
                    ASKED,
                    AUTHENTICATED,
                    ESTABLISHED,
                    "12[IKE] received TS_UNACCEPTABLE notify, no CHILD_SA built",
                ],
                "refuses the traffic selectors",
            ),
            (
                &[
                    ASKED,
                    answered,
                    "10[IKE] received INVALID_KE_PAYLOAD notify error",
                ],
                "wants another key exchange",
            ),
            (
                &[
                    ASKED,
                    AUTHENTICATED,
                    "10[CFG] PPK required but peer does not support PPK",
                ],
                "does not use the post-quantum",
            ),
            (
                &[
                    ASKED,
                    AUTHENTICATED,
                    "12[CFG]   issuer is \"CN=Other\"\n12[CFG] no issuer certificate found for \"CN=edge\"\n\
                  12[IKE] no trusted ECDSA public key found for 'edge.example'",
                ],
                "shows a certificate of an authority",
            ),
            (
                &[
                    ASKED,
                    AUTHENTICATED,
                    "12[CFG] subject certificate invalid (valid from Jan 01 00:00:00 2020 to Jan 02 00:00:00 2020)",
                ],
                "shows a certificate that is not valid today",
            ),
            (
                &[
                    ASKED,
                    AUTHENTICATED,
                    "12[IKE] no trusted ECDSA public key found for 'edge.example'",
                ],
                "shows no certificate of its identity",
            ),
            (
                &[
                    ASKED,
                    AUTHENTICATED,
                    "12[CFG] constraint check failed: identity 'edge.example' required ",
                ],
                "shows another identity",
            ),
            (
                &[
                    ASKED,
                    AUTHENTICATED,
                    ESTABLISHED,
                    "12[IKE] unable to install IPsec policies (SPD) in kernel",
                ],
                "has agreed, and strongSwan on this side",
            ),
            (
                &[
                    ASKED,
                    AUTHENTICATED,
                    "10[IKE] received NONSENSE notify error",
                ],
                "refuses what the station asks for (NONSENSE)",
            ),
            (
                &[ASKED, "09[IKE] retransmit 1 of request with message ID 0"],
                "does not answer IKE",
            ),
            (
                &[
                    ASKED,
                    AUTHENTICATED,
                    "09[IKE] retransmit 1 of request with message ID 1",
                ],
                "answered IKE at first",
            ),
            (&["05[CFG] loaded 1 connection"], "did not begin IKE"),
        ] {
            let found = what(log);
            assert!(found.starts_with(expected), "{found}: {log:?}");
        }
    }

    /// A retry that succeeded is no cause.
    #[test]
    fn what_was_agreed_on_at_last_is_no_cause() {
        let retried = "15[IKE] peer didn't accept DH group CURVE_25519, it requested MODP_2048\n";
        let log = [ASKED, retried, AUTHENTICATED, ESTABLISHED];
        assert_eq!(what(&log), "answers IKE without coming to an end");
    }
}
