#include <limits>

#include "core/ops/kernels/elementwise.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

template <class T>
bool shifts_all_out(T amount) {
  constexpr auto kBits = std::numeric_limits<std::make_unsigned_t<T>>::digits;
  return amount < T{0} || amount >= static_cast<T>(kBits);
}

template <class T>
T shift_left(T x, T amount) {
  return shifts_all_out(amount) ? T{0} : static_cast<T>(wrapping(x) << wrapping(amount));
}

/// Copies the sign bit of a signed number into the vacated bits.
template <class T>
T shift_right(T x, T amount) {
  if (shifts_all_out(amount)) return x < T{0} ? static_cast<T>(-1) : T{0};
  return static_cast<T>(x >> amount);
}

RunFunction make_and(const KernelRequest& request) {
  return dispatch_binary(Signless<IntegerTypes>{}, request, [](auto a, auto b) { return a & b; });
}

RunFunction make_or(const KernelRequest& request) {
  return dispatch_binary(Signless<IntegerTypes>{}, request, [](auto a, auto b) { return a | b; });
}

RunFunction make_xor(const KernelRequest& request) {
  return dispatch_binary(Signless<IntegerTypes>{}, request, [](auto a, auto b) { return a ^ b; });
}

RunFunction make_not(const KernelRequest& request) {
  return dispatch_unary(Signless<IntegerTypes>{}, request, [](auto x) { return ~x; });
}

RunFunction make_shift(const KernelRequest& request) {
  if (request.attributes().get_string("direction", "") == "LEFT") {
    return dispatch_binary(Signless<IntegerTypes>{}, request,
                           []<class T>(T x, T amount) { return shift_left(x, amount); });
  }
  return dispatch_binary(IntegerTypes{}, request,
                         []<class T>(T x, T amount) { return shift_right(x, amount); });
}

}  // namespace

void register_bitwise_cpu(KernelRegistry& registry) {
  registry.add({.op = "BitwiseAnd", .name = "plain", .make_run = make_and});
  registry.add({.op = "BitwiseOr", .name = "plain", .make_run = make_or});
  registry.add({.op = "BitwiseXor", .name = "plain", .make_run = make_xor});
  registry.add({.op = "BitwiseNot", .name = "plain", .make_run = make_not});
  registry.add({.op = "BitShift", .name = "plain", .make_run = make_shift});
}

}  // namespace graft
