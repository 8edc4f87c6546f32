// An application's own faults, one by name, as any C library would take them.
//
// usage: misuse IMAGE FAULT
// Prints the codes that the calls answer; a fatal signal prints the library of the program counter.
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" {
using Handle = void *;
using Address = unsigned long long;
int cuInit(unsigned);
int cuCtxCreate_v2(Handle *, unsigned, int);
int cuCtxDestroy_v2(Handle);
int cuCtxSetCurrent(Handle);
int cuCtxSynchronize();
int cuMemAlloc_v2(Address *, size_t);
int cuModuleLoadData(Handle *, const void *);
int cuModuleGetFunction(Handle *, Handle, const char *);
int cuModuleUnload(Handle);
int cuStreamCreate(Handle *, unsigned);
int cuStreamDestroy_v2(Handle);
int cuStreamSynchronize(Handle);
int cuGetErrorString(int, const char **);
int cuLaunchKernel(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **, void **);
}

static void on_signal(int number, siginfo_t *, void *context) {
    auto pc = reinterpret_cast<void *>(static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP]);
    Dl_info found{};
    const char *library = dladdr(pc, &found) && found.dli_fname ? found.dli_fname : "nowhere";
    const char *slash = strrchr(library, '/');
    char line[256];
    int length = snprintf(line, sizeof line, "signal %d pc in %s\n", number, slash ? slash + 1 : library);
    if (write(1, line, length)) {}
    signal(number, SIG_DFL);
}

static void say(const char *what, int code) {
    char line[128];
    int length = snprintf(line, sizeof line, "%s %d\n", what, code);
    if (write(1, line, length)) {}
}

static Handle context, module, function;
static Address memory[3];
static int shape = 128, row = 128, column = 1;
static void *arguments[15];

static int launch() { return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr); }

static void at_exit() {
    say("after the driver's end", cuCtxSynchronize());
    const char *text;
    say("and its texts", cuGetErrorString(1, &text));
}

static int misuse(const char *fault) {
    if (!strcmp(fault, "stale-function")) {
        say("unload", cuModuleUnload(module));
        say("launch", launch());
        say("sync", cuCtxSynchronize());
        say("sync again", cuCtxSynchronize());
    } else if (!strcmp(fault, "destroyed-context")) {
        say("destroy", cuCtxDestroy_v2(context));
        say("use", cuCtxSetCurrent(context));
    } else if (!strcmp(fault, "destroyed-stream")) {
        Handle stream;
        say("create", cuStreamCreate(&stream, 0));
        say("destroy", cuStreamDestroy_v2(stream));
        say("use", cuStreamSynchronize(stream));
    } else if (!strcmp(fault, "bad-output-pointer")) {
        say("text", cuGetErrorString(1, reinterpret_cast<const char **>(0x10)));
    } else if (!strcmp(fault, "short-parameters")) {
        void *few[4] = {arguments[0], arguments[1], reinterpret_cast<void *>(0x20), nullptr};
        say("launch", cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, few, nullptr));
    } else if (!strcmp(fault, "wild-device-pointer")) {
        memory[1] += 1 << 30;
        say("launch", launch());
        say("sync", cuCtxSynchronize());
        say("load", cuModuleLoadData(&module, nullptr));
    } else if (!strcmp(fault, "after-fork")) {
        if (fork() == 0) {
            say("in the child", cuCtxSynchronize());
            _exit(0);
        }
        wait(nullptr);
        say("in the parent", cuCtxSynchronize());
    } else if (!strcmp(fault, "after-exit")) {
        exit(0);
    } else {
        return 2;
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    struct sigaction action{};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    std::ifstream file(argv[1], std::ios::binary);
    std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
    if (!strcmp(argv[2], "after-exit")) atexit(at_exit);  // registered first, so it runs after the driver's own
    say("before cuInit", cuCtxSynchronize());
    if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuModuleLoadData(&module, image.data())) return 3;
    if (cuModuleGetFunction(&function, module, "repro_kernel")) return 3;
    for (int k = 0; k < 3; k++) {
        if (cuMemAlloc_v2(&memory[k], 128 * 128 * 4)) return 3;
        void *five[] = {&memory[k], &shape, &shape, &row, &column};
        memcpy(arguments + 5 * k, five, sizeof five);
    }
    return misuse(argv[2]);
}
