/* Closes everything that it was handed, then dies. */
#include "gate.h"
int main(void) {
    gate();
    for (int fd = 0; fd < 1024; fd++) close(fd);
    *(volatile int *)8 = 1;
    return 98;
}
