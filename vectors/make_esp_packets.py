#!/usr/bin/env python3
"""Makes esp-packets.txt: whole ESP packets of every suite by an implementation that is not ours.

scapy (2.5.0) lays out, pads, seals and signs; the ciphers under it are OpenSSL's, by `cryptography`. The inputs
are derived from names, so that each run writes the same file. From this folder:

    python3 make_esp_packets.py > esp-packets.txt
"""

import hashlib
import textwrap

from scapy.layers.inet import IP, UDP
from scapy.layers.ipsec import AUTH_ALGOS, CRYPT_ALGOS, SecurityAssociation, ESP, _ESPPlain
from scapy.packet import raw

AEADS = {
    "aes-256-gcm": ("AES-GCM", 32),
    "aes-128-gcm": ("AES-GCM", 16),
    "chacha20-poly1305": ("CHACHA20-POLY1305", 32),
}
# Name, key length and IV length.
CIPHERS = {
    "aes-256-cbc": ("AES-CBC", 32, 16),
    "aes-128-cbc": ("AES-CBC", 16, 16),
    "3des-cbc": ("3DES", 24, 8),
    "des-cbc": ("DES", 8, 8),
    "null": ("NULL", 0, 0),
}
# Name and key length.
HMACS = {
    "hmac-sha512": ("SHA2-512-256", 64),
    "hmac-sha256": ("SHA2-256-128", 32),
    "hmac-sha1": ("HMAC-SHA1-96", 20),
    "hmac-md5": ("HMAC-MD5-96", 16),
}
SALT = 4
# Payload of the inner UDP datagram, and the sequence number.
PACKETS = [(0, 1), (18, 0x1_0000_0000), (93, 0xDEADBEEF_89ABCDEF), (300, 0xFFFFFFFF_FFFFFFFE)]


def derived(name, length):
    stream = b""
    while len(stream) < length:
        stream += hashlib.sha256(f"{name} {len(stream)}".encode()).digest()
    return stream[:length]


def seal(suite, keymat, crypt, key_bytes, iv, auth, payload, sequence):
    inner = IP(src="10.1.0.1", dst="10.2.0.1", id=7) / UDP(sport=4001, dport=4002) / payload
    esp = _ESPPlain(spi=0x43B12D01, seq=sequence & 0xFFFFFFFF, iv=iv, nh=4, data=raw(inner))
    crypt = CRYPT_ALGOS[crypt]
    esp = crypt.pad(esp)
    text = esp.data_for_encryption()
    keys = dict(crypt_key=keymat) if auth is None else dict(crypt_key=keymat[:key_bytes])
    sa = SecurityAssociation(ESP, spi=esp.spi, crypt_algo=crypt.name, **keys)
    esn = dict(esn_en=True, esn=sequence >> 32)
    esp = crypt.encrypt(sa, esp, sa.crypt_key, **esn)
    sealed = raw(esp)
    if auth is not None:
        # AuthAlgo.sign leaves the high half of the sequence number out of ESP's MAC (RFC 4303 2.2.1).
        auth = AUTH_ALGOS[auth]
        mac = auth.new_mac(keymat[key_bytes:])
        mac.update(sealed + (sequence >> 32).to_bytes(4, "big"))
        sealed += mac.finalize()[: auth.icv_size]
    assert sealed[:8] == esp.spi.to_bytes(4, "big") + (sequence & 0xFFFFFFFF).to_bytes(4, "big")
    assert sealed[8 : 8 + len(iv)] == iv
    return sealed[: 8 + len(iv)], text, sealed[8 + len(iv) :]


def field(name, value):
    line = f"{name} = {value.hex()}".rstrip()
    if len(line) <= 100:
        print(line)
    else:
        print(f"{name} =")
        print(textwrap.indent("\n".join(textwrap.wrap(value.hex(), 96)), "  "))


def suites():
    for suite, (crypt, key_bytes) in AEADS.items():
        yield suite, crypt, key_bytes, 8, None, SALT
    for cipher, (crypt, key_bytes, iv_bytes) in CIPHERS.items():
        for hmac, (auth, auth_bytes) in HMACS.items():
            yield f"{cipher}-{hmac}", crypt, key_bytes, iv_bytes, auth, auth_bytes


print("# ESP packets of every suite, made by scapy and OpenSSL: see make_esp_packets.py.")
for suite, crypt, key_bytes, iv_bytes, auth, rest_bytes in suites():
    for number, (payload_bytes, sequence) in enumerate(PACKETS, 1):
        name = f"{suite} packet {number}"
        keymat = derived(f"{name} keymat", key_bytes + rest_bytes)
        iv = derived(f"{name} iv", iv_bytes)
        payload = derived(f"{name} payload", payload_bytes)
        prefix, text, sealed = seal(suite, keymat, crypt, key_bytes, iv, auth, payload, sequence)
        print(f"\nname = {name}\nsuite = {suite}")
        field("keymat", keymat)
        field("prefix", prefix)
        field("esn", (sequence >> 32).to_bytes(4, "big"))
        field("plaintext", text)
        field("sealed", sealed)
