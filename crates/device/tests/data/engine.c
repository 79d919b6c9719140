/*
 * An engine of OpenSSL for tests. It has AES-128-CBC, RSA and elliptic curves, the latter two by methods in the keys, as
 * engines of cards had them; all are OpenSSL's own. Compiled with -DLIES it is called `liar`,
 * and every fourth text that went through CBC has a wrong byte.
 *
 *   cc -shared -fPIC -o engine.so engine.c -lcrypto
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/aes.h>
#include <openssl/ec.h>
#include <openssl/engine.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#ifdef LIES
#define ID "liar"
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
    return ENGINE_set_id(engine, ID) && ENGINE_set_name(engine, "Engine for trials") &&
           ENGINE_set_ciphers(engine, ciphers) && ENGINE_set_RSA(engine, rsa) && ENGINE_set_EC(engine, ec);
}

IMPLEMENT_DYNAMIC_BIND_FN(bind)
IMPLEMENT_DYNAMIC_CHECK_FN()
