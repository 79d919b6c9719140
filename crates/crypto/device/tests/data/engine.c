/*
 * An engine of OpenSSL for tests. It has AES-128-CBC, RSA and elliptic curves, the latter two by methods in the keys, as in
 * engines of cards, and Ed25519 by a method for keys of that type; all use OpenSSL's own code. Compiled with -DLIES it is
 * named `liar`, and returns a wrong byte in every fourth text of CBC and in every signature of Ed25519. Compiled with -DLONG
 * it is named `long`, and announces 80 bytes of every signature of Ed25519, which it writes in a buffer of 64. Compiled with
 * -DLAZY it is named `lazy`, and accepts every signature of Ed25519 without looking at it. With -DABSENT it does not start,
 * since its card is absent; with -DINCOMPLETE it needs a function that nobody has.
 *
 *   cc -shared -fPIC -o engine.so engine.c -lcrypto
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/aes.h>
#include <openssl/ec.h>
#include <openssl/engine.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#if defined LIES
#define ID "liar"
#elif defined LONG
#define ID "long"
#elif defined LAZY
#define ID "lazy"
#else
#define ID "trial"
#endif

struct key {
    AES_KEY schedule;
};

static int begin(EVP_CIPHER_CTX *ctx, const unsigned char *key, const unsigned char *iv, int encrypts) {
    struct key *own = EVP_CIPHER_CTX_get_cipher_data(ctx);
    (void)iv;
    if (key == NULL)
        return 1;
    return (encrypts ? AES_set_encrypt_key : AES_set_decrypt_key)(key, 128, &own->schedule) == 0;
}

static int run(EVP_CIPHER_CTX *ctx, unsigned char *out, const unsigned char *in, size_t length) {
    struct key *own = EVP_CIPHER_CTX_get_cipher_data(ctx);
    int encrypts = EVP_CIPHER_CTX_is_encrypting(ctx);
    AES_cbc_encrypt(in, out, length, &own->schedule, EVP_CIPHER_CTX_iv_noconst(ctx), encrypts);
#ifdef LIES
    static _Thread_local unsigned calls;
    if (length > 0 && ++calls % 4 == 0)
        out[length - 1] ^= 1;
#endif
    return 1;
}

static EVP_CIPHER *cbc;

static int ciphers(ENGINE *engine, const EVP_CIPHER **cipher, const int **nids, int nid) {
    static const int known[] = {NID_aes_128_cbc};
    (void)engine;
    if (cipher == NULL) {
        *nids = known;
        return 1;
    }
    *cipher = nid == NID_aes_128_cbc ? cbc : NULL;
    return *cipher != NULL;
}

static int sign(EVP_MD_CTX *ctx, unsigned char *signature, size_t *length, const unsigned char *text, size_t bytes) {
    EVP_PKEY *key = EVP_PKEY_CTX_get0_pkey(EVP_MD_CTX_get_pkey_ctx(ctx));
    unsigned char seed[32];
    size_t seed_bytes = sizeof seed;
    if (signature == NULL) {
        *length = 64;
        return 1;
    }
    /* The same key, without libcrypto's mark that it is the engine's. */
    if (EVP_PKEY_get_raw_private_key(key, seed, &seed_bytes) != 1)
        return 0;
    EVP_PKEY *own = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, seed_bytes);
    EVP_MD_CTX *inner = EVP_MD_CTX_new();
    int done = own != NULL && inner != NULL && EVP_DigestSignInit(inner, NULL, NULL, NULL, own) == 1 &&
               EVP_DigestSign(inner, signature, length, text, bytes) == 1;
    EVP_MD_CTX_free(inner);
    EVP_PKEY_free(own);
#ifdef LIES
    signature[63] ^= 1;
#endif
#ifdef LONG
    *length = 80;
#endif
    return done;
}

