#pragma once

// Surgery on models: cut, extract, rename, replace heads, append and insert layers, merge, set the
// batch, the opset and the precision; adapters (LoRA), what is frozen, and what exporters took.

#include "core/graph/edit.h"
#include "core/graph/frozen.h"
#include "core/layers/append.h"
#include "core/layers/batch.h"
#include "core/layers/change_opset.h"
#include "core/layers/cut.h"
#include "core/layers/fix_input.h"
#include "core/layers/lora.h"
#include "core/layers/merge.h"
#include "core/layers/output_types.h"
#include "core/layers/repair.h"
#include "core/layers/replace_head.h"
#include "train/change_precision.h"
#include "train/copies.h"
#include "train/lora_file.h"
#include "train/store_quantized.h"
#include "train/unfuse_norms.h"
