/* The same through posix_spawn, with the grandchild in a session of its own. */
#include "gate.h"
extern char **environ;
int main(int argc, char **argv) {
    if (argc > 1) for (;;) pause();
    gate();
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    char *args[] = {argv[0], "wait", 0};
    pid_t pid;
    if (posix_spawn(&pid, argv[0], 0, &attributes, args, environ)) return 98;
    dprintf(2, "grandchild %d\n", pid);
    abort();
}
