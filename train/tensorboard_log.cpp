// A record is: its length (u64), the length's checksum, the event, the event's checksum. The event
// is a protobuf message of few fields, written here by hand: protobuf stays in io/proto.
#include <array>
#include <bit>
#include <chrono>
#include <cstring>

#include "train/monitor.h"
#include "train/run_log.h"
#include "train/trainer.h"

namespace graft {
namespace {

/// CRC-32C (Castagnoli), as TFRecord masks it.
std::uint32_t masked_checksum(std::string_view bytes) {
  constexpr std::uint32_t kPolynomial = 0x82f63b78;
  constexpr std::uint32_t kMask = 0xa282ead8;
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kPolynomial : 0);
  }
  return std::rotr(~crc, 15) + kMask;
}

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

// Protobuf's wire types.
enum Wire : unsigned { varint = 0, fixed64 = 1, delimited = 2, fixed32 = 5 };

std::string varint_of(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7U) bytes += static_cast<char>((value & 0x7fU) | 0x80U);
  return bytes + static_cast<char>(value);
}

std::string key(unsigned field, Wire wire) {
  return varint_of(field << 3U | wire);
}

std::string message(unsigned field, std::string_view content) {
  return key(field, Wire::delimited) + varint_of(content.size()) + std::string(content);
}

/// Event: wall_time = 1, step = 2, and one of file_version = 3, summary = 5, session_log = 7.
std::string event(std::int64_t step, const std::string& content) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return key(1, Wire::fixed64) + raw(now.count()) + key(2, Wire::varint) +
         varint_of(static_cast<std::uint64_t>(step)) + content;
}

/// Summary.Value: tag = 1, simple_value = 2.
std::string scalar(const std::string& tag, double number) {
  return message(1, message(1, tag) + key(2, Wire::fixed32) + raw(static_cast<float>(number)));
}

/// TensorBoard shows in one drawing what has one tag in several runs, and groups tags by what
/// stands before the slash.
std::string tag_of(const std::string& name) {
  constexpr std::string_view kValidation = "validation_";
  return name.starts_with(kValidation) ? "validation/" + name.substr(kValidation.size())
                                       : "epoch/" + name;
}

std::string record(const std::string& event) {
  const std::string length = raw(static_cast<std::uint64_t>(event.size()));
  return length + raw(masked_checksum(length)) + event + raw(masked_checksum(event));
}

}  // namespace

void TensorBoardLog::on_start(Run& run) {
  open(run);
  // SessionLog.START (1): what another file says of steps from here on is dropped; they are done
  // again.
  const std::int64_t updates = run.trainer.train_step().updates();
  if (updates > 0) write(run, event(updates + 1, message(7, key(1, Wire::varint) + varint_of(1))));
  flush(run);
}

/// TensorBoard reads the files of a folder in the order of their names.
void TensorBoardLog::open(Run& run) {
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  path_ = folder_ / text("events.out.tfevents.", time.count(), ".graft");
  is_lost_ = false;
  std::error_code ignored;  // opening the file will tell
  std::filesystem::create_directories(folder_, ignored);
  file_ = std::ofstream(path_, std::ios::binary | std::ios::trunc);
  write(run, event(0, message(3, "brain.Event:2")));
  flush(run);
}

void TensorBoardLog::open_if_lost(Run& run) {
  std::error_code ignored;
  if (is_lost_ || !std::filesystem::exists(path_, ignored)) open(run);
}

void TensorBoardLog::on_step(Run& run, const Progress& progress) {
  constexpr std::int64_t kEvery = 10;
  if (progress.batch % kEvery != 0) return;
  std::string summary = scalar("step/loss", progress.step.loss) +
                        scalar("step/learning_rate", progress.learning_rate.value_or(0.0));
  if (progress.step.accuracy) summary += scalar("step/accuracy", *progress.step.accuracy);
  write(run, event(progress.updates, message(5, summary)));
}

void TensorBoardLog::on_validation(Run& run, const Evaluation& evaluation) {
  open_if_lost(run);
  std::string summary;
  for (const auto& [name, number] : numbers_of(evaluation)) summary += scalar(tag_of(name), number);
  write(run, event(run.trainer.train_step().updates(), message(5, summary)));
  flush(run);
}

void TensorBoardLog::on_epoch(Run& run, const EpochReport& report) {
  open_if_lost(run);
  EpochReport trained = report;
  trained.validation.reset();
  std::string summary = scalar("epoch/seconds", report.seconds);
  for (const auto& [name, number] : numbers_of(trained)) summary += scalar(tag_of(name), number);
  write(run, event(run.trainer.train_step().updates(), message(5, summary)));
  flush(run);
}

void TensorBoardLog::on_end(Run& run) {
  flush(run);
}

void TensorBoardLog::write(Run& run, const std::string& event) {
  const std::string bytes = record(event);
  file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file_) flush(run);
}

void TensorBoardLog::flush(Run& run) {
  file_.flush();
  if (file_ || is_lost_) return;
  is_lost_ = true;
  run.report_problem(text("cannot write the event file in '", folder_.string(), "'"));
}

}  // namespace graft
