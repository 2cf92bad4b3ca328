//! Nudges, responses, aggregation: sharpness, blowup, norms, sensitivity.
