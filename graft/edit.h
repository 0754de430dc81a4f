#pragma once

// Surgery on models: cut, extract, rename, set the batch, append layers; adapters (LoRA), and what
// is frozen.

#include "core/graph/edit.h"
#include "core/graph/frozen.h"
#include "core/layers/append.h"
#include "core/layers/batch.h"
#include "core/layers/fix_input.h"
#include "core/layers/lora.h"
#include "core/layers/output_types.h"
#include "core/layers/repair.h"
