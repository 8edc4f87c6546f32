/* Uses an address of the kind that its argument names. */
#include "gate.h"
static unsigned long words[64];
__attribute__((noinline)) static void call_operand(void *object) { __asm__ volatile("mov %0, %%rdi\n\tcall *0x10(%%rdi)" : : "r"(object) : "rdi"); }
__attribute__((noinline)) static void call_register(unsigned long target) { __asm__ volatile("mov %0, %%rax\n\tcall *%%rax" : : "r"(target) : "rax"); }
__attribute__((noinline)) static void touch(volatile unsigned char *at) { *at = 1; }
int main(int argc, char **argv) {
    gate();
    const char *kind = argc > 1 ? argv[1] : "null";
    memset(words, 0xa5, sizeof words);
    long size = 4096;
    unsigned char *page = mmap(0, 3 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!strcmp(kind, "null")) touch((void *)0x18);
    if (!strcmp(kind, "poison-operand")) call_operand(words);
    if (!strcmp(kind, "poison-register")) call_register(words[0]);
    if (!strcmp(kind, "poison-pointer")) touch((void *)(words[0] + 0x20));
    if (!strcmp(kind, "not-canonical")) touch((void *)0x1234567812345678);
    if (!strcmp(kind, "protected")) { mprotect(page, 3 * size, PROT_READ); touch(page); }
    if (!strcmp(kind, "data")) call_register((unsigned long)words);
    if (!strcmp(kind, "unmapped")) { munmap(page + size, size); touch(page + size + 8); }
    if (!strcmp(kind, "formerly-code")) { mprotect(page, 3 * size, PROT_READ | PROT_EXEC); munmap(page, 3 * size); call_register((unsigned long)page); }
    return 98;
}
