/* The tightest loop over OpenSSL's EVP: one context, set up once and reused for every message.
 *
 *     cc -O2 -o loop bench/device.c -lcrypto
 *     loop OPERATION BYTES SECONDS
 *
 * prints operations and nanoseconds. Each message is processed as an independent one must be: set the IV or restart, process
 * the message, and finish it where that has an effect. `bench/device.py` compares it with our own loop. */

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#define BYTES_MAX 65536
#define TAG_BYTES 16

static volatile sig_atomic_t over;
static unsigned char key[64], iv[16], input[BYTES_MAX], output[BYTES_MAX + 64];

static void end(int signal)
{
	(void)signal;
	over = 1;
}

static void check(int right, const char *what)
{
	if (!right) {
		fprintf(stderr, "device.c: %s failed\n", what);
		exit(1);
	}
}

static unsigned long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

static unsigned long long hash(const char *name, size_t bytes)
{
	EVP_MD *digest = EVP_MD_fetch(NULL, name, NULL);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	unsigned long long count = 0;
	unsigned length;

	check(digest && EVP_DigestInit_ex(context, digest, NULL), name);
	for (; !over; count++)
		check(EVP_DigestInit_ex(context, NULL, NULL) && EVP_DigestUpdate(context, input, bytes) &&
		      EVP_DigestFinal_ex(context, output, &length), name);
	return count;
}

static unsigned long long hmac(const char *name, size_t bytes)
{
	OSSL_PARAM with[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)name, 0),
		OSSL_PARAM_construct_end(),
	};
	EVP_MAC_CTX *context = EVP_MAC_CTX_new(EVP_MAC_fetch(NULL, "HMAC", NULL));
	unsigned long long count = 0;
	size_t length;

	check(context && EVP_MAC_init(context, key, 32, with), name);
	for (; !over; count++)
		check(EVP_MAC_init(context, NULL, 0, NULL) && EVP_MAC_update(context, input, bytes) &&
		      EVP_MAC_final(context, output, &length, sizeof output), name);
	return count;
}

static unsigned long long encrypt(const char *name, size_t bytes, int aead)
{
	EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, name, NULL);
	EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
	unsigned long long count = 0;
	int length, rest;

	check(cipher && EVP_EncryptInit_ex(context, cipher, NULL, key, iv), name);
	/* Without padding the setting would be repeated with every IV: a quarter of the time of 64 B of AES-CTR in OpenSSL 3.0. */
	if (EVP_CIPHER_get_block_size(cipher) > 1)
		EVP_CIPHER_CTX_set_padding(context, 0);
	for (; !over; count++) {
		check(EVP_EncryptInit_ex(context, NULL, NULL, NULL, iv) &&
		      EVP_EncryptUpdate(context, output, &length, input, bytes), name);
		/* Whole blocks without padding need no final call. */
		if (aead)
			check(EVP_EncryptFinal_ex(context, output + length, &rest) &&
			      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, TAG_BYTES, output + bytes), name);
	}
	return count;
}

int main(int words, char **word)
{
	unsigned long long begin, count;
	struct itimerval timer = {0};
	double seconds;
	size_t bytes;

	check(words == 4, "usage: loop OPERATION BYTES SECONDS:");
	seconds = strtod(word[3], NULL);
	bytes = strtoul(word[2], NULL, 10);
	check(bytes <= BYTES_MAX, "a length of at most 65536");
	for (size_t place = 0; place < sizeof input; place++)
		input[place] = place * 167;
	for (size_t place = 0; place < sizeof key; place++)
		key[place] = place * 31 + 7;
	signal(SIGALRM, end);
	timer.it_value.tv_sec = seconds;
	timer.it_value.tv_usec = (seconds - timer.it_value.tv_sec) * 1e6;
	check(!setitimer(ITIMER_REAL, &timer, NULL), "setting the timer");
	begin = now();
	if (!strcmp(word[1], "sha-256"))
		count = hash("SHA256", bytes);
	else if (!strcmp(word[1], "hmac-sha-256"))
		count = hmac("SHA256", bytes);
	else if (!strcmp(word[1], "aes-128-cbc encrypt"))
		count = encrypt("AES-128-CBC", bytes, 0);
	else if (!strcmp(word[1], "aes-256-ctr encrypt"))
		count = encrypt("AES-256-CTR", bytes, 0);
	else if (!strcmp(word[1], "aes-256-gcm encrypt"))
		count = encrypt("AES-256-GCM", bytes, 1);
	else if (!strcmp(word[1], "chacha20-poly1305 encrypt"))
		count = encrypt("ChaCha20-Poly1305", bytes, 1);
	else
		check(0, word[1]);
	printf("%llu %llu\n", count, now() - begin);
	return 0;
}
