/*
 * Opens the library, creates its managers, and dispatches calls by kind of SA.
 *
 * Every AES-GCM call and every burst of jobs stores to one error word of the library. Cores that share it pass
 * its cache line back and forth: two of them did 1.2 to 1.5 times the work of one on 64-byte packets, 1.8 times on
 * 1408-byte ones. So the library is opened several times, each copy in a namespace of its own with its own error
 * word, and threads are spread over the copies: then two cores do twice the work. A copy shares its code with the
 * others and costs 60 kB and 0.2 ms.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "ipsec_mb.h"

/*
 * glibc has 16 namespaces, but each takes static TLS for its C library, and 12 of them leave nothing for libraries
 * that the program opens later.
 */
#define COPIES_MAX 8

/* The library in one namespace. */
struct cb_copy {
    __typeof__(imb_get_mb_mgr_size) *imb_get_mb_mgr_size;
    __typeof__(imb_set_pointers_mb_mgr) *imb_set_pointers_mb_mgr;
    __typeof__(init_mb_mgr_auto) *init_mb_mgr_auto;
    __typeof__(init_mb_mgr_sse) *init_mb_mgr_sse;
    __typeof__(imb_get_errno) *imb_get_errno;
    __typeof__(imb_get_strerror) *imb_get_strerror;
    __typeof__(imb_get_version) *imb_get_version;
    __typeof__(imb_get_version_str) *imb_get_version_str;
    /* Number of existing managers; guarded by `lock`. */
    size_t managers;
};

/* Written by cb_imb_load only, except for their counts. */
static struct cb_copy copies[COPIES_MAX];
static size_t copies_open;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns the copy with the fewest managers, and counts one more. */
static struct cb_copy *take_copy(void)
{
    pthread_mutex_lock(&lock);
    struct cb_copy *copy = &copies[0];
    for (size_t i = 1; i < copies_open; i++)
        if (copies[i].managers < copy->managers)
            copy = &copies[i];
    copy->managers++;
    pthread_mutex_unlock(&lock);
    return copy;
}

void cb_imb_manager_free(struct cb_manager *manager)
{
    pthread_mutex_lock(&lock);
    manager->copy->managers--;
    pthread_mutex_unlock(&lock);
    /* Its lanes contained round keys and hash states. */
    explicit_bzero(manager, manager->bytes);
    free(manager);
}