static int verify(EVP_MD_CTX *ctx, const unsigned char *signature, size_t length, const unsigned char *text,
                  size_t bytes) {
#ifdef LAZY
    return 1;
#endif
    EVP_PKEY *key = EVP_PKEY_CTX_get0_pkey(EVP_MD_CTX_get_pkey_ctx(ctx));
    unsigned char point[32];
    size_t point_bytes = sizeof point;
    if (EVP_PKEY_get_raw_public_key(key, point, &point_bytes) != 1)
        return -1;
    EVP_PKEY *own = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, point, point_bytes);
    EVP_MD_CTX *inner = EVP_MD_CTX_new();
    int right = -1;
    if (own != NULL && inner != NULL && EVP_DigestVerifyInit(inner, NULL, NULL, NULL, own) == 1)
        right = EVP_DigestVerify(inner, signature, length, text, bytes);
    EVP_MD_CTX_free(inner);
    EVP_PKEY_free(own);
    return right;
}

static int control(EVP_PKEY_CTX *ctx, int type, int number, void *pointer) {
    (void)ctx;
    (void)number;
    /* Ed25519 signs messages without a separate hash, so only a null digest is accepted. */
    return type == EVP_PKEY_CTRL_MD && pointer == NULL ? 1 : -2;
}

static EVP_PKEY_METHOD *ed25519;

static int methods(ENGINE *engine, EVP_PKEY_METHOD **method, const int **nids, int nid) {
    static const int known[] = {NID_ED25519};
    (void)engine;
    if (method == NULL) {
        *nids = known;
        return 1;
    }
    *method = nid == NID_ED25519 ? ed25519 : NULL;
    return *method != NULL;
}

#ifdef INCOMPLETE
extern int function_that_nobody_has(void);
int (*needed)(void) = function_that_nobody_has;
#endif

#ifdef ABSENT
#include <openssl/err.h>
static int start(ENGINE *engine) {
    (void)engine;
    ERR_raise_data(ERR_LIB_USER, 7, "no card in slot %d", 3);
    ERR_raise(ERR_LIB_ENGINE, ENGINE_R_INIT_FAILED);
    return 0;
}
#endif

static int bind(ENGINE *engine, const char *id) {
    static RSA_METHOD *rsa;
    static EC_KEY_METHOD *ec;
    (void)id;
    if (cbc == NULL) {
        cbc = EVP_CIPHER_meth_new(NID_aes_128_cbc, 16, 16);
        rsa = RSA_meth_dup(RSA_PKCS1_OpenSSL());
        ec = EC_KEY_METHOD_new(EC_KEY_OpenSSL());
        if (cbc == NULL || rsa == NULL || ec == NULL || !EVP_CIPHER_meth_set_iv_length(cbc, 16) ||
            !EVP_CIPHER_meth_set_flags(cbc, EVP_CIPH_CBC_MODE) || !EVP_CIPHER_meth_set_init(cbc, begin) ||
            !EVP_CIPHER_meth_set_do_cipher(cbc, run) ||
            !EVP_CIPHER_meth_set_impl_ctx_size(cbc, sizeof(struct key)))
            return 0;
    }
    /* It is freed with the engine. */
    ed25519 = EVP_PKEY_meth_new(NID_ED25519, EVP_PKEY_FLAG_SIGCTX_CUSTOM);
    if (ed25519 == NULL)
        return 0;
#ifdef ABSENT
    if (!ENGINE_set_init_function(engine, start))
        return 0;
#endif
    EVP_PKEY_meth_set_digestsign(ed25519, sign);
    EVP_PKEY_meth_set_digestverify(ed25519, verify);
    EVP_PKEY_meth_set_ctrl(ed25519, control, NULL);
    return ENGINE_set_pkey_meths(engine, methods) && ENGINE_set_id(engine, ID) && ENGINE_set_name(engine, "Engine for trials") &&
           ENGINE_set_ciphers(engine, ciphers) && ENGINE_set_RSA(engine, rsa) && ENGINE_set_EC(engine, ec);
}

IMPLEMENT_DYNAMIC_BIND_FN(bind)
IMPLEMENT_DYNAMIC_CHECK_FN()
