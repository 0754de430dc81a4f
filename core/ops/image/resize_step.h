#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/base/machine.h"
#include "core/base/parallel.h"
#include "core/ops/image/resize_taps.h"

namespace graft {

/// Resizes the rows, the columns, or both, of `planes` planes. Each row has `inner` elements where
/// the columns stay.
template <class T>
class ResizeStep {
 public:
  ResizeStep(std::int64_t planes, const std::optional<ResizeTable>& rows,
             const std::optional<ResizeTable>& columns, std::int64_t inner)
      : planes_(planes), width_in_(inner), width_out_(inner) {
    if (rows) rows_.emplace(*rows);
    if (columns) {
      columns_.emplace(*columns);
      width_in_ = columns->input;
      width_out_ = columns->output;
    }
    rows_in_ = rows ? rows->input : 1;
    rows_out_ = rows ? rows->output : 1;
    rows_first_ = rows_out_ <= rows_in_;
    chunk_ = std::clamp<std::int64_t>(kChunkElements / std::max<std::int64_t>(width_out_, 1), 1,
                                      std::max<std::int64_t>(rows_out_, 1));
    chunks_ = (rows_out_ + chunk_ - 1) / chunk_;
    const std::int64_t worth = output_size() / kElementwiseGrain + 1;
    pieces_ = std::min<std::int64_t>({planes_ * chunks_, worth, thread_count()});
    if (rows_ && columns_) scratch_of_piece_ = rows_first_ ? width_in_ : most_rows() * width_out_;
  }

  std::int64_t output_size() const { return planes_ * rows_out_ * width_out_; }
  /// Elements of scratch memory.
  std::int64_t scratch_size() const { return pieces_ * scratch_of_piece_; }

  void run(const T* x, T* y, T* scratch) const {
    const std::int64_t items = planes_ * chunks_;
    parallel_for(pieces_, 1, [&](std::int64_t first_piece, std::int64_t last_piece) {
      for (std::int64_t piece = first_piece; piece < last_piece; ++piece) {
        T* const own = scratch + piece * scratch_of_piece_;
        const std::int64_t last = items * (piece + 1) / pieces_;
        for (std::int64_t item = items * piece / pieces_; item < last; ++item) {
          const std::int64_t plane = item / chunks_;
          const std::int64_t first_row = item % chunks_ * chunk_;
          resize_chunk(x + plane * rows_in_ * width_in_, y + plane * rows_out_ * width_out_,
                       {first_row, std::min(first_row + chunk_, rows_out_)}, own);
        }
      }
    });
  }

 private:
  static constexpr std::int64_t kChunkElements = 16384;
  static constexpr std::int64_t kBlock = 2048;

  struct Rows {
    std::int64_t first;
    std::int64_t last;
  };

  /// The input rows that these output rows need.
  Rows needed(const Rows& out) const {
    Rows rows{rows_in_, 0};
    for (std::int64_t o = out.first; o < out.last; ++o) {
      rows.first = std::min(rows.first, rows_->start(o));
      rows.last = std::max(rows.last, rows_->start(o) + rows_->count);
    }
    return rows;
  }

  std::int64_t most_rows() const {
    std::int64_t most = 0;
    for (std::int64_t first = 0; first < rows_out_; first += chunk_) {
      const Rows rows = needed({first, std::min(first + chunk_, rows_out_)});
      most = std::max(most, rows.last - rows.first);
    }
    return most;
  }

  void resize_chunk(const T* x, T* y, const Rows& out, T* scratch) const {
    if (!rows_) return combine_columns(*columns_, x, y);
    if (!columns_) return combine_whole_rows(x, y, out);
    if (rows_first_) {
      for (std::int64_t o = out.first; o < out.last; ++o) {
        combine_rows(*rows_, o, x + rows_->start(o) * width_in_, width_in_, width_in_, scratch);
        combine_columns(*columns_, scratch, y + o * width_out_);
      }
      return;
    }
    const Rows rows = needed(out);
    for (std::int64_t row = rows.first; row < rows.last; ++row) {
      combine_columns(*columns_, x + row * width_in_, scratch + (row - rows.first) * width_out_);
    }
    for (std::int64_t o = out.first; o < out.last; ++o) {
      const T* const first = scratch + (rows_->start(o) - rows.first) * width_out_;
      combine_rows(*rows_, o, first, width_out_, width_out_, y + o * width_out_);
    }
  }

  /// By blocks, so that the sums stay in the cache.
  void combine_whole_rows(const T* x, T* y, const Rows& out) const {
    for (std::int64_t o = out.first; o < out.last; ++o) {
      for (std::int64_t at = 0; at < width_out_; at += kBlock) {
        combine_rows(*rows_, o, x + rows_->start(o) * width_in_ + at, width_in_,
                     std::min(kBlock, width_out_ - at), y + o * width_out_ + at);
      }
    }
  }

  std::int64_t planes_;
  std::int64_t width_in_;
  std::int64_t width_out_;
  std::int64_t rows_in_ = 1;
  std::int64_t rows_out_ = 1;
  std::optional<ResizeTaps<T>> rows_;
  std::optional<ResizeTaps<T>> columns_;
  bool rows_first_ = true;
  std::int64_t chunk_ = 1;   ///< output rows that are made together
  std::int64_t chunks_ = 1;  ///< in a plane
  std::int64_t pieces_ = 1;  ///< of the work, one a thread
  std::int64_t scratch_of_piece_ = 0;
};

}  // namespace graft
