#pragma once

// Layers, from settings or from text, and nets made of them.

#include "core/layers/init.h"
#include "core/layers/layer.h"
#include "core/layers/layer_context.h"
#include "core/layers/nets.h"
#include "core/layers/parse.h"
