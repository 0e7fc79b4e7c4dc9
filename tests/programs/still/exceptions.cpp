/* C++: an exception caught afterwards that was thrown before, threads, streams, destructors of statics.
 * trial: ranks=2 flags=-pthread */
#include "../common.h"
#include <atomic>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static thread_local std::string word = "initial";
static std::atomic<bool> let_go{false};

struct guard {
    int *count;
    ~guard() { ++*count; }
};

static int unwound = 0;

static void thrower(int depth) {
    guard here{&unwound};
    if (depth == 0) throw std::runtime_error("thrown afterwards");
    thrower(depth - 1);
}

int main(int argc, char **argv) {
    trial_start(&argc, &argv);
    std::map<std::string, std::vector<double>> table;
    for (int i = 0; i < 1000; i++) table["key " + std::to_string(i)].assign(i % 10, i * 0.5);
    auto shared = std::make_shared<std::ostringstream>();
    *shared << std::hex << 255 << " ";
    std::promise<int> promise;
    auto future = promise.get_future();
    std::thread worker([&] {
        word = "of the worker";
        int value = future.get();
        CHECK(value == 7 && word == "of the worker", "the worker got %d", value);
        try {
            thrower(3);
        } catch (const std::exception &) {
            word += "!";
        }
        CHECK(word == "of the worker!", "thrown in a thread: '%s'", word.c_str());
    });
    word = "of the main thread";
    int before = 0;
    try {
        throw std::string("in flight");
    } catch (const std::string &text) {
        /* Inside the handler, with the exception alive. */
        before = 1;
        trial_hold();
        CHECK(text == "in flight", "caught '%s'", text.c_str());
        try {
            throw;
        } catch (const std::string &again) {
            CHECK(again == "in flight", "thrown again: '%s'", again.c_str());
        }
    }
    promise.set_value(7);
    worker.join();
    CHECK(unwound == 4 && before == 1, "%d frames unwound", unwound);
    CHECK(word == "of the main thread", "thread-local string '%s'", word.c_str());
    *shared << 16;
    CHECK(shared->str() == "ff 10", "stream '%s'", shared->str().c_str());
    for (int i = 0; i < 1000; i++)
        CHECK(table["key " + std::to_string(i)].size() == size_t(i % 10), "entry %d", i);
    auto later = std::async(std::launch::async, [] { return 21 * 2; });
    CHECK(later.get() == 42, "async");
    MUST(MPI_Barrier(MPI_COMM_WORLD));
    return trial_finish();
}
