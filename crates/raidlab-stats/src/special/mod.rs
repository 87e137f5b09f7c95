//! Special functions: Φ, Φ⁻¹, Student's t, incomplete beta and gamma, binomial.
//!
//! Written on `libm` (software arithmetic, the same bits on every machine) because intervals are
//! stored and compared across machines, and because no argument may panic. A value outside a
//! function's domain gives NaN, as in C's `<math.h>`. The tests check them against the vectors
//! and, over wide ranges, against the `statrs` crate.

mod beta;
mod binomial;
mod gamma;
mod normal;
mod student;

pub use beta::{beta_inc, ln_beta};
pub use binomial::binomial_cdf;
pub use gamma::{chi_squared_sf, gamma_inc_upper};
pub use normal::{norm_cdf, norm_ppf, norm_sf};
pub use student::{t_cdf, t_ppf, t_two_sided_p};

#[cfg(test)]
mod tests;
