#pragma once

// What federated training exchanges: parameters as one vector, what a client has changed, clipped,
// noised, and packed into 8 bits a number.

#include "train/federated.h"
