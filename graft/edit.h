#pragma once

// Surgery on models: cut, extract, rename, set the batch, append layers.

#include "core/graph/edit.h"
#include "core/layers/append.h"
#include "core/layers/cut.h"
#include "core/layers/replace_head.h"
#include "core/layers/batch.h"
#include "core/layers/fix_input.h"
#include "core/layers/output_types.h"
