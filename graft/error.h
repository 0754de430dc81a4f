#pragma once

// What Graft throws.

#include "core/base/error.h"
