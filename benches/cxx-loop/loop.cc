// The plain loop that the worker is measured against: the same driver calls, no journal, no supervisor, nothing else.
//
//   loop LIBCUDA IMAGE SECONDS [--threads N] [--keep N] [--block X]
//
// T threads on one context from cuCtxCreate_v2; each loads the image, looks repro_kernel up, launches it on its own three
// 128 x 128 float arrays, waits for the context, and unloads the module, except one in N that it keeps. Afterwards each
// thread checks its sums. One line of JSON on stdout; exit 1 where a call fails or a sum is wrong, 2 for bad arguments.
// Needs no CUDA header: what it calls is declared here. g++ -O2 -pthread loop.cc -o loop -ldl
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

using Handle = void*;
using Pointer = std::uint64_t;  // CUdeviceptr
using Clock = std::chrono::steady_clock;

struct Driver {
    int (*init)(unsigned flags);
    int (*device_get)(int* device, int ordinal);
    int (*context_create)(Handle* context, unsigned flags, int device);
    int (*context_set)(Handle context);
    int (*synchronize)();
    int (*allocate)(Pointer* pointer, std::size_t bytes);
    int (*fill)(Pointer pointer, unsigned char value, std::size_t bytes);
    int (*copy_in)(Pointer to, const void* from, std::size_t bytes);
    int (*copy_out)(void* to, Pointer from, std::size_t bytes);
    int (*load)(Handle* module, const void* image);
    int (*look_up)(Handle* function, Handle module, const char* name);
    int (*launch)(Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                  unsigned block_z, unsigned shared_bytes, Handle stream, void** arguments, void** extra);
    int (*unload)(Handle module);
};

struct Options {
    unsigned threads = 2;
    std::uint64_t keep = 4;
    unsigned block = 1;
};

// Ends the process with one line, however many threads come here.
[[noreturn]] void fail(int status, const std::string& why) {
    static std::atomic_flag taken = ATOMIC_FLAG_INIT;
    while (taken.test_and_set()) std::this_thread::sleep_for(std::chrono::hours(1));
    std::fprintf(stderr, "loop: %s\n", why.c_str());
    std::_Exit(status);
}

void check(int code, const char* call) {
    if (__builtin_expect(code != 0, 0)) fail(1, std::string(call) + " answered " + std::to_string(code));
}

template <typename Function>
void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (!function) fail(1, std::string("no ") + name + " in the driver");
}

Driver open_driver(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail(1, dlerror());
    Driver driver;
    find(library, "cuInit", driver.init);
    find(library, "cuDeviceGet", driver.device_get);
    find(library, "cuCtxCreate_v2", driver.context_create);
    find(library, "cuCtxSetCurrent", driver.context_set);
    find(library, "cuCtxSynchronize", driver.synchronize);
    find(library, "cuMemAlloc_v2", driver.allocate);
    find(library, "cuMemsetD8_v2", driver.fill);
    find(library, "cuMemcpyHtoD_v2", driver.copy_in);
    find(library, "cuMemcpyDtoH_v2", driver.copy_out);
    find(library, "cuModuleLoadData", driver.load);
    find(library, "cuModuleGetFunction", driver.look_up);
    find(library, "cuLaunchKernel", driver.launch);
    find(library, "cuModuleUnload", driver.unload);
    return driver;
}

constexpr unsigned kSide = 128;
constexpr std::size_t kElements = kSide * kSide;
constexpr std::size_t kBytes = kElements * sizeof(float);

// The fifteen arguments: of each array its pointer, two shapes, two strides in elements.
struct Arguments {
    Pointer pointers[3] = {};
    std::int32_t shape0 = kSide, shape1 = kSide, stride0 = kSide, stride1 = 1;
    void* list[15];

    Arguments() {
        for (int array = 0; array < 3; ++array) {
            void* of_array[5] = {&pointers[array], &shape0, &shape1, &stride0, &stride1};
            for (int i = 0; i < 5; ++i) list[5 * array + i] = of_array[i];
        }
    }
    Arguments(const Arguments&) = delete;
};

// One cache line or more for each thread, so that counting does not make them meet.
struct alignas(128) Count {
    std::uint64_t rounds = 0, kept = 0;
};

// Nothing but this stands between a thread's first call and its last. One round at least, so that there are sums to check.
Count churn(const Driver& driver, const char* image, const Options& options, Arguments& arguments, const std::atomic<bool>& over) {
    Count count;
    std::vector<Handle> kept;
    do {
        Handle module = nullptr, function = nullptr;
        check(driver.load(&module, image), "cuModuleLoadData");
        check(driver.look_up(&function, module, "repro_kernel"), "cuModuleGetFunction");
        check(driver.launch(function, 1, 1, 1, options.block, 1, 1, 0, nullptr, arguments.list, nullptr), "cuLaunchKernel");
        check(driver.synchronize(), "cuCtxSynchronize");
        if (options.keep != 0 && count.rounds % options.keep == options.keep - 1) {
            kept.push_back(module);
        } else {
            check(driver.unload(module), "cuModuleUnload");
        }
        ++count.rounds;
    } while (!over.load(std::memory_order_relaxed));
    count.kept = kept.size();
    return count;
}

