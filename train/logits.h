#pragma once

#include "autograd/loss.h"
#include "core/graph/graph.h"

namespace graft {

/// What makes the elements of a value: its producer, or that of what it only moves. Null where they
/// come from outside.
const Node* maker_of(const Value& value);

/// The Softmax or Sigmoid that makes probabilities of what `loss` judges, when it judges scores:
/// many files end in one, for those who only ask. Ops that only move elements may follow it. Null
/// where there is none, or where its axis is not that of the classes. Shapes are known.
const Node* probabilities_of(const Loss& loss, const Value& prediction);

/// What the loss judges in place of `prediction`: for losses of logits those before
/// `probabilities_of` it, for losses of log-probabilities the logarithm of that (LogSoftmax), each
/// moved as the prediction is; otherwise the prediction. Adds nodes at the end of the graph.
Value* scores_of(const Loss& loss, Value* prediction);

}  // namespace graft
