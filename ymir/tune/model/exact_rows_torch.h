// ExactRows: while one lives, products of all f32 weights run through our own kernel (gemm.h), in
// which a row's bits do not depend on the rows beside it; otherwise only those of weights that are
// kept packed. For work that is shared: rows of several jobs in one pass, outputs that are kept for
// other batches. One thread.
#pragma once

namespace ymir {

// Whether all of its products are our own kernel's: on a CPU that has AVX-512, and in bf16 no
// matrix units. Then no bit depends on the number of threads either.
bool has_exact_rows(bool bf16);

class ExactRows {
 public:
  ExactRows();
  ~ExactRows();
  ExactRows(const ExactRows&) = delete;
  ExactRows& operator=(const ExactRows&) = delete;
};

}  // namespace ymir
