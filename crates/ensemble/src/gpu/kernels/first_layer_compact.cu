// The first layer where nothing is kept but its output, as last_compact.cu reads it.
FIRST_LAYER(first_layer_compact, NOTHING, true)
