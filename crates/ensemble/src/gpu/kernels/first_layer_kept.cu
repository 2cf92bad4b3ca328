// The first layer with what the way back needs.
FIRST_LAYER(first_layer_kept, KEEPS_HALVES ? HALVES : FLOATS, false)
