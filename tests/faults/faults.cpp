// The functions of libc that faults come by. glibc calls its own, so what it does inside one of
// these counts once.
#include "tests/faults/faults.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

namespace graft::testing {
namespace {

std::atomic<bool> armed{false};
std::atomic<std::uint64_t> seen{0};
std::atomic<std::int64_t> live{0};
Fault wanted = Fault::no_memory;
std::uint64_t wanted_number = 0;

/// Counts; whether this one meets the fault.
bool meets() {
  return ++seen == wanted_number;
}

constexpr int kWrongFile = 3;  // the exit code where a file cannot be changed
constexpr int kMostFrames = 30;

/// The first call loads a library.
[[maybe_unused]] const int kFrames = [] {
  void* frames[kMostFrames];
  return ::backtrace(frames, kMostFrames);
}();

/// Whether the allocation is made on behalf of protobuf, of the code that it generated, of
/// nlohmann's JSON or of oneDNN: without memory the first three leak or end the process, the last
/// steps on a null pointer.
bool is_made_for_others() {
  void* frames[kMostFrames];
  const int count = ::backtrace(frames, kMostFrames);
  for (int i = 0; i < count; ++i) {
    Dl_info info{};
    if (::dladdr(frames[i], &info) == 0) continue;
    const std::string_view file = info.dli_fname == nullptr ? "" : info.dli_fname;
    const std::string_view function = info.dli_sname == nullptr ? "" : info.dli_sname;
    for (const char* const library : {"libprotobuf", "libdnnl"}) {
      if (file.find(library) != std::string_view::npos) return true;
    }
    for (const char* const space : {"10graft_onnx", "6google8protobuf", "8nlohmann"}) {
      if (function.find(space) != std::string_view::npos) return true;
    }
  }
  return false;
}

bool allocation_fails() {
  if (!armed.load(std::memory_order_relaxed) || wanted != Fault::no_memory || !meets())
    return false;
  armed = false;  // looking may allocate
  const bool fails = !is_made_for_others();
  armed = true;
  return fails;
}

/// -1 with errno set when the call must fail, 1 when it must be short, 0 when it goes on. What
/// cannot be interrupted or short is not counted for these faults.
int fault_of_call(int error, bool may_be_interrupted = false, bool may_be_short = false) {
  if (!armed.load(std::memory_order_relaxed)) return 0;
  switch (wanted) {
    case Fault::no_memory:
    case Fault::cut_file:
    case Fault::longer_file:
    case Fault::clock_ahead:
    case Fault::clock_back:
      return 0;
    case Fault::failed_call:
      errno = error;
      return meets() ? -1 : 0;
    case Fault::interrupted_call:
      errno = EINTR;
      return may_be_interrupted && meets() ? -1 : 0;
    case Fault::short_call:
      return may_be_short && meets() ? 1 : 0;
    case Fault::killed:
      if (meets()) ::_exit(kKilledCode);
      return 0;
  }
  return 0;
}

/// Another program changes the file that is about to be looked at, or read.
void change_file(int file) {
  if (!armed.load(std::memory_order_relaxed)) return;
  if ((wanted != Fault::cut_file && wanted != Fault::longer_file) || !meets()) return;
  constexpr off_t kMore = 1024;
  struct stat status {};
  if (::fstatat(file, "", &status, AT_EMPTY_PATH) != 0 || !S_ISREG(status.st_mode)) return;
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  const off_t size = wanted == Fault::cut_file ? status.st_size / 2 : status.st_size + kMore;
  if (::truncate(path, size) != 0) ::_exit(kWrongFile);
}

/// How far a clock is ahead.
time_t jump_of(clockid_t clock) {
  constexpr time_t kDay = 24 * 60 * 60;
  static std::atomic<bool> jumped{false};
  if (!armed.load(std::memory_order_relaxed)) return 0;
  if (wanted != Fault::clock_ahead && wanted != Fault::clock_back) return 0;
  if (meets()) jumped = true;
  if (!jumped) return 0;
  if (wanted == Fault::clock_back) return clock == CLOCK_REALTIME ? -kDay : 0;
  return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC ? kDay : 0;
}

/// The system's function of that name.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

void* counted(void* memory) {
  if (memory != nullptr) ++live;
  return memory;
}

}  // namespace

void arm(Fault fault, std::uint64_t number) {
  wanted = fault;
  wanted_number = number;
  seen = 0;
  armed = true;
}

std::uint64_t disarm() {
  armed = false;
  return seen;
}

std::int64_t live_blocks() {
  return live;
}

}  // namespace graft::testing

using graft::testing::allocation_fails;
using graft::testing::change_file;
using graft::testing::counted;
using graft::testing::fault_of_call;
using graft::testing::jump_of;
using graft::testing::next;

