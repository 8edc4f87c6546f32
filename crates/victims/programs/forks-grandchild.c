/* Leaves a grandchild in a session of its own, says its number, and dies; or goes on, if it has an argument. */
#include "gate.h"
int main(int argc, char **argv) {
    gate();
    int told[2];
    if (pipe(told)) return 98;
    if (fork() == 0) {
        setsid();
        pid_t pid = fork();
        if (pid == 0) for (;;) pause();
        dprintf(2, "grandchild %d\n", pid);
        if (write(told[1], "x", 1)) {}
        _exit(0);
    }
    char byte;
    if (read(told[0], &byte, 1)) {}
    if (argc > 1) for (;;) pause();
    abort();
}
