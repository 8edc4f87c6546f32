/* Gives a bad output pointer to cuGetErrorString of the library that its argument names; with "thread", in a thread. */
#include "gate.h"
#include <dlfcn.h>
static int (*get_error_string)(int, const char **);
__attribute__((noinline)) static void asks(void) { get_error_string(100, (const char **)0x10); }
static void *body(void *unused) { asks(); return unused; }
int main(int argc, char **argv) {
    gate();
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) { fprintf(stderr, "%s\n", dlerror()); return 98; }
    int (*initialise)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    get_error_string = (int (*)(int, const char **))dlsym(library, "cuGetErrorString");
    fprintf(stderr, "cuInit answers %d\n", initialise(0));
    if (argc > 2) {
        pthread_t thread;
        pthread_create(&thread, 0, body, 0);
        pthread_join(thread, 0);
    }
    asks();
    return 98;
}
