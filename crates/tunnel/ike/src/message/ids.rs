//! Types of exchanges and payloads, protocols, identities, certificates and methods.

use super::registry::registry;

registry! {
    /// The exchange of a message.
    Exchange(u8);
    IKE_SA_INIT = 34, "RFC 7296 section 1.2", "keys of the IKE SA";
    IKE_AUTH = 35, "RFC 7296 section 1.2", "authentication, and the first child SA";
    CREATE_CHILD_SA = 36, "RFC 7296 section 1.3", "a further SA, or new keys of one";
    INFORMATIONAL = 37, "RFC 7296 section 1.4", "deletes, errors, and the check that the peer lives";
    IKE_SESSION_RESUME = 38, "RFC 5723", "resumption of an IKE SA by a ticket";
    IKE_INTERMEDIATE = 43, "RFC 9242", "data between IKE_SA_INIT and IKE_AUTH";
    IKE_FOLLOWUP_KE = 44, "RFC 9370", "additional key exchanges after CREATE_CHILD_SA";
}

registry! {
    /// The type of a payload.
    PayloadType(u8);
    NONE = 0, "RFC 7296 section 3.2", "no next payload";
    SA = 33, "RFC 7296 section 3.3", "security association: proposals";
    KE = 34, "RFC 7296 section 3.4", "key exchange";
    ID_I = 35, "RFC 7296 section 3.5", "identity of the initiator";
    ID_R = 36, "RFC 7296 section 3.5", "identity of the responder";
    CERT = 37, "RFC 7296 section 3.6", "certificate";
    CERTREQ = 38, "RFC 7296 section 3.7", "certificate request";
    AUTH = 39, "RFC 7296 section 3.8", "authentication";
    NONCE = 40, "RFC 7296 section 3.9", "nonce";
    NOTIFY = 41, "RFC 7296 section 3.10", "notification";
    DELETE = 42, "RFC 7296 section 3.11", "deleted SAs";
    VENDOR_ID = 43, "RFC 7296 section 3.12", "vendor's identification";
    TS_I = 44, "RFC 7296 section 3.13", "traffic selectors of the initiator";
    TS_R = 45, "RFC 7296 section 3.13", "traffic selectors of the responder";
    SK = 46, "RFC 7296 section 3.14", "encrypted payloads";
    CP = 47, "RFC 7296 section 3.15", "configuration";
    EAP = 48, "RFC 7296 section 3.16", "extensible authentication";
    GSPM = 49, "RFC 6467", "generic secure password method";
    SKF = 53, "RFC 7383 section 2.5", "fragment of encrypted payloads";
    PS = 54, "RFC 8019", "puzzle solution";
}

impl PayloadType {
    /// Whether RFC 7296 or RFC 7383 defines it: every implementation must know it, or ignores it
    /// because of the missing critical bit.
    #[must_use]
    pub const fn is_parsed(self) -> bool {
        matches!(self.0, 33..=48 | 53)
    }
}

registry! {
    /// The protocol of an SA.
    Protocol(u8);
    IKE = 1, "RFC 7296 section 3.3.1", "the IKE SA";
    AH = 2, "RFC 7296 section 3.3.1", "authentication header";
    ESP = 3, "RFC 7296 section 3.3.1", "encapsulating security payload";
}

registry! {
    /// The type of an identity.
    IdentityType(u8);
    IPV4_ADDR = 1, "RFC 7296 section 3.5", "IPv4 address";
    FQDN = 2, "RFC 7296 section 3.5", "domain name";
    RFC822_ADDR = 3, "RFC 7296 section 3.5", "address of e-mail";
    IPV6_ADDR = 5, "RFC 7296 section 3.5", "IPv6 address";
    DER_ASN1_DN = 9, "RFC 7296 section 3.5", "distinguished name in DER";
    DER_ASN1_GN = 10, "RFC 7296 section 3.5", "general name in DER";
    KEY_ID = 11, "RFC 7296 section 3.5", "opaque bytes";
    FC_NAME = 12, "RFC 4595", "name of Fibre Channel";
    NULL = 13, "RFC 7619", "none";
}

