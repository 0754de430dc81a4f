// MPI's world as a Communicator. MPI's own errors end all ranks, which is its default: after one of
// them nothing is certain about the others.
#include "core/device/mpi_communicator.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <mutex>

#include "core/base/error.h"

namespace graft {
namespace {

/// MPI counts in int. A piece is far less, and large enough that pieces cost nothing.
constexpr std::size_t kPiece = std::size_t{1} << 26;

template <class T, class Call>
void by_pieces(std::span<T> all, const Call& call) {
  for (std::size_t first = 0; first < all.size(); first += kPiece) {
    const std::size_t count = std::min(kPiece, all.size() - first);
    call(all.data() + first, static_cast<int>(count));
  }
}

template <class T>
void sum_over_ranks(std::span<T> values, MPI_Datatype type) {
  by_pieces(values, [&](T* data, int count) {
    MPI_Allreduce(MPI_IN_PLACE, data, count, type, MPI_SUM, MPI_COMM_WORLD);
  });
}

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator() : exceptions_(std::uncaught_exceptions()) {
    int given = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm local = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
    MPI_Comm_size(local, &local_size_);
    MPI_Comm_free(&local);
  }
  ~MpiCommunicator() override {
    if (std::uncaught_exceptions() == exceptions_) {
      MPI_Finalize();
    } else {  // who catches it may still say what it was
      std::atexit([] { MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE); });
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_size() const override { return local_size_; }

  void all_reduce(std::span<float> values) override { sum_over_ranks(values, MPI_FLOAT); }
  void all_reduce(std::span<double> values) override { sum_over_ranks(values, MPI_DOUBLE); }

  void broadcast(std::span<std::byte> bytes, int root) override {
    by_pieces(bytes, [&](std::byte* data, int count) {
      MPI_Bcast(data, count, MPI_BYTE, root, MPI_COMM_WORLD);
    });
  }

  /// Pieces are no longer than what one call counts: AllReduce sends some megabytes at once.
  void all_to_all(std::span<const std::byte> sent, std::span<std::byte> received) override {
    const int piece = piece_of(sent.size());
    MPI_Alltoall(sent.data(), piece, MPI_BYTE, received.data(), piece, MPI_BYTE, MPI_COMM_WORLD);
  }

  void all_gather(std::span<std::byte> all) override {
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all.data(), piece_of(all.size()), MPI_BYTE,
                  MPI_COMM_WORLD);
  }

  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

  [[noreturn]] void abort(int code) override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

 private:
  int piece_of(std::size_t bytes) const {
    return static_cast<int>(bytes / static_cast<std::size_t>(size_));
  }

  int exceptions_;
  int rank_ = 0;
  int size_ = 1;
  int local_size_ = 1;
};

}  // namespace

std::shared_ptr<Communicator> mpi_communicator() {
  static std::mutex mutex;
  static std::weak_ptr<Communicator> joined;
  const std::lock_guard lock(mutex);
  if (std::shared_ptr<Communicator> world = joined.lock()) return world;
  int was_joined = 0;
  MPI_Initialized(&was_joined);
  if (was_joined != 0) {
    fail(ErrorKind::unsupported,
         "this process has joined MPI's world before, by itself or through an owner that let go: "
         "keep the communicator while it trains");
  }
  auto world = std::make_shared<MpiCommunicator>();
  joined = world;
  return world;
}

std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> name{};
  int length = 0;
  MPI_Get_library_version(name.data(), &length);
  const std::string all(name.data(), static_cast<std::size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));
}

}  // namespace graft