extern "C" {
void* __libc_malloc(std::size_t bytes);  // NOLINT: glibc's own names
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* memory);

void* malloc(std::size_t bytes) {
  if (!allocation_fails()) return counted(__libc_malloc(bytes));
  errno = ENOMEM;
  return nullptr;
}

void* calloc(std::size_t count, std::size_t bytes) {
  if (!allocation_fails()) return counted(__libc_calloc(count, bytes));
  errno = ENOMEM;
  return nullptr;
}

void* realloc(void* memory, std::size_t bytes) {
  if (allocation_fails()) {
    errno = ENOMEM;
    return nullptr;
  }
  void* const moved = __libc_realloc(memory, bytes);
  return memory == nullptr ? counted(moved) : moved;
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (!allocation_fails()) return counted(__libc_memalign(alignment, bytes));
  errno = ENOMEM;
  return nullptr;
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  if (allocation_fails()) return ENOMEM;
  *memory = counted(__libc_memalign(alignment, bytes));
  return *memory == nullptr ? ENOMEM : 0;
}

void free(void* memory) {
  if (memory != nullptr) --graft::testing::live;
  __libc_free(memory);
}

int openat(int folder, const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (fault_of_call(EIO, true) != 0) return -1;
  static auto* const real = next<int(int, const char*, int, ...)>("openat");
  return real(folder, path, flags, mode);
}

int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (fault_of_call(EIO, true) != 0) return -1;
  static auto* const real = next<int(const char*, int, ...)>("open");
  return real(path, flags, mode);
}

ssize_t read(int file, void* to, std::size_t bytes) {
  change_file(file);
  const int fault = fault_of_call(EIO, true, bytes > 1);
  if (fault < 0) return -1;
  static auto* const real = next<ssize_t(int, void*, std::size_t)>("read");
  return real(file, to, fault > 0 ? 1 : bytes);
}

ssize_t pread(int file, void* to, std::size_t bytes, off_t offset) {
  change_file(file);
  const int fault = fault_of_call(EIO, true, bytes > 1);
  if (fault < 0) return -1;
  static auto* const real = next<ssize_t(int, void*, std::size_t, off_t)>("pread");
  return real(file, to, fault > 0 ? 1 : bytes, offset);
}

ssize_t write(int file, const void* from, std::size_t bytes) {
  const int fault = fault_of_call(ENOSPC, true, bytes > 1);
  if (fault < 0) return -1;
  static auto* const real = next<ssize_t(int, const void*, std::size_t)>("write");
  return real(file, from, fault > 0 ? 1 : bytes);
}

int fsync(int file) {
  if (fault_of_call(EIO, true) != 0) return -1;
  static auto* const real = next<int(int)>("fsync");
  return real(file);
}

int fallocate(int file, int mode, off_t offset, off_t bytes) {
  if (fault_of_call(ENOSPC, true) != 0) return -1;
  static auto* const real = next<int(int, int, off_t, off_t)>("fallocate");
  return real(file, mode, offset, bytes);
}

/// The descriptor is gone in any case.
int close(int file) {
  const int fault = fault_of_call(EIO);
  static auto* const real = next<int(int)>("close");
  const int result = real(file);
  if (fault == 0) return result;
  errno = EIO;
  return -1;
}

int rename(const char* from, const char* to) noexcept {
  if (fault_of_call(EIO) != 0) return -1;
  static auto* const real = next<int(const char*, const char*)>("rename");
  return real(from, to);
}

int link(const char* from, const char* to) noexcept {
  if (fault_of_call(EIO) != 0) return -1;
  static auto* const real = next<int(const char*, const char*)>("link");
  return real(from, to);
}

int fstat(int file, struct stat* status) noexcept {
  change_file(file);
  if (fault_of_call(EIO) != 0) return -1;
  static auto* const real = next<int(int, struct stat*)>("fstat");
  return real(file, status);
}

int stat(const char* path, struct stat* status) noexcept {
  if (fault_of_call(EIO) != 0) return -1;
  static auto* const real = next<int(const char*, struct stat*)>("stat");
  return real(path, status);
}

/// One that fails leaves a file too many, which is all that can be done; a process can end here.
int unlink(const char* path) noexcept {
  if (graft::testing::wanted == graft::testing::Fault::killed) fault_of_call(0);
  static auto* const real = next<int(const char*)>("unlink");
  return real(path);
}

int clock_gettime(clockid_t clock, struct timespec* time) noexcept {
  static auto* const real = next<int(clockid_t, struct timespec*)>("clock_gettime");
  const int result = real(clock, time);
  time->tv_sec += jump_of(clock);
  return result;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  if (fault_of_call(EAGAIN) != 0) return EAGAIN;
  static auto* const real =
      next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return real(thread, attributes, start, argument);
}
}
