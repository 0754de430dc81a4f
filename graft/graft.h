#pragma once

// All of Graft that programs use.

#include "graft/data.h"
#include "graft/edit.h"
#include "graft/error.h"
#include "graft/export_step.h"
#include "graft/layers.h"
#include "graft/loss.h"
#include "graft/model.h"
#include "graft/onnx.h"
#include "graft/op.h"
#include "graft/optimizer.h"
#include "graft/run.h"
#include "graft/session.h"
#include "graft/tensor.h"
#include "graft/train.h"
#include "graft/version.h"
