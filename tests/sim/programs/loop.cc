// The report's loop on any image of the add kernel: load, get the function, launch, synchronise, check the sums, unload
// except one module in KEEP.
//
// usage: loop IMAGE BLOCK ROUNDS THREADS KEEP [lock]
// Prints what came of it in one line and ends with 0 (all sums right), 1 (some wrong), 3 (a call failed) or 9 (no progress).
// A fatal signal prints where it happened before it ends the process: the library of the program counter, or "nowhere".
#include <dlfcn.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <thread>
#include <vector>

extern "C" {
using Handle = void *;
using Address = unsigned long long;
int cuInit(unsigned);
int cuDeviceGet(int *, int);
int cuCtxCreate_v2(Handle *, unsigned, int);
int cuCtxDestroy_v2(Handle);
int cuCtxSetCurrent(Handle);
int cuCtxSynchronize();
int cuMemAlloc_v2(Address *, size_t);
int cuMemcpyHtoD_v2(Address, const void *, size_t);
int cuMemcpyDtoH_v2(void *, Address, size_t);
int cuModuleLoadData(Handle *, const void *);
int cuModuleGetFunction(Handle *, Handle, const char *);
int cuModuleUnload(Handle);
int cuLaunchKernel(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **, void **);
int cuGetErrorName(int, const char **);
}

static void check(int code, const char *call) {
    if (code == 0) return;
    const char *name = "no name";
    cuGetErrorName(code, &name);
    printf("%s: %d %s\n", call, code, name);
    fflush(stdout);
    _exit(3);
}
#define CHECK(call) check(call, #call)

static thread_local const char *phase = "elsewhere";
static std::atomic<int> unloads_in_flight{0};

static void on_signal(int number, siginfo_t *info, void *context) {
    auto pc = static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP];
    Dl_info found{};
    const char *library = "nowhere";
    if (dladdr(reinterpret_cast<void *>(pc), &found) && found.dli_fname) {
        const char *slash = strrchr(found.dli_fname, '/');
        library = slash ? slash + 1 : found.dli_fname;
    }
    bool jumped = info->si_addr == reinterpret_cast<void *>(pc);
    char line[256];
    int length = snprintf(line, sizeof line, "signal %d in %s pc in %s%s unloads %d\n", number, phase, library,
                          jumped ? " which is the fault address" : "", unloads_in_flight.load());
    if (write(1, line, length)) {}
    signal(number, SIG_DFL);
}

struct Plan {
    std::vector<char> image;
    unsigned block;
    long rounds;
    int threads, keep;
    bool lock;
};

static std::mutex unload_lock;
static std::atomic<long> done{0}, wrong{0};
static std::atomic<int> ready{0};

static void work(const Plan &plan, Handle context, int number) {
    constexpr int N = 128 * 128;
    CHECK(cuCtxSetCurrent(context));
    std::vector<float> host[3];
    Address device[3];
    for (int k = 0; k < 3; k++) {
        host[k].resize(N);
        for (int i = 0; i < N; i++) host[k][i] = k == 2 ? -1.f : float(i % 97) + float(k + number) + 0.5f;
        CHECK(cuMemAlloc_v2(&device[k], N * sizeof(float)));
        CHECK(cuMemcpyHtoD_v2(device[k], host[k].data(), N * sizeof(float)));
    }
    int shape = 128, row = 128, column = 1;
    void *arguments[15];
    for (int k = 0; k < 3; k++) {
        void *five[] = {&device[k], &shape, &shape, &row, &column};
        memcpy(arguments + 5 * k, five, sizeof five);
    }
    std::vector<float> cleared(N, -1.f), sums(N);
    for (ready++; ready < plan.threads;) std::this_thread::yield();
    for (long round = 0; round < plan.rounds; round++) {
        Handle module, function;
        CHECK(cuMemcpyHtoD_v2(device[2], cleared.data(), N * sizeof(float)));
        phase = "load";
        CHECK(cuModuleLoadData(&module, plan.image.data()));
        CHECK(cuModuleGetFunction(&function, module, "repro_kernel"));
        {
            std::unique_lock<std::mutex> held(unload_lock, std::defer_lock);
            if (plan.lock) held.lock();
            phase = "launch";
            CHECK(cuLaunchKernel(function, 1, 1, 1, plan.block, 1, 1, 0, nullptr, arguments, nullptr));
        }
        phase = "sync";
        CHECK(cuCtxSynchronize());
        CHECK(cuMemcpyDtoH_v2(sums.data(), device[2], N * sizeof(float)));
        for (int i = 0; i < N; i++) {
            if (sums[i] != host[0][i] + host[1][i]) {
                wrong++;
                break;
            }
        }
        if (plan.keep == 0 || round % plan.keep != 0) {
            std::unique_lock<std::mutex> held(unload_lock, std::defer_lock);
            if (plan.lock) held.lock();
            phase = "unload";
            unloads_in_flight++;
            CHECK(cuModuleUnload(module));
            unloads_in_flight--;
        }
        phase = "elsewhere";
        done++;
    }
}

static void watch(const std::atomic<bool> &over) {
    using namespace std::chrono;
    auto since = steady_clock::now();
    for (long last = -1; !over; std::this_thread::sleep_for(milliseconds(20))) {
        if (done != last) {
            last = done;
            since = steady_clock::now();
        }
        if (steady_clock::now() - since > seconds(5)) {
            printf("no progress after %ld rounds\n", last);
            fflush(stdout);
            _exit(9);
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    struct sigaction action{};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    std::ifstream file(argv[1], std::ios::binary);
    Plan plan{{std::istreambuf_iterator<char>(file), {}}, unsigned(atoi(argv[2])), atol(argv[3]), atoi(argv[4]), atoi(argv[5]), argc > 6};
    plan.image.push_back(0);
    int device;
    Handle context;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuCtxCreate_v2(&context, 0, device));
    std::atomic<bool> over{false};
    std::thread watcher(watch, std::cref(over));
    std::vector<std::thread> threads;
    for (int t = 0; t < plan.threads; t++) threads.emplace_back(work, std::cref(plan), context, t);
    for (auto &thread : threads) thread.join();
    over = true;
    watcher.join();
    CHECK(cuCtxDestroy_v2(context));
    printf("rounds %ld wrong %ld\n", done.load(), wrong.load());
    return wrong != 0;
}
