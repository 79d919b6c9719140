/* From protected to long mode with all vector registers on; and the way from a program's system call into `handle` and back.

   Program and kernel run side by side, with all rights and in one memory: this is a processor to compute on, and nothing is
   guarded. No interrupt is ever let through. */

	.section .text.start, "ax"
	.code32
	.globl start
start:
	movw $16, %ax
	movw %ax, %ds
	movw %ax, %es
	movw %ax, %ss
	cld
	movl $bss_begin, %edi
	movl $bss_end, %ecx
	subl %edi, %ecx
	xorl %eax, %eax
	rep stosb

	/* Line A20. */
	inb $0x92, %al
	orb $2, %al
	andb $0xfe, %al
	outb %al, $0x92

	/* The first 4 GiB at their own addresses, in pages of 2 MiB. */
	movl $pages + 0x1003, pages
	xorl %ecx, %ecx
1:	movl %ecx, %eax
	shll $12, %eax
	addl $pages + 0x2003, %eax
	movl %eax, pages + 0x1000(, %ecx, 8)
	incl %ecx
	cmpl $4, %ecx
	jne 1b
	xorl %ecx, %ecx
2:	movl %ecx, %eax
	shll $21, %eax
	orl $0x83, %eax
	movl %eax, pages + 0x2000(, %ecx, 8)
	incl %ecx
	cmpl $2048, %ecx
	jne 2b
	movl $pages, %eax
	movl %eax, %cr3

	/* CR4: PAE, OSFXSR, OSXMMEXCPT, OSXSAVE. XCR0: x87, SSE, AVX, and all three of AVX-512. */
	movl $0x40620, %eax
	movl %eax, %cr4
	movl $1, %eax
	cpuid
	testl $1 << 26, %ecx
	jz 3f
	xorl %ecx, %ecx
	xorl %edx, %edx
	movl $0xe7, %eax
	xsetbv
3:	/* EFER: SCE, LME. CR0: PG, NE, MP, PE. */
	movl $0xc0000080, %ecx
	rdmsr
	orl $0x101, %eax
	wrmsr
	movl $0x80000023, %eax
	movl %eax, %cr0
	lgdt segments
	ljmp $8, $long_mode

	.code64
long_mode:
	movq $stack_end, %rsp
	call kernel
	ud2

	.text
	.globl enter
enter:	/* (program, its stack) */
	movq %rsi, %rsp
	xorl %edx, %edx
	jmp *%rdi

	/* rax: number; rdi, rsi, rdx: the arguments that any call here has; rcx: where to go on; r11: flags. All others keep what they
	   hold. */
	.globl system_call
system_call:
	movq %rsp, program_stack
	movq $stack_end, %rsp
	pushq %rcx
	pushq %r11
	pushq %rdi
	pushq %rsi
	pushq %rdx
	pushq %r10
	pushq %r8
	pushq %r9
	movq %rdx, %rcx
	movq %rsi, %rdx
	movq %rdi, %rsi
	movq %rax, %rdi
	call handle
	popq %r9
	popq %r8
	popq %r10
	popq %rdx
	popq %rsi
	popq %rdi
	popq %r11
	popq %rcx
	movq program_stack, %rsp
	pushq %r11
	popfq
	jmp *%rcx

	/* Exceptions: 16 bytes each, so that `kernel` can count them off. Some push an error's code, and the others a zero here. */
	.altmacro
	.macro exception number
	.balign 16
	.if \number == 8 || (\number >= 10 && \number <= 14) || \number == 17
	.else
	pushq $0
	.endif
	pushq $\number
	jmp exception_common
	.endm

	.balign 16
	.globl exceptions
exceptions:
	.set number, 0
	.rept 32
	exception %number
	.set number, number + 1
	.endr
exception_common:
	popq %rdi
	popq %rsi
	popq %rdx
	cld
	andq $-16, %rsp
	call exception_told

	.data
	.balign 8
table:	.quad 0
	.quad 0x00af9a000000ffff	/* code of 64 bits */
	.quad 0x00cf92000000ffff	/* data */
segments:
	.word segments - table - 1
	.long table

	.bss
	.balign 4096
pages:	.skip 0x6000
stack:	.skip 0x8000
stack_end:
program_stack:
	.skip 8

	.section .note.GNU-stack, "", @progbits
