/*
 * Intel's multi-buffer library behind a few plain functions.
 *
 * It is C so that the compiler, not a hand-written copy, lays out the library's structures. The library is
 * opened at run time: a binary built with its header also starts on a host that lacks it.
 *
 * AES-GCM goes by the direct functions, which are handed no manager and touch only the key, the context
 * and the buffers; one process-wide manager, read-only once initialised, is enough. They also store to one error
 * word of the process, which cores pass back and forth: called back to back on 64-byte packets, two cores do
 * 1.1 (open) to 1.7 (seal) times the work of one, on 1400-byte packets twice. GCM by jobs has the same store.
 *
 * ChaCha20-Poly1305 goes by jobs, which are a quarter faster on large and 80 % faster on small packets than its
 * direct functions and do not have that store; a job manager is written to and must belong to one thread.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <intel-ipsec-mb.h>

#define NONCE_BYTES 12
#define TAG_BYTES 16

/* One AES-GCM key. The library wants its key data on a cache line. */
struct cb_gcm_key {
    struct gcm_key_data data;
    /* Hash and counter state of the call under way; here rather than on the stack so that it is wiped. */
    struct gcm_context_data context;
    aes_gcm_enc_dec_t encrypt;
    aes_gcm_enc_dec_t decrypt;
} __attribute__((aligned(64)));

static struct {
    __typeof__(alloc_mb_mgr) *alloc_mb_mgr;
    __typeof__(free_mb_mgr) *free_mb_mgr;
    __typeof__(init_mb_mgr_auto) *init_mb_mgr_auto;
    __typeof__(imb_get_errno) *imb_get_errno;
    __typeof__(imb_get_strerror) *imb_get_strerror;
    __typeof__(imb_get_version) *imb_get_version;
    __typeof__(imb_get_version_str) *imb_get_version_str;
} library;

/* Serves the direct functions of every thread; written by cb_imb_load only. */
static IMB_MGR *direct;

/* A manager for the calling thread, or NULL with *why set. */
IMB_MGR *cb_imb_manager_new(const char **why)
{
    IMB_MGR *manager = library.alloc_mb_mgr(0);
    if (manager == NULL) {
        *why = "no memory for its state";
        return NULL;
    }
    library.init_mb_mgr_auto(manager, NULL);
    int error = library.imb_get_errno(manager);
    if (error != 0) {
        /* ENODEV: no AES-NI, carry-less multiply or SSE 4.2. */
        *why = library.imb_get_strerror(error);
        library.free_mb_mgr(manager);
        return NULL;
    }
    return manager;
}

void cb_imb_manager_free(IMB_MGR *manager)
{
    library.free_mb_mgr(manager);
}

static int resolve(void *handle)
{
#define RESOLVE(name) ((library.name = (__typeof__(library.name))dlsym(handle, #name)) != NULL)
    return RESOLVE(alloc_mb_mgr) && RESOLVE(free_mb_mgr) && RESOLVE(init_mb_mgr_auto) &&
           RESOLVE(imb_get_errno) && RESOLVE(imb_get_strerror) && RESOLVE(imb_get_version) &&
           RESOLVE(imb_get_version_str);
#undef RESOLVE
}

/*
 * Opens the library and makes it ready. Not thread-safe; call it once, before anything else here.
 * Returns NULL, or why it cannot be used (valid for ever); *version is set when it can.
 */
const char *cb_imb_load(const char **version)
{
    char name[32];
    snprintf(name, sizeof name, "libIPSec_MB.so.%d", IMB_VERSION_NUM >> 16);
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return "its library is not on this host: install libipsec-mb1";
    const char *why = NULL;
    if (!resolve(handle)) {
        why = "its library lacks a function that version " IMB_VERSION_STR " has";
    } else if (library.imb_get_version() >> 8 != IMB_VERSION_NUM >> 8) {
        /* The key data's layout changes between minor versions under one soname. */
        why = "its library is not version " IMB_VERSION_STR ", which this program was built for: build again";
    } else {
        direct = cb_imb_manager_new(&why);
    }
    if (why != NULL)
        dlclose(handle);
    else
        *version = library.imb_get_version_str();
    return why;
}

