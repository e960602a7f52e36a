// ExactRows: while one lives, products of all f32 weights run through our own kernel (gemm.h), in
// which a row's bits do not depend on the rows beside it; otherwise only those of weights that are
// kept packed. For work that is shared: rows of several jobs in one pass, outputs that are kept for
// other batches. One thread.
#pragma once

namespace ymir {

class ExactRows {
 public:
  ExactRows();
  ~ExactRows();
  ExactRows(const ExactRows&) = delete;
  ExactRows& operator=(const ExactRows&) = delete;
};

}  // namespace ymir
