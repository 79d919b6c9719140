/* The first sector of the disk: reads the kernel, which is in the next 63, and goes from real to protected mode and there. */

	.code16
	.globl boot
boot:	ljmp $0, $1f
1:	cli
	xorw %ax, %ax
	movw %ax, %ds
	movw %ax, %ss
	movw $0x7c00, %sp
	movw $wanted, %si
	movb $0x42, %ah		/* Extended read; the BIOS leaves the drive's number in dl. */
	int $0x13
	jc 2f
	lgdtl segments
	movl %cr0, %eax
	orl $1, %eax
	movl %eax, %cr0
	ljmpl $8, $0x10000
2:	movb $'!, %al		/* Reading failed. */
	outb %al, $0xe9
	hlt

	.balign 8
wanted:	.byte 16, 0
	.word 63		/* sectors */
	.word 0, 0x1000		/* to 0x10000 */
	.quad 1			/* from the second on */
table:	.quad 0
	.quad 0x00cf9a000000ffff	/* code of 32 bits, all of the memory */
	.quad 0x00cf92000000ffff	/* data, likewise */
segments:
	.word segments - table - 1
	.long table

	.org 510
	.byte 0x55, 0xaa

	.section .note.GNU-stack, "", @progbits
