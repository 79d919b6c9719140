/*
 * A cipher and an HMAC over header, IV, ciphertext and the high half of an extended sequence number, which is not
 * sent (RFC 4303 section 3.3.2.1).
 *
 * CBC sealing and hashing cannot be parallelized within a packet: the library processes 16 packets in parallel. A
 * chunk makes two passes, each of which fills the lanes by itself: cipher, then hash, or the other way round. So
 * opening decrypts only authentic packets. Where the library has a burst for one kind of job (AES, SHA), that is
 * used, and its job queue for the rest.
 *
 * Wide lanes take as long for one packet as for 16. So the packets left over after full lanes are hashed two by two
 * with the CPU's SHA instructions, if available: a single packet with AES-256-CBC and HMAC-SHA-256 takes a third of
 * the time.
 *
 * During the hash the high half of the sequence number is in the place of the ICV, so that the authenticated data is
 * contiguous. Where numbers are not extended it lies there too, and is not hashed.
 */
#define _GNU_SOURCE
#include "ipsec_mb.h"

#define SEQUENCE_HIGH_BYTES 4
#define LANES 16
#define ICV_BYTES_MAX 32

/* In the order of `wire::Cipher` and `wire::Hmac`. */
enum cipher { CIPHER_NULL, CIPHER_DES_CBC, CIPHER_3DES_CBC, CIPHER_AES_128_CBC, CIPHER_AES_256_CBC };
enum hmac { HMAC_MD5, HMAC_SHA1, HMAC_SHA256, HMAC_SHA512 };

struct encrypt_then_mac {
    struct cb_sa sa;
    union {
        struct {
            uint8_t encrypt[15 * 16];
            uint8_t decrypt[15 * 16];
        } aes;
        struct {
            uint64_t schedules[3][IMB_DES_KEY_SCHED_SIZE / 8];
            const uint64_t *in_order[3];
        } des;
    } keys;
    /* Hash states after the inner and the outer pad, in the library's format. */
    uint8_t inner[IMB_SHA512_DIGEST_SIZE_IN_BYTES];
    uint8_t outer[IMB_SHA512_DIGEST_SIZE_IN_BYTES];
    const void *encrypt;
    const void *decrypt;
    IMB_CIPHER_MODE mode;
    IMB_KEY_SIZE_BYTES key_bytes;
    IMB_HASH_ALG hash;
    /* Up to this many packets are hashed faster two by two than in wide lanes, as measured on an Intel Xeon. */
    uint32_t narrow_max;
    size_t iv_bytes;
    size_t icv_bytes;
};

/* Both halves of a job: for the cipher pass and for the hash pass. */
static void fill(IMB_JOB *job, const struct encrypt_then_mac *etm, uint8_t *packet, size_t bytes, uint8_t *icv)
{
    size_t prefix = ESP_HEADER_BYTES + etm->iv_bytes;
    size_t sealed = bytes - etm->icv_bytes;
    job->src = packet;
    job->dst = packet + prefix;
    job->enc_keys = etm->encrypt;
    job->dec_keys = etm->decrypt;
    job->key_len_in_bytes = etm->key_bytes;
    job->iv = packet + ESP_HEADER_BYTES;
    job->iv_len_in_bytes = etm->iv_bytes;
    job->cipher_start_src_offset_in_bytes = prefix;
    job->msg_len_to_cipher_in_bytes = sealed - prefix;
    job->hash_start_src_offset_in_bytes = 0;
    job->msg_len_to_hash_in_bytes = sealed + (etm->sa.extended ? SEQUENCE_HIGH_BYTES : 0);
    job->u.HMAC._hashed_auth_key_xor_ipad = etm->inner;
    job->u.HMAC._hashed_auth_key_xor_opad = etm->outer;
    job->auth_tag_output = icv;
    job->auth_tag_output_len_in_bytes = etm->icv_bytes;
}

