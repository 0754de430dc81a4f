#pragma once

#include "core/ops/product_internal.h"

namespace graft {

/// So few rows of b that a product of matrices is slower than adding them up.
bool updates_by_rows(const KernelRequest& request);

/// The kernel of SgdProductUpdate by any matrix product. Of float and double.
template <class T>
Kernel make_product_update(KernelRequest& request, MakeProduct<T> make_product);

}  // namespace graft
