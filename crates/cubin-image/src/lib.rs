//! Reads CUDA images as data.
