/* Dies of the signal that its argument names, by the shortest true way. */
#include "gate.h"
#include <sys/prctl.h>
#include <linux/seccomp.h>

static void bus(void) {
    int fd = memfd_create("victim", 0);
    if (ftruncate(fd, 4096))
        _exit(98);
    volatile char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ftruncate(fd, 0))
        _exit(98);
    *page = 1;
}

static void sys(void) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    struct { unsigned short code; unsigned char jt, jf; unsigned k; } trap[] = {{6, 0, 0, 0x00030000}};
    struct { unsigned short length; void *filter; } program = {1, trap};
    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
    getppid();
}

int main(int argc, char **argv) {
    gate();
    const char *which = argc > 1 ? argv[1] : "segv";
    volatile int zero = 0;
    if (!strcmp(which, "segv")) *(volatile int *)8 = 1;
    if (!strcmp(which, "bus")) bus();
    if (!strcmp(which, "ill")) __asm__ volatile("ud2");
    if (!strcmp(which, "fpe")) zero = 1000 / zero;
    if (!strcmp(which, "abrt")) abort();
    if (!strcmp(which, "sys")) sys();
    if (!strcmp(which, "trap")) __asm__ volatile("int3");
    if (!strcmp(which, "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(which, "term")) kill(getpid(), SIGTERM);
    return 98;
}