/* A key of 16 or 32 bytes; NULL when there is no memory. */
struct cb_gcm_key *cb_imb_gcm_key_new(const uint8_t *key, size_t key_bytes)
{
    void *place;
    if (posix_memalign(&place, 64, sizeof(struct cb_gcm_key)) != 0)
        return NULL;
    struct cb_gcm_key *made = memset(place, 0, sizeof *made);
    if (key_bytes == 16) {
        IMB_AES128_GCM_PRE(direct, key, &made->data);
        made->encrypt = direct->gcm128_enc;
        made->decrypt = direct->gcm128_dec;
    } else {
        IMB_AES256_GCM_PRE(direct, key, &made->data);
        made->encrypt = direct->gcm256_enc;
        made->decrypt = direct->gcm256_dec;
    }
    return made;
}

void cb_imb_gcm_key_free(struct cb_gcm_key *key)
{
    explicit_bzero(key, sizeof *key);
    free(key);
}

/* Writes len bytes of ciphertext and the tag to dst, which may not overlap src. */
void cb_imb_gcm_seal(struct cb_gcm_key *key, const uint8_t *nonce, const uint8_t *aad, size_t aad_len,
                     const uint8_t *src, size_t len, uint8_t *dst)
{
    key->encrypt(&key->data, &key->context, dst, src, len, nonce, aad, aad_len, dst + len, TAG_BYTES);
}

/* Non-zero when the tags are equal; takes the same time wherever they differ. */
static int tags_equal(const uint8_t *a, const uint8_t *b)
{
    uint64_t x[2], y[2];
    memcpy(x, a, TAG_BYTES);
    memcpy(y, b, TAG_BYTES);
    return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0;
}

/*
 * Decrypts len bytes of buf in place and compares the tag that follows them; non-zero when it matches.
 * The plaintext is written before the tag is known: on 0 the caller must wipe buf.
 */
int cb_imb_gcm_open(struct cb_gcm_key *key, const uint8_t *nonce, const uint8_t *aad, size_t aad_len,
                    uint8_t *buf, size_t len)
{
    uint8_t tag[TAG_BYTES];
    key->decrypt(&key->data, &key->context, buf, buf, len, nonce, aad, aad_len, tag, TAG_BYTES);
    return tags_equal(tag, buf + len);
}

/* Runs one ChaCha20-Poly1305 job; non-zero when it is complete on return, as such jobs always are. */
static int chacha(IMB_MGR *manager, IMB_CIPHER_DIRECTION direction, const uint8_t *key,
                  const uint8_t *nonce, const uint8_t *aad, size_t aad_len, const uint8_t *src, size_t len,
                  uint8_t *dst, uint8_t *tag)
{
    IMB_JOB *job = IMB_GET_NEXT_JOB(manager);
    job->cipher_mode = IMB_CIPHER_CHACHA20_POLY1305;
    job->hash_alg = IMB_AUTH_CHACHA20_POLY1305;
    job->cipher_direction = direction;
    job->chain_order = direction == IMB_DIR_ENCRYPT ? IMB_ORDER_CIPHER_HASH : IMB_ORDER_HASH_CIPHER;
    job->enc_keys = key;
    job->dec_keys = key;
    job->key_len_in_bytes = 32;
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
    job = IMB_SUBMIT_JOB_NOCHECK(manager);
    return job != NULL && job->status == IMB_STATUS_COMPLETED;
}

/* As cb_imb_gcm_seal, with a 32-byte key; 0 when the library left the job unfinished. */
int cb_imb_chacha_seal(IMB_MGR *manager, const uint8_t *key, const uint8_t *nonce, const uint8_t *aad,
                       size_t aad_len, const uint8_t *src, size_t len, uint8_t *dst)
{
    return chacha(manager, IMB_DIR_ENCRYPT, key, nonce, aad, aad_len, src, len, dst, dst + len);
}

/* As cb_imb_gcm_open, with a 32-byte key; a job left unfinished counts as a tag that does not match. */
int cb_imb_chacha_open(IMB_MGR *manager, const uint8_t *key, const uint8_t *nonce, const uint8_t *aad,
                       size_t aad_len, uint8_t *buf, size_t len)
{
    uint8_t tag[TAG_BYTES];
    return chacha(manager, IMB_DIR_DECRYPT, key, nonce, aad, aad_len, buf, len, buf, tag) &&
           tags_equal(tag, buf + len);
}
