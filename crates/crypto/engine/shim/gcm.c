/*
 * AES-GCM by the library's direct functions.
 *
 * For batches of 32 on an Intel Xeon with VAES they are faster than bursts of its jobs at every size: by a quarter
 * at 64 bytes, 5 % at 1408. The functions take one packet each, and calls overlap by out-of-order execution, so
 * nonces and additional data of a whole chunk are prepared before the first call.
 *
 * Keys are not prefetched: it made one batch each on 2000 keys in random order no faster (25 ns a packet of
 * 64 bytes in batches of 32, 34 ns in batches of 1, with and without).
 */
#include "ipsec_mb.h"

struct gcm {
    struct cb_sa sa;
    struct gcm_key_data key;
    /* Hash and counter state of the current call; here rather than on the stack so that it is wiped. */
    struct gcm_context_data context;
    uint32_t salt;
    bool is_128;
};

static aes_gcm_enc_dec_t encryption(const struct cb_manager *manager, const struct gcm *gcm)
{
    return gcm->is_128 ? manager->library->gcm128_enc : manager->library->gcm256_enc;
}

static aes_gcm_enc_dec_t decryption(const struct cb_manager *manager, const struct gcm *gcm)
{
    return gcm->is_128 ? manager->library->gcm128_dec : manager->library->gcm256_dec;
}

static bool seal(struct cb_manager *manager, struct cb_sa *sa, uint8_t *buffer, const struct cb_packet *packets,
                 size_t count)
{
    struct gcm *gcm = (struct gcm *)sa;
    aes_gcm_enc_dec_t encrypt = encryption(manager, gcm);
    size_t aad_bytes = cb_aad_bytes(sa);
    uint8_t nonces[CHUNK][16], aads[CHUNK][16];
    for (size_t n; count > 0; packets += n, count -= n) {
        n = count < CHUNK ? count : CHUNK;
        for (size_t i = 0; i < n; i++)
            cb_nonce_and_aad(sa, buffer + packets[i].at, packets[i].sequence_high, gcm->salt, nonces[i], aads[i]);
        for (size_t i = 0; i < n; i++) {
            uint8_t *text = buffer + packets[i].at + AEAD_PREFIX_BYTES;
            size_t len = packets[i].bytes - AEAD_PREFIX_BYTES - TAG_BYTES;
            encrypt(&gcm->key, &gcm->context, text, text, len, nonces[i], aads[i], aad_bytes, text + len,
                    TAG_BYTES);
        }
    }
    return true;
}

static bool open(struct cb_manager *manager, struct cb_sa *sa, uint8_t *buffer, const struct cb_packet *packets,
                 size_t count, bool *authentic)
{
    struct gcm *gcm = (struct gcm *)sa;
    aes_gcm_enc_dec_t decrypt = decryption(manager, gcm);
    size_t aad_bytes = cb_aad_bytes(sa);
    uint8_t nonces[CHUNK][16], aads[CHUNK][16], tags[CHUNK][TAG_BYTES];
    for (size_t n; count > 0; packets += n, authentic += n, count -= n) {
        n = count < CHUNK ? count : CHUNK;
        for (size_t i = 0; i < n; i++)
            cb_nonce_and_aad(sa, buffer + packets[i].at, packets[i].sequence_high, gcm->salt, nonces[i], aads[i]);
        for (size_t i = 0; i < n; i++) {
            uint8_t *text = buffer + packets[i].at + AEAD_PREFIX_BYTES;
            size_t len = packets[i].bytes - AEAD_PREFIX_BYTES - TAG_BYTES;
            decrypt(&gcm->key, &gcm->context, text, text, len, nonces[i], aads[i], aad_bytes, tags[i], TAG_BYTES);
        }
        cb_settle(buffer, packets, n, tags, authentic);
    }
    return true;
}

static bool seal_from(struct cb_manager *manager, struct cb_sa *sa, uint32_t sequence_high, const uint8_t *text,
                      uint8_t *packet, size_t bytes)
{
    struct gcm *gcm = (struct gcm *)sa;
    uint8_t nonce[16], aad[16];
    cb_nonce_and_aad(sa, packet, sequence_high, gcm->salt, nonce, aad);
    size_t len = bytes - AEAD_PREFIX_BYTES - TAG_BYTES;
    encryption(manager, gcm)(&gcm->key, &gcm->context, packet + AEAD_PREFIX_BYTES, text, len, nonce, aad,
                             cb_aad_bytes(sa), packet + bytes - TAG_BYTES, TAG_BYTES);
    return true;
}

static bool aead_seal(struct cb_manager *manager, struct cb_sa *sa, const uint8_t *nonce, const uint8_t *aad,
                      size_t aad_len, const uint8_t *src, size_t len, uint8_t *dst)
{
    struct gcm *gcm = (struct gcm *)sa;
    encryption(manager, gcm)(&gcm->key, &gcm->context, dst, src, len, nonce, aad, aad_len, dst + len, TAG_BYTES);
    return true;
}

static bool aead_open(struct cb_manager *manager, struct cb_sa *sa, const uint8_t *nonce, const uint8_t *aad,
                      size_t aad_len, uint8_t *buf, size_t len)
{
    struct gcm *gcm = (struct gcm *)sa;
    uint8_t tag[TAG_BYTES];
    decryption(manager, gcm)(&gcm->key, &gcm->context, buf, buf, len, nonce, aad, aad_len, tag, TAG_BYTES);
    return cb_icvs_equal(tag, buf + len, TAG_BYTES);
}

/* An SA with a key of 16 or 32 bytes; NULL when there is no memory. */
struct cb_sa *cb_imb_gcm_new(struct cb_manager *manager, const uint8_t *key, size_t key_bytes,
                             const uint8_t salt[4], bool extended)
{
    static const struct cb_operations operations = {seal, open, seal_from, aead_seal, aead_open};
    struct gcm *gcm = (struct gcm *)cb_sa_new(sizeof *gcm, &operations, extended);
    if (gcm == NULL)
        return NULL;
    memcpy(&gcm->salt, salt, sizeof gcm->salt);
    gcm->is_128 = key_bytes == 16;
    if (gcm->is_128)
        IMB_AES128_GCM_PRE(manager->library, key, &gcm->key);
    else
        IMB_AES256_GCM_PRE(manager->library, key, &gcm->key);
    return &gcm->sa;
}