/* Runs jobs with one algorithm, the other being none, through the library's queue; true when all are complete. */
static bool queue_pass(IMB_MGR *library, const IMB_JOB *jobs, uint32_t count, IMB_CIPHER_MODE mode,
                       IMB_CIPHER_DIRECTION direction, IMB_HASH_ALG hash)
{
    IMB_JOB *queued[CHUNK];
    if (IMB_GET_NEXT_BURST(library, count, queued) != count)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        *queued[i] = jobs[i];
        queued[i]->cipher_mode = mode;
        queued[i]->cipher_direction = direction;
        queued[i]->hash_alg = hash;
        queued[i]->chain_order = IMB_ORDER_CIPHER_HASH;
    }
    uint32_t done = IMB_SUBMIT_BURST_NOCHECK(library, count, queued);
    while (done < count) {
        uint32_t flushed = IMB_FLUSH_BURST(library, count - done, queued);
        if (flushed == 0)
            return false;
        done += flushed;
    }
    return true;
}

static bool cipher_pass(IMB_MGR *library, const struct encrypt_then_mac *etm, IMB_JOB *jobs, uint32_t count,
                        IMB_CIPHER_DIRECTION direction)
{
    if (etm->mode == IMB_CIPHER_NULL || count == 0)
        return true;
    if (etm->mode == IMB_CIPHER_CBC)
        return IMB_SUBMIT_CIPHER_BURST_NOCHECK(library, jobs, count, IMB_CIPHER_CBC, direction,
                                               etm->key_bytes) == count;
    return queue_pass(library, jobs, count, etm->mode, direction, IMB_AUTH_NULL);
}

static bool hash_pass(const struct cb_manager *manager, const struct encrypt_then_mac *etm, IMB_JOB *jobs,
                      uint32_t count)
{
    if (etm->hash == IMB_AUTH_MD5)
        return queue_pass(manager->library, jobs, count, IMB_CIPHER_NULL, IMB_DIR_ENCRYPT, IMB_AUTH_MD5);
    uint32_t rest = count % LANES;
    uint32_t narrow = manager->narrow != NULL && rest <= etm->narrow_max ? rest : 0;
    uint32_t wide = count - narrow;
    if (wide > 0 && IMB_SUBMIT_HASH_BURST_NOCHECK(manager->library, jobs, wide, etm->hash) != wide)
        return false;
    return narrow == 0 ||
           IMB_SUBMIT_HASH_BURST_NOCHECK(manager->narrow, jobs + wide, narrow, etm->hash) == narrow;
}

static void put_sequence_high(uint8_t *to, uint32_t sequence_high)
{
    uint32_t in_network_order = __builtin_bswap32(sequence_high);
    memcpy(to, &in_network_order, SEQUENCE_HIGH_BYTES);
}

static bool seal(struct cb_manager *manager, struct cb_sa *sa, uint8_t *buffer, const struct cb_packet *packets,
                 size_t count)
{
    const struct encrypt_then_mac *etm = (const struct encrypt_then_mac *)sa;
    IMB_JOB *jobs = manager->jobs;
    for (size_t n; count > 0; packets += n, count -= n) {
        n = count < CHUNK ? count : CHUNK;
        for (size_t i = 0; i < n; i++) {
            uint8_t *packet = buffer + packets[i].at;
            uint8_t *icv = packet + packets[i].bytes - etm->icv_bytes;
            put_sequence_high(icv, packets[i].sequence_high);
            fill(&jobs[i], etm, packet, packets[i].bytes, icv);
        }
        if (!cipher_pass(manager->library, etm, jobs, (uint32_t)n, IMB_DIR_ENCRYPT) ||
            !hash_pass(manager, etm, jobs, (uint32_t)n))
            return false;
    }
    return true;
}

/* Compares the ICVs of a chunk, zeroes forged texts, and compacts the jobs of the rest; returns their number. */
static uint32_t keep_authentic(const struct encrypt_then_mac *etm, uint8_t *buffer, const struct cb_packet *packets,
                               size_t count, uint8_t icvs[][ICV_BYTES_MAX], IMB_JOB *jobs, bool *authentic)
{
    uint32_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *received = buffer + packets[i].at + packets[i].bytes - etm->icv_bytes;
        authentic[i] = cb_icvs_equal(icvs[i], received, etm->icv_bytes);
        if (!authentic[i]) {
            memset(jobs[i].dst, 0, jobs[i].msg_len_to_cipher_in_bytes);
            continue;
        }
        if (kept != i)
            jobs[kept] = jobs[i];
        kept++;
    }
    return kept;
}

