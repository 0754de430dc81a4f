#pragma once

// What the C++ blocks of docs/ take for given: they show one thing, not a whole program.

#include <graft/graft.h>

#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

using namespace graft;  // as their first lines would say

extern Model model;
extern DataLoader loader;
extern Session session;
extern std::vector<std::thread> threads;
extern std::vector<Tensor> buffers;
extern Tensor image, other_image, scores, other_scores, weight, bias;
