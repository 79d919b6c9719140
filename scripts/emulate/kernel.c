/* A minimal subset of Linux for one static program with one thread that computes, prints and exits: the tests of code for processors that
 * this machine is not. Files other than random sources are not found, threads cannot be created, and unknown calls are reported
 * and refused.
 *
 * Output goes to port 0xe9, which Bochs prints; `Shutdown` to port 0x8900 ends it. */

#include <asm/prctl.h>
#include <asm/unistd_64.h>
#include <elf.h>
#include <linux/errno.h>
#include <linux/poll.h>
#include <stddef.h>
#include <stdint.h>

/* The content of the disk behind the kernel: a page of arguments, each ended by a zero and the last by two; then the program. */
#define FIRST_SECTOR 64
#define IMAGE ((uint8_t *)0x2000000)
#define WORDS ((char *)IMAGE)
#define PROGRAM (IMAGE + 0x1000)
/* The program's address and memory, with its heap behind it. */
#define BASE 0x10000000UL
#define HEAP_END 0x20000000UL
#define MAPS_END 0x60000000UL
#define STACK_TOP 0x68000000UL
#define CHANCE 5

void enter(uintptr_t program, uintptr_t stack);
extern char system_call[], exceptions[];

static uintptr_t heap, maps = HEAP_END;

static void out(uint16_t port, uint8_t byte)
{
	__asm__ volatile("outb %0, %1" ::"a"(byte), "Nd"(port));
}

static uint8_t in(uint16_t port)
{
	uint8_t byte;

	__asm__ volatile("inb %1, %0" : "=a"(byte) : "Nd"(port));
	return byte;
}

static void say(const char *text)
{
	while (*text)
		out(0xe9, *text++);
}

static void say_number(uint64_t number)
{
	for (int shift = 60; shift >= 0; shift -= 4)
		out(0xe9, "0123456789abcdef"[number >> shift & 15]);
	out(0xe9, ' ');
}

static _Noreturn void stop(void)
{
	for (const char *word = "Shutdown"; *word; word++)
		out(0x8900, *word);
	for (;;)
		__asm__ volatile("hlt");
}

_Noreturn void exception_told(uint64_t number, uint64_t code, uint64_t at)
{
	uint64_t address;

	__asm__("mov %%cr2, %0" : "=r"(address));
	say("\n=== exception, its code, where, and the last address without memory: ");
	say_number(number);
	say_number(code);
	say_number(at - BASE);
	say_number(address);
	say("\n");
	stop();
}

void *memset(void *to, int byte, size_t length)
{
	void *at = to;

	__asm__ volatile("rep stosb" : "+D"(at), "+c"(length) : "a"(byte) : "memory");
	return to;
}

void *memcpy(void *to, const void *from, size_t length)
{
	void *at = to;

	__asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(length)::"memory");
	return to;
}

static void set_register(uint32_t number, uint64_t value)
{
	__asm__ volatile("wrmsr" ::"c"(number), "a"((uint32_t)value), "d"((uint32_t)(value >> 32)));
}

/* Not random: xorshift64 with a fixed seed, so that runs are reproducible. */
static long draw(uint8_t *to, size_t length)
{
	static uint64_t state = 88172645463325252;

	for (size_t at = 0; at < length; at++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		to[at] = state >> 32;
	}
	return length;
}

/* Memory that is never reused after it is freed. */
static long map(size_t length)
{
	uintptr_t at = maps;

	length = (length + 0xfff) & ~0xfffUL;
	if (length > MAPS_END - maps)
		return -ENOMEM;
	maps += length;
	memset((void *)at, 0, length);
	return at;
}

static long move(const void *from, size_t length, size_t wanted)
{
	long to = map(wanted);

	if (to > 0)
		memcpy((void *)to, from, length < wanted ? length : wanted);
	return to;
}

static long set_heap(uintptr_t end)
{
	static uintptr_t begin;

	if (!begin)
		begin = heap;
	if (end < begin || end > HEAP_END)
		return heap;
	if (end > heap)
		memset((void *)heap, 0, end - heap);
	heap = end;
	return heap;
}

