/*
 * A PKCS#11 module for tests: that of SoftHSM2, whose path is the macro REAL, with a fault. It is chosen by a macro:
 *
 *   LIES         a wrong byte at the end of every fourth result
 *   LONG         announces 16 bytes more than its buffer holds
 *   OVERRUN      writes one byte behind its buffer
 *   HUGE         asks for a buffer of half the address space
 *   LAZY         accepts every signature without looking at it
 *   OWN_IV       encrypts with an IV of its own in AES-GCM, and returns it
 *   ONE_USAGE    refuses keys with more than one usage
 *   NO_KEYS      refuses all keys
 *   NUL          pads its texts with zero bytes
 *   FEW_SESSIONS opens three sessions, and then reports that the arguments are bad
 *
 *   cc -shared -fPIC -DREAL='"/usr/lib/softhsm/libsofthsm2.so"' -DLAZY -o token.so token.c -ldl
 */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

typedef unsigned long number;
typedef unsigned char byte;

/* The list of functions of PKCS #11 v2.40, of which only some have a name here. */
struct list {
    byte version[2];
    void *at[68];
};
enum {
    GET_LIST = 3,
    TOKEN_INFO = 6,
    OPEN = 12,
    CREATE = 20,
    ENCRYPT_INIT = 29,
    ENCRYPT = 30,
    DECRYPT = 34,
    DIGEST = 38,
    SIGN = 43,
    VERIFY_INIT = 48,
    VERIFY = 49
};
struct mechanism {
    number type;
    void *parameter;
    number length;
};
struct gcm {
    byte *iv;
    number iv_bytes, iv_bits;
    byte *aad;
    number aad_bytes, tag_bits;
};
struct attribute {
    number type;
    void *value;
    number length;
};

enum { OK = 0, ARGUMENTS_BAD = 7, ATTRIBUTE_VALUE_INVALID = 0x13, TEMPLATE_INCONSISTENT = 0xd1 };
enum { AES_GCM = 0x1087 };

static struct list real, own;

typedef number (*single)(number, byte *, number, byte *, number *);

static number run(int which, number session, byte *in, number bytes, byte *out, number *length) {
    number room = *length;
    number returned = ((single)real.at[which])(session, in, bytes, out, length);
    (void)room;
    if (returned != OK)
        return returned;
#if defined HUGE
    if (out == NULL)
        *length = ~0ul / 2;
#elif defined LONG
    if (out != NULL)
        *length = room + 16;
#elif defined OVERRUN
    if (out != NULL)
        out[room] ^= 1;
#elif defined LIES
    static _Thread_local unsigned calls;
    if (out != NULL && *length > 0 && ++calls % 4 == 0)
        out[*length - 1] ^= 1;
#endif
    return OK;
}

static number encrypt(number session, byte *in, number bytes, byte *out, number *length) {
    return run(ENCRYPT, session, in, bytes, out, length);
}

static number decrypt(number session, byte *in, number bytes, byte *out, number *length) {
    return run(DECRYPT, session, in, bytes, out, length);
}

static number digest(number session, byte *in, number bytes, byte *out, number *length) {
    return run(DIGEST, session, in, bytes, out, length);
}

static number sign(number session, byte *in, number bytes, byte *out, number *length) {
    return run(SIGN, session, in, bytes, out, length);
}

static number verify_init(number session, struct mechanism *mechanism, number key) {
    (void)session, (void)mechanism, (void)key;
    return OK;
}

static number verify(number session, byte *in, number bytes, byte *signature, number length) {
    (void)session, (void)in, (void)bytes, (void)signature, (void)length;
    return OK;
}

static number encrypt_init(number session, struct mechanism *mechanism, number key) {
    static _Thread_local byte count;
    if (mechanism->type == AES_GCM) {
        struct gcm *gcm = mechanism->parameter;
        memset(gcm->iv, 0xc0, gcm->iv_bytes);
        gcm->iv[gcm->iv_bytes - 1] = ++count;
    }
    return ((number(*)(number, struct mechanism *, number))real.at[ENCRYPT_INIT])(session, mechanism, key);
}

static number create(number session, struct attribute *attributes, number count, number *object) {
    int usages = 0;
#if defined NO_KEYS
    return ATTRIBUTE_VALUE_INVALID;
#endif
    for (number each = 0; each < count; each++) {
        number type = attributes[each].type;
        int is_usage = type == 0x104 || type == 0x105 || type == 0x108 || type == 0x10a;
        usages += is_usage && *(byte *)attributes[each].value;
    }
    if (usages > 1)
        return TEMPLATE_INCONSISTENT;
    return ((number(*)(number, struct attribute *, number, number *))real.at[CREATE])(session, attributes, count, object);
}

static void pad(byte *text, size_t bytes) {
    while (bytes > 0 && text[bytes - 1] == ' ')
        text[--bytes] = 0;
}

static number token_info(number slot, byte *info) {
    number returned = ((number(*)(number, byte *))real.at[TOKEN_INFO])(slot, info);
    if (returned == OK) {
        /* Label, maker, model, serial number. */
        pad(info, 32);
        pad(info + 32, 32);
        pad(info + 64, 16);
        pad(info + 80, 16);
    }
    return returned;
}

static number open_session(number slot, number flags, void *application, void *notify, number *session) {
    static int opened;
    if (__atomic_fetch_add(&opened, 1, __ATOMIC_RELAXED) >= 3)
        return ARGUMENTS_BAD;
    return ((number(*)(number, number, void *, void *, number *))real.at[OPEN])(slot, flags, application, notify, session);
}

number C_GetFunctionList(struct list **found) {
    if (own.at[GET_LIST] == NULL) {
        void *module = dlopen(REAL, RTLD_NOW | RTLD_LOCAL);
        number (*get)(struct list **) = module == NULL ? NULL : dlsym(module, "C_GetFunctionList");
        struct list *theirs;
        if (get == NULL || get(&theirs) != OK)
            return 5;
        real = own = *theirs;
        own.at[GET_LIST] = C_GetFunctionList;
        own.at[ENCRYPT] = encrypt;
        own.at[DECRYPT] = decrypt;
        own.at[DIGEST] = digest;
        own.at[SIGN] = sign;
        (void)verify_init, (void)verify, (void)encrypt_init, (void)create, (void)token_info, (void)open_session;
#if defined LAZY
        own.at[VERIFY_INIT] = verify_init;
        own.at[VERIFY] = verify;
#elif defined OWN_IV
        own.at[ENCRYPT_INIT] = encrypt_init;
#elif defined ONE_USAGE || defined NO_KEYS
        own.at[CREATE] = create;
#elif defined NUL
        own.at[TOKEN_INFO] = token_info;
#elif defined FEW_SESSIONS
        own.at[OPEN] = open_session;
#endif
    }
    *found = &own;
    return OK;
}
