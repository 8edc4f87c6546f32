/* Overwrites the journal (descriptor 5) with noise, then dies. */
#include "gate.h"
int main(int argc, char **argv) {
    gate();
    unsigned long seed = argc > 1 ? strtoul(argv[1], 0, 0) : 1;
    struct stat about;
    if (fstat(5, &about)) return 98;
    unsigned long *words = mmap(0, about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, 5, 0);
    for (long i = 0; i < about.st_size / 8; i++) {
        seed ^= seed << 13; seed ^= seed >> 7; seed ^= seed << 17;
        words[i] = seed;
    }
    *(volatile int *)8 = 1;
    return 98;
}
