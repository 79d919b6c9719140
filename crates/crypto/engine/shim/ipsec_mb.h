/*
 * Intel's multi-buffer library behind a few plain functions: the shared declarations.
 *
 * It is C so that the compiler, not a hand-written copy, lays out the library's structures. The library is
 * opened at run time: a binary built with its header also starts on a host that lacks it.
 *
 * ipsec_mb.c opens the library and creates managers; gcm.c, chacha.c and encrypt_then_mac.c implement the SAs.
 */
#ifndef CIPHERBENCH_IPSEC_MB_H
#define CIPHERBENCH_IPSEC_MB_H

#include <emmintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <intel-ipsec-mb.h>

#define NONCE_BYTES 12
#define TAG_BYTES 16
#define ESP_HEADER_BYTES 8
/* ESP header and IV of an AEAD. */
#define AEAD_PREFIX_BYTES 16

/* Packets that are prepared before the first of them is sealed or opened: four times the library's widest lanes. */
#define CHUNK 64

/* `engine::Packet`: position from SPI to ICV in the buffer, and the half of the sequence number that is not sent. */
struct cb_packet {
    size_t at;
    size_t bytes;
    uint32_t sequence_high;
};

/* Job managers of the library, and room for the jobs of one chunk. Belongs to one thread. */
struct cb_manager {
    IMB_MGR *library;
    /*
     * Without AVX: it hashes with the CPU's SHA instructions, two packets at a time, which beats wide lanes that are
     * mostly empty. NULL where the CPU has none.
     */
    IMB_MGR *narrow;
    struct cb_copy *copy;
    size_t bytes;
    IMB_JOB jobs[CHUNK];
};

/* The keying material of one SA. Every kind of SA begins with it; aligned as the library requires. */
struct cb_sa {
    const struct cb_operations *operations;
    size_t bytes;
    /* Whether sequence numbers are extended: then their high half is authenticated too. */
    bool extended;
} __attribute__((aligned(64)));

/* The functions of a kind of SA. Each returns false if the library left work undone, which it never does. */
struct cb_operations {
    bool (*seal)(struct cb_manager *, struct cb_sa *, uint8_t *buffer, const struct cb_packet *, size_t count);
    /* Zeroes the text of packets that are not authentic. */
    bool (*open)(struct cb_manager *, struct cb_sa *, uint8_t *buffer, const struct cb_packet *, size_t count,
                 bool *authentic);
    /* Header and IV are in packet; text is separate. */
    bool (*seal_from)(struct cb_manager *, struct cb_sa *, uint32_t sequence_high, const uint8_t *text,
                      uint8_t *packet, size_t bytes);
    /*
     * The two that follow are an AEAD's, for any nonce and additional data; NULL for others. len bytes of
     * ciphertext and the tag go to dst, which is src or apart.
     */
    bool (*aead_seal)(struct cb_manager *, struct cb_sa *, const uint8_t *nonce, const uint8_t *aad, size_t aad_len,
                      const uint8_t *src, size_t len, uint8_t *dst);
    /*
     * Decrypts len bytes of buf in place and compares the tag that follows them; true when it matches. The
     * plaintext is written before the tag is known: on false the caller must wipe buf.
     */
    bool (*aead_open)(struct cb_manager *, struct cb_sa *, const uint8_t *nonce, const uint8_t *aad, size_t aad_len,
                      uint8_t *buf, size_t len);
};

/* An SA of that many zeroed bytes, or NULL when there is no memory. */
struct cb_sa *cb_sa_new(size_t bytes, const struct cb_operations *operations, bool extended);

/* Length of an AEAD's additional data: SPI and sequence number. */
static inline size_t cb_aad_bytes(const struct cb_sa *sa)
{
    return sa->extended ? 12 : 8;
}

/*
 * Nonce and additional data of an AEAD's packet (RFC 4106 section 3.1, 5; RFC 7634 section 2, 2.1).
 *
 * Each is written by one store of 16 bytes: the library reads them by wide loads, which would wait some 20 ns
 * for smaller stores to reach the cache. On 64-byte packets that doubles the rate.
 */
static inline void cb_nonce_and_aad(const struct cb_sa *sa, const uint8_t *packet, uint32_t sequence_high,
                                    uint32_t salt, uint8_t nonce[16], uint8_t aad[16])
{
    uint64_t header, iv;
    memcpy(&header, packet, sizeof header);
    memcpy(&iv, packet + ESP_HEADER_BYTES, sizeof iv);
    uint64_t spi = header & 0xffffffff, sequence_low = header >> 32;
    uint64_t high = __builtin_bswap32(sequence_high);
    _mm_storeu_si128((__m128i *)nonce, _mm_set_epi64x((int64_t)(iv >> 32), (int64_t)(iv << 32 | salt)));
    int64_t front = (int64_t)(sa->extended ? high << 32 | spi : header);
    _mm_storeu_si128((__m128i *)aad, _mm_set_epi64x((int64_t)sequence_low, front));
}

/* Whether two ICVs of that many bytes, a multiple of 4, are equal; takes the same time wherever they differ. */
static inline bool cb_icvs_equal(const uint8_t *a, const uint8_t *b, size_t bytes)
{
    uint32_t difference = 0;
    for (size_t at = 0; at < bytes; at += 4) {
        uint32_t x, y;
        memcpy(&x, a + at, 4);
        memcpy(&y, b + at, 4);
        difference |= x ^ y;
    }
    return difference == 0;
}

/*
 * Compares the tags of decrypted AEAD packets, reports for each whether it is authentic, and zeroes the text of
 * the others.
 */
static inline void cb_settle(uint8_t *buffer, const struct cb_packet *packets, size_t count,
                             uint8_t tags[][TAG_BYTES], bool *authentic)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t *packet = buffer + packets[i].at;
        size_t sealed = packets[i].bytes - TAG_BYTES;
        authentic[i] = cb_icvs_equal(tags[i], packet + sealed, TAG_BYTES);
        if (!authentic[i])
            memset(packet + AEAD_PREFIX_BYTES, 0, sealed - AEAD_PREFIX_BYTES);
    }
}

#endif