static bool open(struct cb_manager *manager, struct cb_sa *sa, uint8_t *buffer, const struct cb_packet *packets,
                 size_t count, bool *authentic)
{
    const struct encrypt_then_mac *etm = (const struct encrypt_then_mac *)sa;
    IMB_JOB *jobs = manager->jobs;
    uint8_t icvs[CHUNK][ICV_BYTES_MAX], covered[CHUNK][SEQUENCE_HIGH_BYTES];
    for (size_t n; count > 0; packets += n, authentic += n, count -= n) {
        n = count < CHUNK ? count : CHUNK;
        for (size_t i = 0; i < n; i++) {
            uint8_t *packet = buffer + packets[i].at;
            uint8_t *received = packet + packets[i].bytes - etm->icv_bytes;
            memcpy(covered[i], received, SEQUENCE_HIGH_BYTES);
            put_sequence_high(received, packets[i].sequence_high);
            fill(&jobs[i], etm, packet, packets[i].bytes, icvs[i]);
        }
        if (!hash_pass(manager, etm, jobs, (uint32_t)n))
            return false;
        for (size_t i = 0; i < n; i++)
            memcpy(buffer + packets[i].at + packets[i].bytes - etm->icv_bytes, covered[i], SEQUENCE_HIGH_BYTES);
        uint32_t kept = keep_authentic(etm, buffer, packets, n, icvs, jobs, authentic);
        if (!cipher_pass(manager->library, etm, jobs, kept, IMB_DIR_DECRYPT))
            return false;
    }
    return true;
}

static bool seal_from(struct cb_manager *manager, struct cb_sa *sa, uint32_t sequence_high, const uint8_t *text,
                      uint8_t *packet, size_t bytes)
{
    const struct encrypt_then_mac *etm = (const struct encrypt_then_mac *)sa;
    IMB_JOB *job = manager->jobs;
    uint8_t *icv = packet + bytes - etm->icv_bytes;
    put_sequence_high(icv, sequence_high);
    fill(job, etm, packet, bytes, icv);
    if (etm->mode == IMB_CIPHER_NULL)
        memcpy(job->dst, text, job->msg_len_to_cipher_in_bytes);
    job->src = text;
    job->cipher_start_src_offset_in_bytes = 0;
    if (!cipher_pass(manager->library, etm, job, 1, IMB_DIR_ENCRYPT))
        return false;
    job->src = packet;
    return hash_pass(manager, etm, job, 1);
}

/* Hashes the key's inner and outer pads (RFC 2104), of the hash's block each; keys are never longer. */
static void hash_pads(struct encrypt_then_mac *etm, hash_one_block_t hash, size_t block_bytes, const uint8_t *key,
                      size_t key_bytes)
{
    uint8_t pad[IMB_SHA_512_BLOCK_SIZE];
    memset(pad, 0x36, block_bytes);
    for (size_t i = 0; i < key_bytes; i++)
        pad[i] ^= key[i];
    hash(pad, etm->inner);
    for (size_t i = 0; i < block_bytes; i++)
        pad[i] ^= 0x36 ^ 0x5c;
    hash(pad, etm->outer);
    explicit_bzero(pad, sizeof pad);
}

