// The first layer with what the way back needs.
FIRST_LAYER(first_layer_kept, FLOATS, false)