static long print(uint64_t file, const char *text, size_t length)
{
	if (file != 1 && file != 2)
		return -EBADF;
	for (size_t at = 0; at < length; at++)
		out(0xe9, text[at]);
	return length;
}

/* Ticks instead of nanoseconds: the tests here do not measure time. */
static long tell_time(uint64_t time[2])
{
	uint32_t low, high;
	uint64_t ticks;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	ticks = (uint64_t)high << 32 | low;
	time[0] = ticks / 1000000000;
	time[1] = ticks % 1000000000;
	return 0;
}

long handle(uint64_t number, uint64_t a, uint64_t b, uint64_t c)
{
	switch (number) {
	case __NR_write:
		return print(a, (const char *)b, c);
	case __NR_writev: {
		const struct { const char *text; size_t length; } *parts = (const void *)b;
		long printed = 0;

		for (size_t at = 0; at < c; at++)
			printed += print(a, parts[at].text, parts[at].length);
		return printed;
	}
	case __NR_exit:
	case __NR_exit_group:
		say("=== end ");
		say_number(a);
		say("\n");
		stop();
	case __NR_kill:
	case __NR_tkill:
	case __NR_tgkill:
		say("\n=== aborted\n");
		stop();
	case __NR_brk:
		return set_heap(a);
	case __NR_mmap:
		return map(b);
	case __NR_mremap:
		return move((const void *)a, b, c);
	case __NR_arch_prctl:
		if (a != ARCH_SET_FS)
			return -EINVAL;
		set_register(0xc0000100, b);
		return 0;
	case __NR_clock_gettime:
		return tell_time((uint64_t *)b);
	case __NR_getrandom:
		return draw((uint8_t *)a, b);
	case __NR_openat: {
		const char *path = (const char *)b;
		int device = path[0] == '/' && path[1] == 'd' && path[2] == 'e' && path[3] == 'v' && path[4] == '/';

		return device ? CHANCE : -ENOENT;
	}
	case __NR_read:
		return a == CHANCE ? draw((uint8_t *)b, c) : -EBADF;
	case __NR_poll:
		((struct pollfd *)a)->revents = POLLIN;
		return 1;
	case __NR_sched_getaffinity:
		*(uint64_t *)c = 1;
		return sizeof(uint64_t);
	case __NR_set_tid_address:
	case __NR_gettid:
	case __NR_getpid:
		return 1;
	/* A test whose thread cannot be created runs in the main thread. */
	case __NR_clone:
	case __NR_clone3:
		return -EAGAIN;
	case __NR_close:
	case __NR_fcntl:
	case __NR_futex:
	case __NR_madvise:
	case __NR_mprotect:
	case __NR_munmap:
	case __NR_prctl:
	case __NR_prlimit64:
	case __NR_rt_sigaction:
	case __NR_rt_sigprocmask:
	case __NR_sched_yield:
	case __NR_set_robust_list:
	case __NR_sigaltstack:
		return 0;
	case __NR_ioctl:
		return -ENOTTY;
	case __NR_access:
	case __NR_fstat:
	case __NR_getcwd:
	case __NR_newfstatat:
	case __NR_open:
	case __NR_readlink:
	case __NR_readlinkat:
	case __NR_stat:
	case __NR_statx:
		return -ENOENT;
	case __NR_rseq:
		return -ENOSYS;
	default:
		say("\n=== system call not known: ");
		say_number(number);
		say("\n");
		return -ENOSYS;
	}
}

/* A sector from the first disk, or with command 0xec its identification (ATA: READ SECTORS, IDENTIFY DEVICE). */
static void ask_disk(uint8_t command, uint32_t sector, void *to)
{
	size_t words = 256;
	uint8_t status;

	out(0x1f6, 0xe0 | sector >> 24);
	out(0x1f2, 1);
	out(0x1f3, sector);
	out(0x1f4, sector >> 8);
	out(0x1f5, sector >> 16);
	out(0x1f7, command);
	do
		status = in(0x1f7);
	while (status & 0x80);
	if (!(status & 0x08)) {
		say("=== the disk cannot be read\n");
		stop();
	}
	__asm__ volatile("rep insw" : "+D"(to), "+c"(words) : "d"((uint16_t)0x1f0) : "memory");
}

