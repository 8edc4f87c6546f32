//! The simulated CUDA driver.
