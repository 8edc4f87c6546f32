/* Writes 64 MiB to stderr, then a last word, then dies. */
#include "gate.h"
int main(void) {
    gate();
    static char block[1 << 16];
    memset(block, 'x', sizeof block);
    block[sizeof block - 1] = '\n';
    for (int i = 0; i < 1024; i++) {
        size_t done = 0;
        while (done < sizeof block) {
            ssize_t n = write(2, block + done, sizeof block - done);
            if (n < 0) _exit(97);
            done += n;
        }
    }
    dprintf(2, "the last word\n");
    abort();
}
