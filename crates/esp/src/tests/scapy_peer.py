"""The other end of an SA by scapy: one request a line on standard input, one answer a line on standard output.

    open SUITE KEY-AND-SALT SPI HIGH ESP-PACKET            -> inner packet
    seal SUITE KEY-AND-SALT SPI HIGH LOW INNER-PACKET      -> ESP packet

Numbers are decimal, bytes hexadecimal; HIGH and LOW are the halves of the extended sequence number.
"""

import struct
import sys

from scapy.layers.inet import IP
from scapy.layers.ipsec import ESP, SecurityAssociation

ALGORITHMS = {
    "aes-128-gcm": "AES-GCM",
    "aes-256-gcm": "AES-GCM",
    "chacha20-poly1305": "CHACHA20-POLY1305",
}
OUTER = IP(src="192.0.2.1", dst="192.0.2.2")


def answer(verb, suite, key, spi, high, *rest):
    sa = SecurityAssociation(
        ESP,
        spi=int(spi),
        crypt_algo=ALGORITHMS[suite],
        crypt_key=bytes.fromhex(key),
        tunnel_header=OUTER,
        esn_en=True,
        esn=int(high),
    )
    if verb == "open":
        (packet,) = rest
        return bytes(sa.decrypt(OUTER / ESP(bytes.fromhex(packet))))
    low, packet = int(rest[0]), bytes.fromhex(rest[1])
    iv = struct.pack("!LL", int(high), low)
    return bytes(sa.encrypt(IP(packet), seq_num=low, iv=iv)[ESP])


for line in sys.stdin:
    print(answer(*line.split()).hex(), flush=True)
