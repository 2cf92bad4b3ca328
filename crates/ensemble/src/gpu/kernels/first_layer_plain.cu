// The first layer where nothing is kept but its output.
FIRST_LAYER(first_layer, NOTHING, false)
