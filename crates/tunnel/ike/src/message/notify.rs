//! Notify payloads: types with their names, meanings and sizes of data.

use super::registry::registry;
use std::ops::RangeInclusive;

registry! {
    /// The type of a notification; below 16384 it is an error.
    NotifyType(u16);
    UNSUPPORTED_CRITICAL_PAYLOAD = 1, "RFC 7296 section 2.5", "a critical payload is unknown; data: its type";
    INVALID_IKE_SPI = 4, "RFC 7296 section 2.21", "no IKE SA has these SPIs";
    INVALID_MAJOR_VERSION = 5, "RFC 7296 section 2.5", "the version is not spoken";
    INVALID_SYNTAX = 7, "RFC 7296 section 2.21.3", "a message is malformed";
    INVALID_MESSAGE_ID = 9, "RFC 7296 section 2.3", "a message ID is outside of the window";
    INVALID_SPI = 11, "RFC 7296 section 1.5", "an ESP packet has an unknown SPI";
    NO_PROPOSAL_CHOSEN = 14, "RFC 7296 section 2.7", "no proposal is acceptable";
    INVALID_KE_PAYLOAD = 17, "RFC 7296 section 1.3", "another key exchange is wanted; data: its method";
    AUTHENTICATION_FAILED = 24, "RFC 7296 section 2.21.2", "authentication failed";
    SINGLE_PAIR_REQUIRED = 34, "RFC 7296 section 2.9", "selectors must have one pair of addresses";
    NO_ADDITIONAL_SAS = 35, "RFC 7296 section 1.3", "no further child SAs";
    INTERNAL_ADDRESS_FAILURE = 36, "RFC 7296 section 3.15.4", "no address can be assigned";
    FAILED_CP_REQUIRED = 37, "RFC 7296 section 3.15.4", "a configuration request was expected";
    TS_UNACCEPTABLE = 38, "RFC 7296 section 2.9", "no traffic selector is acceptable";
    INVALID_SELECTORS = 39, "RFC 7296 section 3.10.1", "an ESP packet violates its SA's selectors";
    UNACCEPTABLE_ADDRESSES = 40, "RFC 4555", "new addresses are not accepted";
    UNEXPECTED_NAT_DETECTED = 41, "RFC 4555", "a NAT was found though none is allowed";
    USE_ASSIGNED_HOA = 42, "RFC 5026", "the assigned home address must be used";
    TEMPORARY_FAILURE = 43, "RFC 7296 section 2.25", "collision of exchanges: try again later";
    CHILD_SA_NOT_FOUND = 44, "RFC 7296 section 2.25", "the child SA to rekey is unknown";
    INVALID_GROUP_ID = 45, "RFC 9838", "the group is unknown";
    AUTHORIZATION_FAILED = 46, "RFC 9838", "no member of the group";
    STATE_NOT_FOUND = 47, "RFC 9370 section 2.2.4", "the additional key exchanges are unknown";
    TS_MAX_QUEUE = 48, "RFC 9611 section 6", "no further child SA for these selectors";
    INITIAL_CONTACT = 16384, "RFC 7296 section 2.4", "the only IKE SA between these identities";
    SET_WINDOW_SIZE = 16385, "RFC 7296 section 2.3", "window of requests";
    ADDITIONAL_TS_POSSIBLE = 16386, "RFC 7296 section 2.9", "further selectors need another child SA";
    IPCOMP_SUPPORTED = 16387, "RFC 7296 section 2.22", "IPComp, with its CPI";
    NAT_DETECTION_SOURCE_IP = 16388, "RFC 7296 section 2.23", "hash of the source address";
    NAT_DETECTION_DESTINATION_IP = 16389, "RFC 7296 section 2.23", "hash of the destination address";
    COOKIE = 16390, "RFC 7296 section 2.6", "proof of the initiator's address";
    USE_TRANSPORT_MODE = 16391, "RFC 7296 section 1.3.1", "transport mode";
    HTTP_CERT_LOOKUP_SUPPORTED = 16392, "RFC 7296 section 3.6", "certificates by hash and address";
    REKEY_SA = 16393, "RFC 7296 section 1.3.3", "the child SA that is rekeyed";
    ESP_TFC_PADDING_NOT_SUPPORTED = 16394, "RFC 7296 section 1.3.1", "no padding against traffic analysis";
    NON_FIRST_FRAGMENTS_ALSO = 16395, "RFC 7296 section 1.3.1", "fragments without ports use this SA too";
    MOBIKE_SUPPORTED = 16396, "RFC 4555", "addresses may change";
    ADDITIONAL_IP4_ADDRESS = 16397, "RFC 4555", "a further IPv4 address";
    ADDITIONAL_IP6_ADDRESS = 16398, "RFC 4555", "a further IPv6 address";
    NO_ADDITIONAL_ADDRESSES = 16399, "RFC 4555", "no further addresses";
    UPDATE_SA_ADDRESSES = 16400, "RFC 4555", "the SAs move to the addresses of this message";
    COOKIE2 = 16401, "RFC 4555", "test of the return path";
    NO_NATS_ALLOWED = 16402, "RFC 4555", "addresses that a NAT must not change";
    AUTH_LIFETIME = 16403, "RFC 4478", "time until authentication must be repeated";
    MULTIPLE_AUTH_SUPPORTED = 16404, "RFC 4739", "several authentications";
    ANOTHER_AUTH_FOLLOWS = 16405, "RFC 4739", "another authentication follows";
    REDIRECT_SUPPORTED = 16406, "RFC 5685", "redirection is possible";
    REDIRECT = 16407, "RFC 5685", "another gateway is responsible";
    REDIRECTED_FROM = 16408, "RFC 5685", "the gateway that redirected";
    TICKET_LT_OPAQUE = 16409, "RFC 5723", "ticket with its lifetime";
    TICKET_REQUEST = 16410, "RFC 5723", "asks for a ticket";
    TICKET_ACK = 16411, "RFC 5723", "a ticket will follow";
    TICKET_NACK = 16412, "RFC 5723", "no ticket, or none that is valid";
    TICKET_OPAQUE = 16413, "RFC 5723", "ticket";
    LINK_ID = 16414, "RFC 5739", "link of an IPv6 address";
    USE_WESP_MODE = 16415, "RFC 5840", "wrapped ESP";
    ROHC_SUPPORTED = 16416, "RFC 5857", "compression of headers";
    EAP_ONLY_AUTHENTICATION = 16417, "RFC 5998", "authentication by EAP alone";
    CHILDLESS_IKEV2_SUPPORTED = 16418, "RFC 6023", "an IKE SA without child SAs";
    QUICK_CRASH_DETECTION = 16419, "RFC 6290", "token that proves a restart";
    IKEV2_MESSAGE_ID_SYNC_SUPPORTED = 16420, "RFC 6311", "message IDs can be synchronised";
    IPSEC_REPLAY_COUNTER_SYNC_SUPPORTED = 16421, "RFC 6311", "replay counters can be synchronised";
    IKEV2_MESSAGE_ID_SYNC = 16422, "RFC 6311", "message IDs after a failover";
    IPSEC_REPLAY_COUNTER_SYNC = 16423, "RFC 6311", "replay counters after a failover";
    SECURE_PASSWORD_METHODS = 16424, "RFC 6467", "secure password methods";
    PSK_PERSIST = 16425, "RFC 6631", "the derived key may be stored";
    PSK_CONFIRM = 16426, "RFC 6631", "the derived key is stored";
    ERX_SUPPORTED = 16427, "RFC 6867", "EAP can be repeated quickly";
    IFOM_CAPABILITY = 16428, "3GPP TS 24.303", "flow mobility";
    GROUP_SENDER = 16429, "RFC 9838", "wants to send to the group";
    IKEV2_FRAGMENTATION_SUPPORTED = 16430, "RFC 7383 section 2.3", "messages may be fragmented";
    SIGNATURE_HASH_ALGORITHMS = 16431, "RFC 7427 section 4", "hashes accepted in signatures";
    CLONE_IKE_SA_SUPPORTED = 16432, "RFC 7791", "IKE SAs can be cloned";
    CLONE_IKE_SA = 16433, "RFC 7791", "the new IKE SA is a clone";
    PUZZLE = 16434, "RFC 8019", "a puzzle must be solved";
    USE_PPK = 16435, "RFC 8784 section 3", "post-quantum pre-shared keys in IKE_AUTH";
    PPK_IDENTITY = 16436, "RFC 8784 section 3", "the PPK's identity";
    NO_PPK_AUTH = 16437, "RFC 8784 section 3", "AUTH for a responder without the PPK";
    INTERMEDIATE_EXCHANGE_SUPPORTED = 16438, "RFC 9242 section 3.1", "IKE_INTERMEDIATE is possible";
    IP4_ALLOWED = 16439, "RFC 8983", "an IPv4 address may be assigned";
    IP6_ALLOWED = 16440, "RFC 8983", "an IPv6 address may be assigned";
    ADDITIONAL_KEY_EXCHANGE = 16441, "RFC 9370 section 2.2.4", "links the exchanges of one SA";
    USE_AGGFRAG = 16442, "RFC 9347 section 5.1", "AGGFRAG payloads";
    SUPPORTED_AUTH_METHODS = 16443, "RFC 9593", "accepted methods of authentication";
    SA_RESOURCE_INFO = 16444, "RFC 9611 section 6", "the resource, such as a CPU, of a child SA";
    USE_PPK_INT = 16445, "RFC 9867", "PPKs in IKE_INTERMEDIATE and CREATE_CHILD_SA";
    PPK_IDENTITY_KEY = 16446, "RFC 9867", "the PPK's identity, with a proof of the key";
}

