/*
 * ChaCha20-Poly1305 by the library's jobs, which are a quarter faster on large and 80 % faster on small packets than
 * its direct functions. It processes one packet after the other; a burst saves the overhead of submitting each.
 */
#include "ipsec_mb.h"

struct chacha {
    struct cb_sa sa;
    uint8_t key[32];
    uint32_t salt;
};

/* A complete job: the library needs nothing precomputed. */
static void fill(IMB_JOB *job, const struct chacha *chacha, IMB_CIPHER_DIRECTION direction, const uint8_t *nonce,
                 const uint8_t *aad, size_t aad_len, const uint8_t *src, size_t len, uint8_t *dst, uint8_t *tag)
{
    job->cipher_mode = IMB_CIPHER_CHACHA20_POLY1305;
    job->hash_alg = IMB_AUTH_CHACHA20_POLY1305;
    job->cipher_direction = direction;
    job->chain_order = direction == IMB_DIR_ENCRYPT ? IMB_ORDER_CIPHER_HASH : IMB_ORDER_HASH_CIPHER;
    job->enc_keys = chacha->key;
    job->dec_keys = chacha->key;
    job->key_len_in_bytes = sizeof chacha->key;
    job->iv = nonce;
    job->iv_len_in_bytes = NONCE_BYTES;
    job->src = src;
    job->dst = dst;
    job->cipher_start_src_offset_in_bytes = 0;
    job->hash_start_src_offset_in_bytes = 0;
    job->msg_len_to_cipher_in_bytes = len;
    job->msg_len_to_hash_in_bytes = len;
    job->u.CHACHA20_POLY1305.aad = aad;
    job->u.CHACHA20_POLY1305.aad_len_in_bytes = aad_len;
    job->auth_tag_output = tag;
    job->auth_tag_output_len_in_bytes = TAG_BYTES;
}

/* Seals a chunk, or decrypts it and writes the expected tags to `tags`. */
static bool run(IMB_MGR *library, const struct chacha *chacha, IMB_CIPHER_DIRECTION direction, uint8_t *buffer,
                const struct cb_packet *packets, uint32_t count, uint8_t tags[][TAG_BYTES])
{
    uint8_t nonces[CHUNK][16], aads[CHUNK][16];
    IMB_JOB *jobs[CHUNK];
    if (IMB_GET_NEXT_BURST(library, count, jobs) != count)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *packet = buffer + packets[i].at;
        uint8_t *text = packet + AEAD_PREFIX_BYTES;
        size_t len = packets[i].bytes - AEAD_PREFIX_BYTES - TAG_BYTES;
        cb_nonce_and_aad(&chacha->sa, packet, packets[i].sequence_high, chacha->salt, nonces[i], aads[i]);
        fill(jobs[i], chacha, direction, nonces[i], aads[i], cb_aad_bytes(&chacha->sa), text, len, text,
             direction == IMB_DIR_ENCRYPT ? text + len : tags[i]);
    }
    /* These jobs complete when they are submitted. */
    return IMB_SUBMIT_BURST_NOCHECK(library, count, jobs) == count;
}

static bool seal(struct cb_manager *manager, struct cb_sa *sa, uint8_t *buffer, const struct cb_packet *packets,
                 size_t count)
{
    for (size_t n; count > 0; packets += n, count -= n) {
        n = count < CHUNK ? count : CHUNK;
        if (!run(manager->library, (struct chacha *)sa, IMB_DIR_ENCRYPT, buffer, packets, (uint32_t)n, NULL))
            return false;
    }
    return true;
}

static bool open(struct cb_manager *manager, struct cb_sa *sa, uint8_t *buffer, const struct cb_packet *packets,
                 size_t count, bool *authentic)
{
    uint8_t tags[CHUNK][TAG_BYTES];
    for (size_t n; count > 0; packets += n, authentic += n, count -= n) {
        n = count < CHUNK ? count : CHUNK;
        if (!run(manager->library, (struct chacha *)sa, IMB_DIR_DECRYPT, buffer, packets, (uint32_t)n, tags))
            return false;
        cb_settle(buffer, packets, n, tags, authentic);
    }
    return true;
}

/* Runs one job; true when it is complete on return. */
static bool run_one(IMB_MGR *library, const struct chacha *chacha, IMB_CIPHER_DIRECTION direction,
                    const uint8_t *nonce, const uint8_t *aad, size_t aad_len, const uint8_t *src, size_t len,
                    uint8_t *dst, uint8_t *tag)
{
    IMB_JOB *job = IMB_GET_NEXT_JOB(library);
    fill(job, chacha, direction, nonce, aad, aad_len, src, len, dst, tag);
    job = IMB_SUBMIT_JOB_NOCHECK(library);
    return job != NULL && job->status == IMB_STATUS_COMPLETED;
}

static bool seal_from(struct cb_manager *manager, struct cb_sa *sa, uint32_t sequence_high, const uint8_t *text,
                      uint8_t *packet, size_t bytes)
{
    struct chacha *chacha = (struct chacha *)sa;
    uint8_t nonce[16], aad[16];
    cb_nonce_and_aad(sa, packet, sequence_high, chacha->salt, nonce, aad);
    return run_one(manager->library, chacha, IMB_DIR_ENCRYPT, nonce, aad, cb_aad_bytes(sa), text,
                   bytes - AEAD_PREFIX_BYTES - TAG_BYTES, packet + AEAD_PREFIX_BYTES, packet + bytes - TAG_BYTES);
}

static bool aead_seal(struct cb_manager *manager, struct cb_sa *sa, const uint8_t *nonce, const uint8_t *aad,
                      size_t aad_len, const uint8_t *src, size_t len, uint8_t *dst)
{
    return run_one(manager->library, (struct chacha *)sa, IMB_DIR_ENCRYPT, nonce, aad, aad_len, src, len, dst,
                   dst + len);
}

/* A job left unfinished counts as a tag that does not match. */
static bool aead_open(struct cb_manager *manager, struct cb_sa *sa, const uint8_t *nonce, const uint8_t *aad,
                      size_t aad_len, uint8_t *buf, size_t len)
{
    uint8_t tag[TAG_BYTES];
    return run_one(manager->library, (struct chacha *)sa, IMB_DIR_DECRYPT, nonce, aad, aad_len, buf, len, buf,
                   tag) &&
           cb_icvs_equal(tag, buf + len, TAG_BYTES);
}

/* An SA with a key of 32 bytes; NULL when there is no memory. */
struct cb_sa *cb_imb_chacha_new(const uint8_t key[32], const uint8_t salt[4], bool extended)
{
    static const struct cb_operations operations = {seal, open, seal_from, aead_seal, aead_open};
    struct chacha *chacha = (struct chacha *)cb_sa_new(sizeof *chacha, &operations, extended);
    if (chacha == NULL)
        return NULL;
    memcpy(chacha->key, key, sizeof chacha->key);
    memcpy(&chacha->salt, salt, sizeof chacha->salt);
    return &chacha->sa;
}