registry! {
    /// The encoding of a certificate.
    CertificateEncoding(u8);
    PKCS7_X509 = 1, "RFC 7296 section 3.6", "X.509 in PKCS #7, not specified further";
    PGP = 2, "RFC 7296 section 3.6", "PGP, not specified further";
    DNS_SIGNED_KEY = 3, "RFC 7296 section 3.6", "key in the DNS, not specified further";
    X509_SIGNATURE = 4, "RFC 7296 section 3.6", "X.509 certificate";
    KERBEROS_TOKEN = 6, "RFC 7296 section 3.6", "Kerberos, not specified further";
    CRL = 7, "RFC 7296 section 3.6", "revocation list";
    ARL = 8, "RFC 7296 section 3.6", "revocation list of authorities, not specified further";
    SPKI = 9, "RFC 7296 section 3.6", "SPKI, not specified further";
    X509_ATTRIBUTE = 10, "RFC 7296 section 3.6", "attribute certificate, not specified further";
    HASH_AND_URL = 12, "RFC 7296 section 3.6", "hash and address of a certificate";
    HASH_AND_URL_BUNDLE = 13, "RFC 7296 section 3.6", "hash and address of a bundle";
    OCSP = 14, "RFC 4806", "OCSP response";
    RAW_PUBLIC_KEY = 15, "RFC 7670", "SubjectPublicKeyInfo";
}

registry! {
    /// The method of an AUTH payload.
    AuthMethod(u8);
    RSA = 1, "RFC 7296 section 3.8", "RSA, PKCS #1 v1.5";
    SHARED_KEY = 2, "RFC 7296 section 3.8", "code made of a shared key";
    DSS = 3, "RFC 7296 section 3.8", "DSS with SHA-1";
    ECDSA_256 = 9, "RFC 4754", "ECDSA on P-256 with SHA-256";
    ECDSA_384 = 10, "RFC 4754", "ECDSA on P-384 with SHA-384";
    ECDSA_521 = 11, "RFC 4754", "ECDSA on P-521 with SHA-512";
    SECURE_PASSWORD = 12, "RFC 6467", "secure password";
    NULL = 13, "RFC 7619", "no authentication";
    DIGITAL_SIGNATURE = 14, "RFC 7427", "signature, with its algorithm";
}

registry! {
    /// A hash of SIGNATURE_HASH_ALGORITHMS.
    SignatureHash(u16);
    SHA1 = 1, "RFC 7427", "SHA-1";
    SHA2_256 = 2, "RFC 7427", "SHA-256";
    SHA2_384 = 3, "RFC 7427", "SHA-384";
    SHA2_512 = 4, "RFC 7427", "SHA-512";
    IDENTITY = 5, "RFC 8420", "the message is not hashed: Ed25519";
    STREEBOG_256 = 6, "RFC 9385", "Streebog, 256 bits";
    STREEBOG_512 = 7, "RFC 9385", "Streebog, 512 bits";
}

registry! {
    /// The type of a configuration payload.
    ConfigurationType(u8);
    REQUEST = 1, "RFC 7296 section 3.15", "asks for values";
    REPLY = 2, "RFC 7296 section 3.15", "answers a request";
    SET = 3, "RFC 7296 section 3.15", "sets values";
    ACK = 4, "RFC 7296 section 3.15", "answers a set";
}

registry! {
    /// The type of a configuration attribute.
    AttributeType(u16);
    INTERNAL_IP4_ADDRESS = 1, "RFC 7296 section 3.15.1", "IPv4 address of the initiator";
    INTERNAL_IP4_NETMASK = 2, "RFC 7296 section 3.15.1", "mask of its network";
    INTERNAL_IP4_DNS = 3, "RFC 7296 section 3.15.1", "name server";
    INTERNAL_IP4_NBNS = 4, "RFC 7296 section 3.15.1", "NetBIOS name server";
    INTERNAL_IP4_DHCP = 6, "RFC 7296 section 3.15.1", "DHCP server";
    APPLICATION_VERSION = 7, "RFC 7296 section 3.15.1", "version, as text";
    INTERNAL_IP6_ADDRESS = 8, "RFC 7296 section 3.15.1", "IPv6 address with prefix length";
    INTERNAL_IP6_DNS = 10, "RFC 7296 section 3.15.1", "name server";
    INTERNAL_IP6_DHCP = 12, "RFC 7296 section 3.15.1", "DHCP server";
    INTERNAL_IP4_SUBNET = 13, "RFC 7296 section 3.15.1", "protected network";
    SUPPORTED_ATTRIBUTES = 14, "RFC 7296 section 3.15.1", "known attributes";
    INTERNAL_IP6_SUBNET = 15, "RFC 7296 section 3.15.1", "protected network";
    INTERNAL_DNS_DOMAIN = 25, "RFC 8598", "domain of the internal name servers";
}
