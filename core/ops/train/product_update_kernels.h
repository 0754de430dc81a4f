#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/ops/kernels/matmul.h"
#include "core/ops/kernels/product.h"
#include "core/ops/registry.h"

namespace graft {

/// Checks that the states of an update fit the parameter; each state output is its input.
void infer_states(InferContext& context);

/// The row of the product form of an update, with this name and these samples. a': [m,k], b':
/// [k,n], the parameter [m,n], or [n] where m is 1; the gradient is scale a' b', where a' is a or
/// its transpose.
OpDef product_form(const OpDef& update, std::string_view name, Samples samples);
/// Those of an update of so many inputs with its gradient as a product, and the first of them with
/// each kind of product.
std::vector<Sample> with_products(const std::vector<Sample>& update, std::size_t input_count);

/// Those of an update, and those with states once more with all states in bf16.
std::vector<Sample> with_stored_states(std::vector<Sample> update);

/// "AdamUpdate" -> "AdamProductUpdate".
std::string product_form_name(std::string_view update);

/// Registers an update and its product form.
template <std::vector<Sample> (*samples)()>
void add_update(OpRegistry& registry, OpDef update) {
  static const std::string product_name = product_form_name(update.name);
  static const std::size_t input_count = update.inputs.size();
  static const auto all = [] { return with_stored_states(samples()); };
  update.samples = all;
  update.product_form.op = product_name;
  registry.add(update);
  registry.add(
      product_form(update, product_name, [] { return with_products(all(), input_count); }));
}

/// The names of all product forms.
std::vector<std::string_view> product_forms();

/// Whether an update, or its product form, does no more than that (ProductForm).
bool only_adds(const Node& update);

/// How a product form gets its gradient.
MatMulProblem gradient_product(const KernelRequest& request);
/// Where a' and b' lie.
template <class T>
const T* left_operand(const KernelArgs& args) {
  return args.input<T>(1);
}
template <class T>
const T* right_operand(const KernelArgs& args) {
  return static_cast<const T*>(args.inputs.back());
}

/// Copies the parameter to the output, which in a plan is the parameter itself.
void take_parameter(const KernelArgs& args, std::size_t bytes);

/// So few rows of b that a product of matrices is slower than adding them up.
bool adds_by_rows(const KernelRequest& request);

/// The parameter takes in the few rows of b, each of its own rows while it is in the first cache:
/// where adds_by_rows.
Kernel make_adding_rows(KernelRequest& request);

/// The product adds to the parameter: where the update does no more. Of float and double.
template <class T>
Kernel make_adding_product(KernelRequest& request, MakeProduct<T> make_product);

/// Half of a second cache: the fewer pieces, the less often b is read.
inline constexpr std::int64_t kUpdatePieceBytes = std::int64_t{512} << 10;

/// Of the gradient, for elements of so many bytes.
std::int64_t rows_of_piece(const MatMulProblem& product, std::int64_t piece_bytes,
                           std::size_t element_bytes);

/// Each thread makes some rows of the gradient and applies the update to them while they are in its
/// caches, so that the gradient never exists as a whole. Whole rows, since blocks of columns made
/// the update of large matrices up to 20 % slower. Of float and double.
template <class T>
Kernel make_update_by_pieces(KernelRequest& request, MakeProduct<T> make_product,
                             std::int64_t piece_bytes = kUpdatePieceBytes);

}  // namespace graft
