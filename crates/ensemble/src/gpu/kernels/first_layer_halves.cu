// The same, and its output, as halves, for the kernels of last_halves.cu and feed_forward_backward_halves.cu.
FIRST_LAYER(first_layer_halves, HALVES, true)