static void read_disk(void)
{
	uint16_t about[256];

	ask_disk(0xec, 0, about);
	for (uint32_t sector = FIRST_SECTOR; sector < (about[60] | (uint32_t)about[61] << 16); sector++)
		ask_disk(0x20, sector, IMAGE + 512 * (sector - FIRST_SECTOR));
}

static void handle_exceptions(void)
{
	static struct {
		uint16_t low, segment;
		uint8_t stack, type;
		uint16_t middle;
		uint32_t high, zero;
	} __attribute__((packed)) gates[32];
	const struct {
		uint16_t limit;
		uint64_t base;
	} __attribute__((packed)) table = {sizeof gates - 1, (uintptr_t)gates};

	for (size_t at = 0; at < 32; at++) {
		uintptr_t to = (uintptr_t)exceptions + 16 * at;

		gates[at].low = to;
		gates[at].middle = to >> 16;
		gates[at].high = to >> 32;
		gates[at].segment = 8;
		gates[at].type = 0x8e;
	}
	__asm__ volatile("lidt %0" ::"m"(table));
}

/* Loads the program's segments; it relocates itself (a static PIE). Returns the address of its program headers. */
static uintptr_t load(const Elf64_Ehdr *program)
{
	const Elf64_Phdr *segment = (const void *)((const uint8_t *)program + program->e_phoff);
	uintptr_t headers = 0;

	if (program->e_ident[EI_MAG1] != 'E' || program->e_type != ET_DYN) {
		say("=== the program is not a static one that runs anywhere\n");
		stop();
	}
	for (size_t at = 0; at < program->e_phnum; at++, segment++) {
		uint8_t *to = (uint8_t *)BASE + segment->p_vaddr;

		if (segment->p_type != PT_LOAD)
			continue;
		memset(to, 0, segment->p_memsz);
		memcpy(to, (const uint8_t *)program + segment->p_offset, segment->p_filesz);
		if (!segment->p_offset)
			headers = (uintptr_t)to + program->e_phoff;
		heap = ((uintptr_t)to + segment->p_memsz + 0xfff) & ~0xfffUL;
	}
	return headers;
}

_Noreturn void kernel(void)
{
	const Elf64_Ehdr *program = (const void *)PROGRAM;
	uint64_t *stack = (uint64_t *)(STACK_TOP - 0x4000), *top = stack + 1;
	static const uint8_t seed[16] = "sixteen of bytes";
	uintptr_t headers;

	handle_exceptions();
	/* For SYSCALL: segments, entry point, and flags to clear. */
	set_register(0xc0000081, 8UL << 32);
	set_register(0xc0000082, (uintptr_t)system_call);
	set_register(0xc0000084, 0x700);
	read_disk();
	headers = load(program);
	*stack = 0;
	for (char *word = WORDS; *word; ++*stack) {
		*top++ = (uintptr_t)word;
		while (*word++)
			;
	}
	*top++ = 0;
	*top++ = (uintptr_t) "RUST_TEST_THREADS=1";
	*top++ = 0;
	const uint64_t about[] = {
		AT_PHDR, headers, AT_PHENT, sizeof(Elf64_Phdr), AT_PHNUM, program->e_phnum, AT_PAGESZ, 0x1000,
		AT_BASE, 0, AT_ENTRY, BASE + program->e_entry, AT_UID, 0, AT_EUID, 0, AT_GID, 0, AT_EGID, 0,
		AT_SECURE, 0, AT_RANDOM, (uintptr_t)seed, AT_HWCAP, 0, AT_CLKTCK, 100, AT_NULL, 0,
	};
	memcpy(top, about, sizeof about);
	enter(BASE + program->e_entry, (uintptr_t)stack);
	stop();
}