// Fills a and b so that every sum is another number that a float holds exactly, and poisons c.
void fill(const Driver& driver, Arguments& arguments, unsigned thread) {
    std::vector<float> a(kElements), b(kElements);
    for (std::size_t i = 0; i < kElements; ++i) {
        a[i] = static_cast<float>(i);
        b[i] = static_cast<float>(thread + 1) * 65536.0f;
    }
    for (Pointer& pointer : arguments.pointers) check(driver.allocate(&pointer, kBytes), "cuMemAlloc_v2");
    check(driver.copy_in(arguments.pointers[0], a.data(), kBytes), "cuMemcpyHtoD_v2");
    check(driver.copy_in(arguments.pointers[1], b.data(), kBytes), "cuMemcpyHtoD_v2");
    check(driver.fill(arguments.pointers[2], 0xff, kBytes), "cuMemsetD8_v2");
}

void verify(const Driver& driver, const Arguments& arguments, unsigned thread) {
    std::vector<float> c(kElements);
    check(driver.copy_out(c.data(), arguments.pointers[2], kBytes), "cuMemcpyDtoH_v2");
    for (std::size_t i = 0; i < kElements; ++i)
        if (c[i] != static_cast<float>(i) + static_cast<float>(thread + 1) * 65536.0f)
            fail(1, "thread " + std::to_string(thread) + ": element " + std::to_string(i) + " is " + std::to_string(c[i]));
}

void run(const Driver& driver, const char* image, double seconds, const Options& options) {
    int device = 0;
    Handle context = nullptr;
    check(driver.init(0), "cuInit");
    check(driver.device_get(&device, 0), "cuDeviceGet");
    check(driver.context_create(&context, 0, device), "cuCtxCreate_v2");
    std::vector<Count> counts(options.threads);
    std::vector<std::thread> threads;
    std::atomic<unsigned> ready{0};
    std::atomic<bool> go{false}, over{false};
    for (unsigned thread = 0; thread < options.threads; ++thread) {
        threads.emplace_back([&, thread] {
            Arguments arguments;
            check(driver.context_set(context), "cuCtxSetCurrent");
            fill(driver, arguments, thread);
            ready.fetch_add(1);
            ready.notify_one();
            go.wait(false);
            Count count = churn(driver, image, options, arguments, over);
            verify(driver, arguments, thread);
            counts[thread] = count;
        });
    }
    for (unsigned seen; (seen = ready.load()) < options.threads;) ready.wait(seen);
    const auto start = Clock::now();
    go.store(true);
    go.notify_all();
    std::this_thread::sleep_until(start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
    over.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads) thread.join();
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    Count all;
    for (const Count& count : counts) all.rounds += count.rounds, all.kept += count.kept;
    std::printf("{\"seconds\": %.6f, \"threads\": %u, \"rounds\": %llu, \"kept\": %llu, \"rounds_per_second\": %.3f}\n", took, options.threads,
                static_cast<unsigned long long>(all.rounds), static_cast<unsigned long long>(all.kept), static_cast<double>(all.rounds) / took);
    std::fflush(stdout);
    // No teardown: this measures the loop, and a driver that is asked to go is another experiment.
    std::_Exit(0);
}

Options parse(int count, char** words) {
    Options options;
    for (int i = 4; i < count; i += 2) {
        const std::string name = words[i];
        if (i + 1 == count) fail(2, name + " needs a value");
        const unsigned value = static_cast<unsigned>(std::strtoul(words[i + 1], nullptr, 10));
        if (name == "--threads" && value > 0) options.threads = value;
        else if (name == "--keep") options.keep = value;
        else if (name == "--block" && value > 0) options.block = value;
        else fail(2, "do not know " + name + " " + words[i + 1]);
    }
    return options;
}

}  // namespace

int main(int count, char** words) {
    if (count < 4) fail(2, "usage: loop LIBCUDA IMAGE SECONDS [--threads N] [--keep N] [--block X]");
    const double seconds = std::atof(words[3]);
    if (!(seconds > 0)) fail(2, std::string("not a number of seconds: ") + words[3]);
    const Options options = parse(count, words);
    std::ifstream file(words[2], std::ios::binary);
    std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
    if (!file || image.empty()) fail(2, std::string("cannot read ") + words[2]);
    image.push_back(0);  // an image that is text ends with a zero byte
    run(open_driver(words[1]), image.data(), seconds, options);
}
