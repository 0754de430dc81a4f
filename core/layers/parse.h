#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/layers/layer.h"

namespace graft {

/// Reads layers from text, as the command line takes them: layers are separated by ',', a layer's
/// arguments by ':'. Numbers for several dims are joined by 'x'.
///
///     flatten,linear:10
///     conv:32x3x3:stride=2:padding=1:bias=0,batch_norm,relu,max_pool:2,dropout:0.5,softmax:1
///     linear:10:name=head:seed=1:init=normal:std=0.02
///     reshape:8x64,lstm:32:bidirectional=1:steps=last
///
/// Case and '_' in a layer's name do not matter ("MaxPool"). Every layer takes name=TEXT.
/// Throws Error{argument}, listing what can be written, for anything else.
std::vector<Layer> parse_layers(std::string_view list);

/// A line for each layer that `parse_layers` reads: "linear:OUT[:bias=0|1][:seed=N]". Layers whose
/// weights are drawn take init=, too.
std::vector<std::string> layer_usages();

/// Reads how weights start, as "kaiming_normal:fan=out" or "zeros". Throws alike.
Init parse_init(std::string_view written);
/// What `parse_init`, and init= of a layer, read.
std::string_view init_usage();

}  // namespace graft