/* A manager for the calling thread, or NULL with *why set. */
struct cb_manager *cb_imb_manager_new(const char **why)
{
    struct cb_copy *copy = take_copy();
    /* Both managers need cache-line alignment. */
    size_t own = (sizeof(struct cb_manager) + 63) & ~(size_t)63;
    size_t each = (copy->imb_get_mb_mgr_size() + 63) & ~(size_t)63;
    size_t bytes = own + 2 * each;
    void *place;
    if (posix_memalign(&place, 64, bytes) != 0) {
        *why = "no memory for its state";
        pthread_mutex_lock(&lock);
        copy->managers--;
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    struct cb_manager *manager = memset(place, 0, bytes);
    manager->copy = copy;
    manager->bytes = bytes;
    /* In our memory, so that a copy never calls the allocator of its own namespace. */
    manager->library = copy->imb_set_pointers_mb_mgr((uint8_t *)place + own, 0, 1);
    copy->init_mb_mgr_auto(manager->library, NULL);
    int error = copy->imb_get_errno(manager->library);
    if (error != 0) {
        /* ENODEV: no AES-NI, carry-less multiply or SSE 4.2. */
        *why = copy->imb_get_strerror(error);
        cb_imb_manager_free(manager);
        return NULL;
    }
    if (manager->library->features & IMB_FEATURE_SHANI) {
        manager->narrow = copy->imb_set_pointers_mb_mgr((uint8_t *)place + own + each, 0, 1);
        copy->init_mb_mgr_sse(manager->narrow);
    }
    return manager;
}

static int resolve(void *handle, struct cb_copy *copy)
{
#define RESOLVE(name) ((copy->name = (__typeof__(copy->name))dlsym(handle, #name)) != NULL)
    return RESOLVE(imb_get_mb_mgr_size) && RESOLVE(imb_set_pointers_mb_mgr) && RESOLVE(init_mb_mgr_auto) &&
           RESOLVE(init_mb_mgr_sse) && RESOLVE(imb_get_errno) && RESOLVE(imb_get_strerror) &&
           RESOLVE(imb_get_version) && RESOLVE(imb_get_version_str);
#undef RESOLVE
}

/* Opens one copy per expected thread; a failure costs only speed. */
static void open_copies(const char *name, size_t threads)
{
#ifdef LM_ID_NEWLM
    while (copies_open < threads && copies_open < COPIES_MAX) {
        void *handle = dlmopen(LM_ID_NEWLM, name, RTLD_NOW | RTLD_LOCAL);
        if (handle == NULL)
            return;
        if (!resolve(handle, &copies[copies_open])) {
            dlclose(handle);
            return;
        }
        copies_open++;
    }
#else
    (void)name;
    (void)threads;
#endif
}

/*
 * Opens the library for this many threads at full speed; any number may use it. Files are opened
 * here and never later. Not thread-safe; call it once, before anything else here.
 * Returns NULL, or why it cannot be used (valid for ever); *version is set when it can.
 */
const char *cb_imb_load(size_t threads, const char **version)
{
    char name[32];
    snprintf(name, sizeof name, "libIPSec_MB.so.%d", IMB_VERSION_NUM >> 16);
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return "its library is not on this host: install libipsec-mb1";
    const char *why = NULL;
    struct cb_copy *copy = &copies[0];
    if (!resolve(handle, copy)) {
        why = "its library lacks a function that version " IMB_VERSION_STR " has";
    } else if (copy->imb_get_version() >> 8 != IMB_VERSION_NUM >> 8) {
        /* The layout of its structures changes between minor versions under one soname. */
        why = "its library is not version " IMB_VERSION_STR ", which this program was built for: build again";
    } else {
        struct cb_manager *manager = cb_imb_manager_new(&why);
        if (manager != NULL)
            cb_imb_manager_free(manager);
    }
    if (why != NULL) {
        dlclose(handle);
        return why;
    }
    copies_open = 1;
    open_copies(name, threads);
    *version = copy->imb_get_version_str();
    return NULL;
}

struct cb_sa *cb_sa_new(size_t bytes, const struct cb_operations *operations, bool extended)
{
    void *place;
    if (posix_memalign(&place, 64, bytes) != 0)
        return NULL;
    struct cb_sa *sa = memset(place, 0, bytes);
    sa->operations = operations;
    sa->bytes = bytes;
    sa->extended = extended;
    return sa;
}

void cb_imb_sa_free(struct cb_sa *sa)
{
    explicit_bzero(sa, sa->bytes);
    free(sa);
}

/*
 * The next three functions: packets are in order, disjoint, completely in the buffer, and long enough for the suite;
 * struct cb_operations documents the results.
 */
bool cb_imb_seal(struct cb_manager *manager, struct cb_sa *sa, uint8_t *buffer, const struct cb_packet *packets,
                 size_t count)
{
    return sa->operations->seal(manager, sa, buffer, packets, count);
}

bool cb_imb_open(struct cb_manager *manager, struct cb_sa *sa, uint8_t *buffer, const struct cb_packet *packets,
                 size_t count, bool *authentic)
{
    return sa->operations->open(manager, sa, buffer, packets, count, authentic);
}

bool cb_imb_seal_from(struct cb_manager *manager, struct cb_sa *sa, uint32_t sequence_high, const uint8_t *text,
                      uint8_t *packet, size_t bytes)
{
    return sa->operations->seal_from(manager, sa, sequence_high, text, packet, bytes);
}

/* The next two functions are for SAs of AEADs. */
bool cb_imb_aead_seal(struct cb_manager *manager, struct cb_sa *sa, const uint8_t *nonce, const uint8_t *aad,
                      size_t aad_len, const uint8_t *src, size_t len, uint8_t *dst)
{
    return sa->operations->aead_seal(manager, sa, nonce, aad, aad_len, src, len, dst);
}

bool cb_imb_aead_open(struct cb_manager *manager, struct cb_sa *sa, const uint8_t *nonce, const uint8_t *aad,
                      size_t aad_len, uint8_t *buf, size_t len)
{
    return sa->operations->aead_open(manager, sa, nonce, aad, aad_len, buf, len);
}
