"""The other end of an SA by scapy: one request per line on standard input, one answer per line on standard output.

    open SUITE KEYMAT KEY-BYTES SPI HIGH ESP-PACKET               -> inner packet
    seal SUITE KEYMAT KEY-BYTES SPI HIGH LOW IV INNER-PACKET      -> ESP packet

Numbers are decimal, bytes hexadecimal, `-` is no bytes; HIGH and LOW are the halves of the extended sequence number,
and HIGH is `-` for a short one.
KEY-BYTES of the keying material are the cipher's; the rest is the AEAD's salt or the HMAC's key.

scapy supports extended sequence numbers for AEADs. For HMACs its ESP omits the high half in older versions (2.5.0) and
adds it in newer ones (2.8.0). Here every version is told that there is none, and it is added as RFC 4303 §2.2.1
requires: behind all other authenticated data.
"""

import struct
import sys

from scapy.layers.inet import IP
from scapy.layers.ipsec import AUTH_ALGOS, ESP, AuthAlgo, SecurityAssociation

AEADS = {
    "aes-128-gcm": "AES-GCM",
    "aes-256-gcm": "AES-GCM",
    "chacha20-poly1305": "CHACHA20-POLY1305",
}
CIPHERS = {
    "null": "NULL",
    "des-cbc": "DES",
    "3des-cbc": "3DES",
    "aes-128-cbc": "AES-CBC",
    "aes-256-cbc": "AES-CBC",
}
HMACS = {
    "md5": "HMAC-MD5-96",
    "sha1": "HMAC-SHA1-96",
    "sha256": "SHA2-256-128",
    "sha512": "SHA2-512-256",
}
OUTER = IP(src="192.0.2.1", dst="192.0.2.2")


class ExtendedMac:
    """A MAC that takes the high half last."""

    def __init__(self, mac, high):
        self.mac, self.high = mac, high
        self.update = mac.update

    def finalize(self):
        self.mac.update(struct.pack("!L", self.high))
        return self.mac.finalize()


class ExtendedAuth(AuthAlgo):
    """One of scapy's algorithms with extended sequence numbers in ESP."""

    def __init__(self, algorithm, high):
        super().__init__(algorithm.name, algorithm.mac, algorithm.digestmod, algorithm.icv_size, algorithm.key_size)
        self.high = high

    def new_mac(self, key):
        return ExtendedMac(super().new_mac(key), self.high)

    def sign(self, pkt, key, **_extended):
        return super().sign(pkt, key)

    def verify(self, pkt, key, **_extended):
        super().verify(pkt, key)


def association(suite, keymat, key_bytes, spi, high):
    common = {"spi": spi, "tunnel_header": OUTER, "esn_en": high is not None, "esn": high or 0}
    if suite in AEADS:
        return SecurityAssociation(ESP, crypt_algo=AEADS[suite], crypt_key=keymat, **common)
    cipher, hmac = suite.split("-hmac-")
    sa = SecurityAssociation(
        ESP,
        crypt_algo=CIPHERS[cipher],
        crypt_key=keymat[:key_bytes],
        auth_algo=HMACS[hmac],
        auth_key=keymat[key_bytes:],
        **common,
    )
    if high is not None:
        sa.auth_algo = ExtendedAuth(AUTH_ALGOS[HMACS[hmac]], high)
    return sa


def octets(text):
    return b"" if text == "-" else bytes.fromhex(text)


def answer(verb, suite, keymat, key_bytes, spi, high, *rest):
    high = None if high == "-" else int(high)
    sa = association(suite, octets(keymat), int(key_bytes), int(spi), high)
    if verb == "open":
        (packet,) = rest
        return bytes(sa.decrypt(OUTER / ESP(octets(packet))))
    low, iv, packet = rest
    return bytes(sa.encrypt(IP(octets(packet)), seq_num=int(low), iv=octets(iv))[ESP])


for line in sys.stdin:
    print(answer(*line.split()).hex(), flush=True)
