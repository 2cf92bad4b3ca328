//! Exact analysis of Boolean functions: truth tables, Walsh spectra, sensitivities.