static void set_hmac(struct encrypt_then_mac *etm, IMB_MGR *library, enum hmac hmac, const uint8_t *key)
{
    switch (hmac) {
    case HMAC_MD5:
        etm->hash = IMB_AUTH_MD5;
        etm->icv_bytes = 12;
        hash_pads(etm, library->md5_one_block, 64, key, 16);
        break;
    case HMAC_SHA1:
        etm->hash = IMB_AUTH_HMAC_SHA_1;
        etm->narrow_max = 5;
        etm->icv_bytes = 12;
        hash_pads(etm, library->sha1_one_block, IMB_SHA1_BLOCK_SIZE, key, IMB_SHA1_DIGEST_SIZE_IN_BYTES);
        break;
    case HMAC_SHA256:
        etm->hash = IMB_AUTH_HMAC_SHA_256;
        etm->narrow_max = 8;
        etm->icv_bytes = 16;
        hash_pads(etm, library->sha256_one_block, IMB_SHA_256_BLOCK_SIZE, key, IMB_SHA256_DIGEST_SIZE_IN_BYTES);
        break;
    case HMAC_SHA512:
        etm->hash = IMB_AUTH_HMAC_SHA_512;
        etm->icv_bytes = 32;
        hash_pads(etm, library->sha512_one_block, IMB_SHA_512_BLOCK_SIZE, key, IMB_SHA512_DIGEST_SIZE_IN_BYTES);
        break;
    }
}

static void set_aes(struct encrypt_then_mac *etm, IMB_MGR *library, const uint8_t *key, IMB_KEY_SIZE_BYTES bytes)
{
    if (bytes == IMB_KEY_128_BYTES)
        IMB_AES_KEYEXP_128(library, key, etm->keys.aes.encrypt, etm->keys.aes.decrypt);
    else
        IMB_AES_KEYEXP_256(library, key, etm->keys.aes.encrypt, etm->keys.aes.decrypt);
    etm->mode = IMB_CIPHER_CBC;
    etm->key_bytes = bytes;
    etm->encrypt = etm->keys.aes.encrypt;
    etm->decrypt = etm->keys.aes.decrypt;
    etm->iv_bytes = IMB_AES_BLOCK_SIZE;
}

/* One key, or three; the library runs their schedules backwards itself. */
static void set_des(struct encrypt_then_mac *etm, IMB_MGR *library, const uint8_t *key, size_t keys)
{
    for (size_t i = 0; i < keys; i++) {
        IMB_DES_KEYSCHED(library, etm->keys.des.schedules[i], key + i * IMB_DES_BLOCK_SIZE);
        etm->keys.des.in_order[i] = etm->keys.des.schedules[i];
    }
    etm->mode = keys == 1 ? IMB_CIPHER_DES : IMB_CIPHER_DES3;
    etm->key_bytes = (IMB_KEY_SIZE_BYTES)(keys * IMB_DES_BLOCK_SIZE);
    etm->encrypt = keys == 1 ? (const void *)etm->keys.des.schedules[0] : (const void *)etm->keys.des.in_order;
    etm->decrypt = etm->encrypt;
    etm->iv_bytes = IMB_DES_BLOCK_SIZE;
}

static void set_cipher(struct encrypt_then_mac *etm, IMB_MGR *library, enum cipher cipher, const uint8_t *key)
{
    switch (cipher) {
    case CIPHER_NULL:
        etm->mode = IMB_CIPHER_NULL;
        break;
    case CIPHER_DES_CBC:
        set_des(etm, library, key, 1);
        break;
    case CIPHER_3DES_CBC:
        set_des(etm, library, key, 3);
        break;
    case CIPHER_AES_128_CBC:
        set_aes(etm, library, key, IMB_KEY_128_BYTES);
        break;
    case CIPHER_AES_256_CBC:
        set_aes(etm, library, key, IMB_KEY_256_BYTES);
        break;
    }
}

/* An SA with keys of the suite's lengths; NULL when there is no memory. */
struct cb_sa *cb_imb_encrypt_then_mac_new(struct cb_manager *manager, uint32_t cipher, uint32_t hmac,
                                          const uint8_t *cipher_key, const uint8_t *hmac_key, bool extended)
{
    static const struct cb_operations operations = {.seal = seal, .open = open, .seal_from = seal_from};
    struct encrypt_then_mac *etm = (struct encrypt_then_mac *)cb_sa_new(sizeof *etm, &operations, extended);
    if (etm == NULL)
        return NULL;
    set_cipher(etm, manager->library, (enum cipher)cipher, cipher_key);
    set_hmac(etm, manager->library, (enum hmac)hmac, hmac_key);
    return &etm->sa;
}
