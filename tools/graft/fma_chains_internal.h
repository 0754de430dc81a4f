// Of machine.cpp alone, which includes it once for each set of instructions, with kVectorBytes of
// the set: a vector that is wider than the registers of the instructions around it is kept in
// memory.

/// Chains of multiply-adds of a vector each. Returns a sum of all results, so that none is
/// optimised away.
float multiply_add(std::int64_t rounds) {
  using Vector = float __attribute__((vector_size(kVectorBytes)));
  Vector sums[kChains];
  for (int c = 0; c < kChains; ++c) sums[c] = Vector{} + static_cast<float>(c);
  const Vector factor = Vector{} + 0.999F;
  const Vector term = Vector{} + 0.001F;
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = sums[c] * factor + term;
  }
  Vector all = sums[0];
  for (int c = 1; c < kChains; ++c) all += sums[c];
  float result = 0.0F;
  for (int lane = 0; lane < kVectorBytes / static_cast<int>(sizeof(float)); ++lane) {
    result += all[lane];
  }
  return result;
}