impl NotifyType {
    /// Whether it reports an error (RFC 7296 section 3.10.1).
    #[must_use]
    pub const fn is_error(self) -> bool {
        self.0 < 16384
    }

    /// The permitted sizes of its data, in bytes.
    #[must_use]
    pub fn data_bytes(self) -> RangeInclusive<usize> {
        match self {
            Self::COOKIE => 1..=64,
            Self::COOKIE2 => 8..=64,
            Self::NAT_DETECTION_SOURCE_IP | Self::NAT_DETECTION_DESTINATION_IP => 20..=20,
            Self::INVALID_KE_PAYLOAD => 2..=2,
            Self::SET_WINDOW_SIZE | Self::AUTH_LIFETIME | Self::ADDITIONAL_IP4_ADDRESS => 4..=4,
            Self::ADDITIONAL_IP6_ADDRESS => 16..=16,
            // Empty in a response (RFC 8784 section 3).
            Self::PPK_IDENTITY => 0..=usize::MAX,
            // The type of the identity, the identity, and 8 bytes of confirmation.
            Self::PPK_IDENTITY_KEY => 10..=usize::MAX,
            Self::ADDITIONAL_KEY_EXCHANGE | Self::NO_PPK_AUTH => 1..=usize::MAX,
            Self::SIGNATURE_HASH_ALGORITHMS => 2..=usize::MAX,
            _ => 0..=usize::MAX,
        }
    }
}

/// A notify payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notify {
    /// The type.
    pub kind: NotifyType,
    /// The child SA that it concerns.
    pub sa: Option<ChildSpi>,
    /// Data, as the type defines them.
    pub data: Vec<u8>,
}

/// The SPI of a child SA, with its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChildSpi {
    /// ESP or AH.
    pub protocol: super::Protocol,
    /// The SPI.
    pub spi: u32,
}

impl Notify {
    /// A notification about the IKE SA, or about none.
    #[must_use]
    pub fn new(kind: NotifyType, data: impl Into<Vec<u8>>) -> Self {
        Self {
            kind,
            sa: None,
            data: data.into(),
        }
    }
}
