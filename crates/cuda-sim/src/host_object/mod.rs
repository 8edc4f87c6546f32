//! The host object of a Tile image: prepared once ([`template`]), mapped and relocated for every module ([`mapped`]), and
//! called through its table ([`callbacks`]).

mod arena;
mod callbacks;
mod mapped;
mod template;
#[cfg(test)]
mod tests;

pub use mapped::HostObject;
pub use template::Template;
